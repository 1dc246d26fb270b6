# Which backend a broker has: the one that started it, else the one that BROKER_BACKEND names, else docker where a
# Docker engine answers, else native.

backend() {
  local chosen=${BROKER_BACKEND:-}
  if [[ -f $home/backend ]]; then
    chosen=$(<"$home/backend")
  elif [[ -z $chosen ]]; then
    chosen=native
    ! composed || ! docker_answers || chosen=docker
  fi
  [[ $chosen == @(docker|native) ]] || fail "BROKER_BACKEND is \"$chosen\"; it is docker or native"
  composed || chosen=native
  printf '%s' "$chosen"
}

# started prints the names that have been started and not taken down.
started() {
  local file
  for file in "$state"/*/backend; do
    [[ ! -f $file ]] || basename "$(dirname "$file")"
  done
}

# list prints every name, how it is got here, and whether it runs.
list() {
  local each
  for each in $(known); do
    (
      choose "$each"
      how="docker compose"
      if [[ $(backend) == native ]]; then
        how=$(lacks)
        how=${how:+not here: $how}
        how=${how:-$source}
      fi
      is=down
      [[ ! -f $home/backend ]] || is=$("$(backend)_summary")
      printf '%-26s %-8s %s\n' "$name" "$is" "$how"
    )
  done
}
