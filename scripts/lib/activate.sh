# Makes the environment current and enters it. Sourced by the other scripts, not run.
#
# Sets repo and everything that ros_env.sh sets. claim_domain gives the caller a ROS domain of
# its own, for as long as the calling process lives.

repo="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
# Several checkouts can share one environment: AWP_BRIDGE_ROS_ENV names the ros_env.sh of a ready
# one, which is then used as it is.
ros_env="${AWP_BRIDGE_ROS_ENV:-}"
if [[ -z "${ros_env}" ]]; then
  ros_env="$("${repo}/scripts/setup" --print)" || exit
elif [[ ! -f "${ros_env}" ]]; then
  echo "AWP_BRIDGE_ROS_ENV=${ros_env}: there is no such file" >&2
  exit 2
fi
# A sourced environment of another distribution gives way to the chosen one.
# shellcheck source=scripts/lib/leave.sh
source "${repo}/scripts/lib/leave.sh"
leave_own_env
# shellcheck disable=SC1090
source "${ros_env}"
export PYTHONUNBUFFERED=1
export PYTHONPATH="${repo}${PYTHONPATH:+:${PYTHONPATH}}"  # this checkout, whatever is installed

# Picks a domain from 1 to 100 (their ports lie below the ephemeral ones) that no other script
# or test run (test/ros/processes.py has the same lock files) holds and whose discovery port
# nobody has bound, and exports it with the localhost range.
claim_domain() {
  local folder="${TMPDIR:-/tmp}/awp_ros_bridge-domains" offset domain lock
  mkdir -m 1777 "${folder}" 2> /dev/null || true
  for ((offset = 0; offset < 100; offset++)); do
    domain=$(((BASHPID + offset) % 100 + 1))
    { exec {lock}>> "${folder}/${domain}"; } 2> /dev/null || continue
    if flock --nonblock "${lock}" && domain_is_quiet "${domain}"; then
      export ROS_DOMAIN_ID="${domain}" ROS_AUTOMATIC_DISCOVERY_RANGE=LOCALHOST
      return 0
    fi
    exec {lock}>&-
  done
  echo 'no free ROS domain between 1 and 100' >&2
  return 1
}

domain_is_quiet() {
  python - "$1" << 'PYTHON'
import socket
import sys

base = 7400 + 250 * int(sys.argv[1])
for port in (base, base + 10, base + 11):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind(('', port))
        except OSError:
            sys.exit(1)
PYTHON
}
