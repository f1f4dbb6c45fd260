#!/usr/bin/env bash
# Unpacks Gazebo 11.1, of Debian 11, into a folder where it runs through its own dynamic loader:
# no root, no change to the machine. Run with the environment active; prints the folder.
#
# AWP_BRIDGE_GAZEBO_DIR is the folder (default: gazebo in AWP_BRIDGE_ENV_DIR, else .env/gazebo).
# Packages stay in its downloads/, so that a later set-up needs no mirror. AWP_BRIDGE_DEBIAN_MIRROR
# names a mirror that carries Debian 11 where apt's own does not.
#
# Exit status 3: it cannot be set up here, and the last line on standard error says why.
set -euo pipefail

repo="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
folder="${AWP_BRIDGE_GAZEBO_DIR:-${AWP_BRIDGE_ENV_DIR:-${repo}/.env}/gazebo}"
mkdir -p "${folder}"
folder="$(cd "${folder}" && pwd)"
downloads="${folder}/downloads"
log="${folder}/setup.log"
sums="${downloads}/SHA256SUMS"
readonly unpacked_packages=(gazebo libgazebo11)
readonly message_packages=(libgazebo-dev libignition-msgs-dev)

say() { printf '[gazebo] %s\n' "$*" >&2; }

impossible() {
  say "cannot be set up here: $*"
  exit 3
}

quietly() {
  printf '\n$ %s\n' "$*" >> "${log}"
  "$@" >> "${log}" 2>&1 < /dev/null
}

# A stamp is written last and moved into place, so that an interrupted step counts as not done.
is_current() { [[ -f "${folder}/$1.stamp" && "$(< "${folder}/$1.stamp")" == "$2" ]]; }
stamp() { printf '%s\n' "$2" > "${folder}/.$1.new" && mv "${folder}/.$1.new" "${folder}/$1.stamp"; }

check_machine() {
  [[ "$(uname -s)-$(uname -m)" == Linux-x86_64 ]] || impossible "$(uname -sm); the packages are for Linux on x86_64"
  command -v dpkg-deb > /dev/null || impossible 'there is no dpkg-deb, which unpacks the packages'
}

# The machine's own Debian mirror, as apt knows it.
mirror() {
  if [[ -n "${AWP_BRIDGE_DEBIAN_MIRROR:-}" ]]; then
    echo "${AWP_BRIDGE_DEBIAN_MIRROR}"
  else
    apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 2> /dev/null |
      grep -E '/debian/?$' | head -n 1 || true
  fi
}

# Runs apt-get on lists and a package state of its own: nothing is taken for installed.
apt_here() {
  local apt="${folder}/apt"
  quietly apt-get -q -o "Dir::State=${apt}" -o "Dir::State::lists=${apt}/lists" \
    -o "Dir::State::status=${apt}/status" -o "Dir::Cache=${apt}/cache" \
    -o "Dir::Cache::archives=${downloads}" -o "Dir::Etc::sourcelist=${apt}/sources.list" \
    -o Dir::Etc::sourceparts=/dev/null -o Dir::Etc::preferences=/dev/null \
    -o Dir::Etc::preferencesparts=/dev/null -o Debug::NoLocking=1 -o APT::Sandbox::User= \
    -o APT::Architecture=amd64 -o APT::Install-Recommends=0 -o Acquire::Languages=none \
    -o Acquire::Retries=3 -o Acquire::http::Timeout=60 "$@"
}

is_downloaded() {
  [[ -f "${sums}" ]] && (cd "${downloads}" && sha256sum --quiet --check SHA256SUMS > /dev/null 2>&1)
}

