# The docker backend: the servers are services of docker-compose.yml. The service of a node is called NAME-NODE, or NAME
# where there is only one.

docker_answers() { type -P docker >/dev/null && bounded 20 docker info >/dev/null 2>&1 && docker compose version >/dev/null 2>&1; }

# composed succeeds if docker-compose.yml has $name. What wants certificates is native everywhere.
composed() { grep -qE "^  $name(-[a-z0-9-]+)?:" "$repo/docker-compose.yml" && [[ $name != *-secure ]]; }

# project prints what docker compose calls all that belongs together. Each state folder is a project of its own.
project() {
  printf xk6-broker
  [[ $state == "$repo/.cache/brokers/run" ]] || printf -- '-%s' "$(printf '%s' "$state" | cksum | cut -d ' ' -f 1)"
}

# compose runs docker compose with our ports, for the services of $name.
compose() {
  local line node role
  (
    for line in "${ports[@]}"; do
      read -r node role line <<<"$line"
      export "$(port_variable "$node" "$role")=$line"
    done
    exec docker compose --project-name "$(project)" --file "$repo/docker-compose.yml" --profile "$name" "$@" {lock}>&-
  )
}

# services prints the services of $name, or the one of NODE.
services() {
  if [[ -z ${1:-} ]]; then
    compose config --services | grep -E "^$name(-|\$)" | sort
  elif [[ $1 == 1 && $name != *-cluster ]]; then
    printf '%s\n' "$name"
  else
    printf '%s-%s\n' "$name" "$1"
  fi
}

docker_up() {
  local list
  mapfile -t list < <(services)
  docker_refuse_taken_ports
  mkdir -p "$home"
  printf 'docker\n' >"$home/backend"
  remember_ports
  note "starting ${list[*]} and waiting until they answer"
  # The network that all share is made with the first container; two at the same time would make it twice.
  (lock "$state/docker.lock" && compose create --no-recreate --quiet-pull "${list[@]}" >&2)
  if ! compose up --detach --no-recreate --wait --wait-timeout "${BROKER_WAIT:-120}" "${list[@]}" >&2; then
    compose logs --no-color --tail 20 "${list[@]}" >&2 || true
    docker_remove "${list[@]}"
    fail "it did not start"
  fi
  urls | while read -r _ url; do printf '%s %s\n' "$name" "$url"; done
}

# docker_refuse_taken_ports looks at the ports that docker-compose.yml publishes, unless the containers are there already.
docker_refuse_taken_ports() {
  local line node role number
  [[ -z $(compose ps --quiet) ]] || return 0
  for line in "${ports[@]}"; do
    read -r node role number <<<"$line"
    ! grep -q "{$(port_variable "$node" "$role"):-" "$repo/docker-compose.yml" || refuse_taken_port "$node" "$role" "$number"
  done
}

docker_down() {
  local list
  [[ -d $home ]] || return 0
  refuse_node "$1" down
  mapfile -t list < <(services)
  note "stopping"
  docker_remove "${list[@]}"
}

docker_remove() {
  compose kill "$@" >/dev/null 2>&1 || true # the data goes too, so there is nothing to put in order
  compose rm --stop --force --volumes "$@" >&2
  docker volume rm --force "$(project)_$name" >/dev/null # that of its name, where it has one: Compose leaves those
  rm -rf -- "$home"
  # The network goes with the last of the brokers.
  (lock "$state/docker.lock" && { [[ -n $(started) ]] || compose down >&2; })
}

docker_stop() { refuse_node "$1" down && docker_each "$1" stop; }
docker_pause() { docker_each "$1" pause; }
docker_resume() { docker_each "$1" unpause; }
docker_kill() { docker_each "$1" kill --signal KILL; }

docker_restart() {
  docker_each "$1" stop
  docker_each "$1" up --detach --no-deps --no-recreate --wait --wait-timeout "${BROKER_WAIT:-120}"
}

# docker_each NODE COMMAND... runs a command of docker compose for the service of NODE, or all.
docker_each() {
  local list node=$1
  shift
  mapfile -t list < <(services "$node")
  compose "$@" "${list[@]}" >&2
}

docker_status() {
  local list service is code=0
  mapfile -t list < <(services "$1")
  for service in "${list[@]}"; do
    is=$(docker_condition "$service")
    [[ $is == up ]] || code=3
    printf '%-24s %-10s %s\n' "$name/$(docker_node "$service")" "$is" "$(ports_of "$(docker_node "$service")")"
  done
  return $code
}

docker_summary() {
  local service worst=up is
  for service in $(services); do
    is=$(docker_condition "$service")
    [[ $is == up ]] || worst=$is
  done
  printf '%s' "$worst"
}

docker_node() {
  local node=${1#"$name"}
  node=${node#-}
  printf '%s' "${node:-1}"
}

# docker_condition translates what Docker knows of a container into the words of the native backend.
docker_condition() {
  local id
  id=$(compose ps --all --quiet "$1")
  [[ -n $id ]] || { printf 'down'; return; }
  case $(docker inspect --format '{{.State.Status}} {{with .State.Health}}{{.Status}}{{end}}' "$id") in
    "running healthy" | "running ") printf 'up' ;;
    running*) printf 'unhealthy' ;;
    paused*) printf 'paused' ;;
    *) printf 'dead' ;;
  esac
}

docker_logs() { docker_each "$1" logs --no-color 2>&1; }
