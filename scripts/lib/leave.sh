# Undoes what an environment of ours added to this shell. Sourced, not run.

# An environment of ours that is already sourced must not be taken for the machine's own ROS 2.
leave_own_env() {
  [[ -n "${AWP_BRIDGE_ENV:-}" ]] || return 0
  local own="${AWP_BRIDGE_ENV}" name entry kept
  for name in PATH PYTHONPATH LD_LIBRARY_PATH AMENT_PREFIX_PATH CMAKE_PREFIX_PATH; do
    [[ -n "${!name:-}" ]] || continue
    kept=''
    while IFS= read -r -d ':' entry; do
      [[ "${entry}" == "${own}" || "${entry}" == "${own}/"* ]] || kept+="${kept:+:}${entry}"
    done <<< "${!name}:"
    if [[ -n "${kept}" ]]; then export "${name}=${kept}"; else unset "${name}"; fi
  done
  if [[ "${AWP_BRIDGE_ENV_KIND:-}" == wheels ]]; then
    unset RMW_IMPLEMENTATION _ROS_WHEELS_BOOTSTRAP_COMPLETE
  fi
  unset AWP_BRIDGE_ENV AWP_BRIDGE_ENV_KIND VIRTUAL_ENV
}