download() {
  is_downloaded && return 0
  command -v apt-get > /dev/null || impossible 'there is no apt-get, which downloads the packages'
  local keyring=/usr/share/keyrings/debian-archive-keyring.gpg site
  [[ -f "${keyring}" ]] || impossible "${keyring} is missing (apt-get install debian-archive-keyring)"
  site="$(mirror)"
  [[ -n "${site}" ]] || impossible 'apt knows no Debian mirror: run apt-get update, or set AWP_BRIDGE_DEBIAN_MIRROR'
  say 'downloading the packages of Gazebo 11.1 (205 MB; they stay for the next time) ...'
  mkdir -p "${folder}"/apt/{lists/partial,cache} "${downloads}/partial"
  echo "deb [signed-by=${keyring}] ${site} bullseye main" > "${folder}/apt/sources.list"
  : > "${folder}/apt/status"
  apt_here update || impossible "the mirror has no Debian 11 (see ${log})"
  apt_here -y install --download-only "${unpacked_packages[@]:1}" || impossible "a download failed (see ${log})"
  # Without what only these two depend on: a browser for models, headers of everything.
  (cd "${downloads}" && apt_here download "${unpacked_packages[0]}" "${message_packages[@]}") ||
    impossible "a download failed (see ${log})"
  rm -rf "${folder}/apt" "${downloads}/partial" "${downloads}/lock"
  (cd "${downloads}" && sha256sum -- *.deb > .sums.new && mv .sums.new SHA256SUMS)
}

unpack() {
  local package next="${folder}/prefix.new"
  say 'unpacking (664 MB) ...'
  rm -rf "${next}" "${folder}/prefix" "${folder}/protocols"
  mkdir -p "${next}" "${folder}/protocols"
  for package in "${downloads}"/*.deb; do
    case "$(basename "${package}")" in
      libgazebo-dev_* | libignition-msgs-dev_*) dpkg-deb -x "${package}" "${folder}/protocols" ;;
      *) dpkg-deb -x "${package}" "${next}" ;;
    esac
  done
  rm -rf "${next}"/usr/share/{doc,man,locale,lintian}
  mv "${next}" "${folder}/prefix"
}

# The clients read one file that describes all messages.
describe_messages() {
  local include="${folder}/protocols/usr/include"
  local gazebo="${include}/gazebo-11/gazebo/msgs/proto" ignition="${include}/ignition/msgs5" name
  local files=()
  for name in contacts gz_string packet param_v pose_v publish publishers subscribe world_control world_stats \
    wrench wrench_stamped; do
    files+=("${gazebo}/${name}.proto")
  done
  for name in discovery joint_cmd; do files+=("${ignition}/ignition/msgs/${name}.proto"); done
  PYTHONPATH="${python_folder}" quietly python -m grpc_tools.protoc --include_imports \
    "-I${gazebo}" "-I${ignition}" "--descriptor_set_out=${folder}/messages.desc" "${files[@]}"
}

install_libraries() {
  say 'installing the Python libraries that talk to it ...'
  rm -rf "${python_folder}"
  quietly python -m pip --disable-pip-version-check install --target "${python_folder}" \
    -r "${repo}/scripts/requirements/gazebo.txt"
}

main() {
  exec {lock}> "${folder}/lock"
  if ! flock --nonblock "${lock}"; then
    say 'another set-up is at work; waiting for it'
    flock "${lock}"
  fi
  local began=${SECONDS} tag key
  tag="$(python -c 'import sys; print("py%d%d" % sys.version_info[:2])')"
  python_folder="${folder}/python-${tag}"
  key="$(cat "${BASH_SOURCE[0]}" "${repo}/scripts/requirements/gazebo.txt" | sha256sum | cut -c1-16)"
  if ! is_current "${tag}" "${key}" || ! is_current prefix "${key}"; then
    [[ -f "${log}" && "$(stat -c %s "${log}")" -gt 5000000 ]] && mv "${log}" "${log}.old"
    check_machine
    is_current "${tag}" "${key}" || install_libraries || impossible "the Python libraries cannot be installed (see ${log})"
    if ! is_current prefix "${key}"; then
      rm -f "${folder}/prefix.stamp"
      download
      unpack
      describe_messages
      rm -rf "${folder}/protocols"
      stamp prefix "${key}"
    fi
    stamp "${tag}" "${key}"
    say "ready after $((SECONDS - began)) s in ${folder}"
  fi
  echo "${folder}"
}

main "$@"
exit
