# Makes Gazebo ready and enters it. Sourced after activate.sh, not run.

# Sets Gazebo up where it is missing and makes Python find the robot of the tests that runs in it.
# Returns 3 where it cannot be set up; the reason stands on standard error.
enter_gazebo() {
  local folder status=0
  folder="$(bash "${repo}/scripts/lib/gazebo_setup.sh")" || status=$?
  ((status == 0)) || return "${status}"
  export AWP_BRIDGE_GAZEBO_DIR="${folder}"
  PYTHONPATH="${repo}/test/gazebo:$(python -c 'import sys; print(sys.argv[1] + "/python-py%d%d" % sys.version_info[:2])' "${folder}"):${PYTHONPATH}"
  export PYTHONPATH
}
