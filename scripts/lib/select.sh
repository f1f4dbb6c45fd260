# Chooses the Python, the ROS 2 distribution and the environment folder. Sourced, not run.
#
# Sets repo, python, python_tag, distro, kind (system or wheels), env_dir. Says on standard
# error what is missing and returns 1 where no choice is possible.

repo="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"

say() { printf '[setup] %s\n' "$*" >&2; }

# shellcheck source=scripts/lib/leave.sh
source "${repo}/scripts/lib/leave.sh"

# Prints py311 or py312 when the command is a Python we support, else nothing.
probe_python() {
  "$1" -c 'import sys; v = sys.version_info; print("py%d%d" % v[:2] if v[:2] in ((3, 11), (3, 12)) else "")' \
    2>/dev/null || true
}

choose_python() {
  local candidate tag
  if [[ -n "${PYTHON:-}" ]]; then
    python_tag="$(probe_python "${PYTHON}")"
    if [[ -z "${python_tag}" ]]; then
      say "PYTHON=${PYTHON} is $("${PYTHON}" --version 2>&1 || echo 'not runnable'); Python 3.11 or 3.12 is needed"
      return 1
    fi
    python="${PYTHON}"
  else
    shopt -s nullglob
    local pyenv_root="${PYENV_ROOT:-${HOME}/.pyenv}"
    local candidates=(python3 python3.12 python3.11
      "${pyenv_root}"/versions/3.12.*/bin/python "${pyenv_root}"/versions/3.11.*/bin/python)
    shopt -u nullglob
    python=''
    for candidate in "${candidates[@]}"; do
      command -v "${candidate}" > /dev/null || continue
      tag="$(probe_python "${candidate}")"
      if [[ -n "${tag}" ]]; then
        python="${candidate}" python_tag="${tag}"
        break
      fi
    done
    if [[ -z "${python}" ]]; then
      say "no Python 3.11 or 3.12 found ($(python3 --version 2>&1 || echo 'no python3')); install one or set PYTHON"
      return 1
    fi
  fi
  # A shim is slow and may change its mind: keep the interpreter behind it.
  python="$("${python}" -c 'import sys; print(sys.executable)')"
}

choose_ros() {
  if "${python}" -c 'import rclpy' 2> /dev/null; then
    kind=system
    if [[ -z "${ROS_DISTRO:-}" ]]; then
      say 'rclpy is importable but ROS_DISTRO is not set; source the setup file of your ROS 2 first'
      return 1
    fi
  else
    kind=wheels
    if [[ -n "${AMENT_PREFIX_PATH:-}" ]]; then
      say "a ROS 2 environment is sourced (AMENT_PREFIX_PATH) but ${python} cannot import rclpy;"
      say 'set PYTHON to the interpreter that this ROS 2 was built for, or start from a shell without it'
      return 1
    fi
  fi
  distro="${ROS_DISTRO:-kilted}"
  case "${distro}" in
    jazzy | kilted) ;;
    *)
      say "ROS_DISTRO=${distro} is not supported; use jazzy or kilted"
      return 1
      ;;
  esac
}

leave_own_env
choose_python || return 1
choose_ros || return 1
env_dir="${AWP_BRIDGE_ENV_DIR:-${repo}/.env}"
mkdir -p "${env_dir}"
env_dir="$(cd "${env_dir}" && pwd)/${distro}-${python_tag}"
if [[ "${kind}" == system ]]; then env_dir+='-system'; fi
