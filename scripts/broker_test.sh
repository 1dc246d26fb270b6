#!/usr/bin/env bash
# Tests scripts/broker with real servers: every NAME that is given, else every one that can be started here. They live in
# a state folder and on ports of their own, so that brokers that are up already are neither used nor disturbed.
#
# What cannot be started here is skipped and named, or fails if BROKER_REQUIRE (a list with commas, or "all") names it.
set -euo pipefail

scripts=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
state=$(mktemp -d)
export BROKER_STATE=$state/first BROKER_PORT_OFFSET=${BROKER_PORT_OFFSET:-2700}
failures=0 foreign=''

broker() { "$scripts/broker" "$@" 2>"$state/err"; }

tidy() {
  local folder name
  [[ -z $foreign ]] || kill "$foreign" 2>/dev/null || true
  for folder in "$state"/*/; do
    for name in "$folder"*/; do
      [[ ! -d $name ]] || BROKER_STATE=${folder%/} "$scripts/broker" down "$(basename "$name")" || true
    done
  done
  rm -rf -- "$state"
}
trap tidy EXIT
trap 'exit 130' INT TERM

# check DESCRIPTION COMMAND... expects COMMAND to succeed; fails expects it to fail.
check() {
  local what=$1
  shift
  if ! "$@" >"$state/out"; then
    failures=$((failures + 1))
    printf 'FAIL %s: %s\n' "$what" "$*"
    sed 's/^/     /' "$state/out" "$state/err"
  fi
}
fails() { ! "$@"; }
says() { grep -qE -- "$1" "$state/err"; }

# pids prints the pids of the nodes of a native broker.
pids() { broker status "$1" | grep -oE 'pid [0-9]+' | cut -d ' ' -f 2; }

gone() { local pid; for pid; do [[ ! -d /proc/$pid || $(awk '/^State/ { print $2 }' "/proc/$pid/status") == Z ]] || return 1; done; }

# listens_on_loopback succeeds if every pid's process group has a listening socket, and none beyond loopback.
listens_on_loopback() {
  local pid member members inodes
  for pid; do
    inodes=' '
    mapfile -t members < <(awk '{ sub(/.*\) /, ""); if ($3 == group) { split(FILENAME, path, "/"); print path[3] } }' group="$pid" /proc/[0-9]*/stat 2>/dev/null)
    for member in "${members[@]}"; do
      inodes+=$(find "/proc/$member/fd" -lname 'socket:*' -printf '%l\n' 2>/dev/null | tr -dc '0-9\n' | tr '\n' ' ')
    done
    # Addresses are in hexadecimal, in the order of a little-endian machine: 127.0.0.1, ::ffff:127.0.0.1 and ::1.
    awk -v inodes="$inodes" '
      $4 == "0A" && index(inodes, " " $10 " ") {
        found++
        if ($2 !~ /^(0100007F|0000000000000000FFFF00000100007F|00000000000000000000000001000000):/) { print FILENAME, $2; wide++ }
      }
      END { exit !found || wide }' /proc/net/tcp /proc/net/tcp6 || return 1
  done
}

# lifecycle takes one broker from up to down.
lifecycle() {
  local name=$1 url node before
  check "$name: up" broker up "$name"
  cp "$state/out" "$state/up"
  check "$name: up prints NAME URL" grep -qE "^$name [a-z0-9-]+://([^@/]+@)?127\.0\.0\.1:[0-9]+" "$state/up"
  url=$(broker url "$name")
  check "$name: url is the first that up printed" test "$name $url" = "$(head -n 1 "$state/up")"
  check "$name: env holds it" grep -qF "='$url'" <(broker env "$name")
  if [[ $name == *-* ]]; then
    node=${name^^}
    check "$name: env names it after the variant" grep -qF "BROKER_URL_${node//-/_}='$url'" <(broker env "$name")
  fi
  check "$name: status" broker status "$name"
  before=$(pids "$name")
  check "$name: up when it is up" broker up "$name"
  check "$name: and that starts nothing" test "$before" = "$(pids "$name")"
  if [[ -n $before ]]; then
    # shellcheck disable=SC2086 # one word per pid
    check "$name: listens on loopback only" listens_on_loopback $before
  fi

  node=$name/$(broker status "$name" | awk '{ print $1 }' | grep -v network | tail -n 1 | cut -d / -f 2)
  check "$name: pause" broker pause "$node"
  check "$name: status when paused" fails broker status "$name"
  check "$name: status says paused" grep -qE "^$node +paused" <(broker status "$name")
  check "$name: up when paused" fails broker up "$name"
  check "$name: up says what to do" says "scripts/broker resume"
  check "$name: resume" broker resume "$node"
  check "$name: kill" broker kill "$node"
  check "$name: status says dead" grep -qE "^$node +dead" <(broker status "$name")
  check "$name: restart" broker restart "$node"
  check "$name: status after restart" grep -qE "^$node +up" <(broker status "$name")
  check "$name: logs" test -n "$(broker logs "$node" | head -c 1)"
  check "$name: down --keep" broker down --keep "$name"
  check "$name: up with the data" broker up "$name"
  before+=" $(pids "$name")"
  check "$name: down" broker down "$name"
  # shellcheck disable=SC2086 # one word per pid
  check "$name: every process is gone" gone $before
  check "$name: the data is gone" test ! -e "$BROKER_STATE/$name"
  check "$name: down when it is down" broker down "$name"
  check "$name: url when it is down" fails broker url "$name"
}

# The rest needs some broker that starts at once; NATS comes from the toolchain that the project needs anyway.

refuses_a_taken_port() {
  local port pid
  broker up nats >"$state/out"
  pid=$(pids nats)
  port=$(broker ports nats | sed -n 's/^BROKER_PORT_NATS=//p')
  check "taken port: up fails" fails env BROKER_STATE="$state/second" "$scripts/broker" up nats 2>"$state/err"
  check "taken port: names the port, its holder and the variable" says "port $port .*pid $pid .*BROKER_PORT_NATS="
  check "taken port: leaves nothing behind" test ! -e "$state/second/nats"
  check "taken port: leaves the holder alone" test "$pid" = "$(pids nats)"
  broker down nats
}

never_signals_a_foreign_process() {
  local born
  broker up nats >"$state/out"
  read -r _ born <"$BROKER_STATE/nats/1/pid"
  broker kill nats
  sleep 600 &
  foreign=$!
  printf '%s %s\n' "$foreign" "$born" >"$BROKER_STATE/nats/1/pid"
  check "foreign pid: status says dead" grep -q dead <(broker status nats)
  check "foreign pid: pause fails" fails broker pause nats
  broker kill nats || true
  check "foreign pid: down" broker down nats
  check "foreign pid: lives on" kill -0 "$foreign"
  kill "$foreign"
  foreign=''
}

tidies_up_after_a_failure() {
  local port
  port=$(broker ports nats | sed -n 's/^BROKER_PORT_NATS=//p')
  check "failed start: up fails" fails env BROKER_PORT_NATS_MONITOR="$port" "$scripts/broker" up nats 2>"$state/err"
  check "failed start: shows the end of the log" says "address already in use"
  check "failed start: leaves nothing behind" test ! -e "$BROKER_STATE/nats"
  check "not a port: up fails" fails env BROKER_PORT_NATS=70000 "$scripts/broker" up nats 2>"$state/err"
  check "not a port: says which variable" says "BROKER_PORT_NATS is \"70000\""
}

serves_several_callers() {
  local job jobs=() i
  for i in 1 2 3 4; do
    "$scripts/broker" up nats >"$state/up.$i" 2>/dev/null &
    jobs+=($!)
  done
  for job in "${jobs[@]}"; do
    check "several callers: each succeeds" wait "$job"
  done
  check "several callers: all are told the same" test "$(sort -u "$state"/up.? | wc -l)" = 2
  check "several callers: another folder" eval '(cd / && broker status nats)'
  broker down nats
}

keeps_the_data() {
  local port
  broker up influxdb >"$state/out"
  port=$(broker url influxdb | grep -oE '[0-9]+$')
  influx() { # METHOD PATH BODY
    exec {http}<>"/dev/tcp/127.0.0.1/$port"
    printf '%s %s HTTP/1.0\r\nContent-Type: %s\r\nContent-Length: %s\r\n\r\n%s' "$1" "$2" application/x-www-form-urlencoded "${#3}" "$3" >&"$http"
    cat <&"$http"
    exec {http}>&-
  }
  influx POST /query 'q=CREATE DATABASE test' >"$state/out"
  influx POST '/write?db=test' 'kept value=42' >"$state/out"
  broker kill influxdb
  broker restart influxdb
  check "data: survives kill and restart" grep -q ',42\]' <(influx POST '/query?db=test' 'q=SELECT value FROM kept')
  broker down --keep influxdb
  broker up influxdb >"$state/out"
  check "data: survives down --keep and up" grep -q ',42\]' <(influx POST '/query?db=test' 'q=SELECT value FROM kept')
  broker down influxdb
  broker up influxdb >"$state/out"
  check "data: does not survive down" fails grep -q ',42\]' <(influx POST '/query?db=test' 'q=SELECT value FROM kept')
  broker down influxdb
}

finds_programs() {
  check "program: prints where it is" broker program redis redis-server
  check "program: which runs" "$(<"$state/out")" --version
  check "program not on PATH: prints where it is" broker program postgres pgbench
  check "program not on PATH: which runs" "$(<"$state/out")" --version
  check "unknown program: fails" fails broker program redis nonsense
  check "unknown program: says so" says "redis: has no program \"nonsense\""
}

says_what_is_wrong() {
  check "unknown name: fails" fails broker up nonsense
  check "unknown name: names the known" says "known are: .*nats"
  check "unknown variant: fails" fails broker up nats-nonsense
  check "unknown node: fails" fails broker pause nats-cluster/9
  check "unknown node: names the known" says "its nodes are: 1 2 3"
  check "unknown command: fails" fails broker nonsense
  check "no name: fails" fails broker up
  check "lacks: nothing for what can be started" test -z "$(BROKER_BACKEND=native broker lacks nats)"
  check "lacks: says what cannot be" grep -q "containers only" <(BROKER_BACKEND=native broker lacks redpanda)
  check "unknown backend: fails" fails env BROKER_BACKEND=nonsense "$scripts/broker" up nats 2>"$state/err"
  check "unknown backend: names the known" says "docker or native"
}

# What all that comes by Maven needs is said once.
gets_java_one_way() {
  check "Maven: is asked under lib/ only" fails grep -nE '\b(mvn|default-jre)\b' "$scripts"/brokers/*.sh
  check "Java: is looked for under lib/ only" fails grep -nE 'type -P java' "$scripts"/brokers/*.sh
}

agrees_with_compose() {
  local file=$scripts/../docker-compose.yml variable default each
  for each in $(names); do
    BROKER_PORT_OFFSET=0 broker ports "$each"
  done >"$state/ports"
  while IFS=- read -r variable default; do
    check "compose: $variable has the same default" grep -qx "$variable=$default" "$state/ports"
  done < <(grep -oE 'BROKER_PORT_[A-Z0-9_]+:-[0-9]+' "$file" | tr -d : | sort -u)
  check "compose: has ports" grep -qE '^ +- 127\.0\.0\.1:\$' "$file"
  check "compose: publishes on loopback only" fails grep -nE '^ +- ("?(0\.0\.0\.0|\[::\]):|"?[0-9$]+.*:[0-9]+"?$)' <(grep -vE '^ +- 127\.0\.0\.1:' "$file")
}

names() { broker list | awk '{ print $1 }'; }

# required succeeds if BROKER_REQUIRE names a broker.
required() { [[ ${BROKER_REQUIRE:-} == all || ,${BROKER_REQUIRE:-}, == *,$1,* ]]; }

main() {
  local name reason
  if (($# == 0)); then
    says_what_is_wrong
    gets_java_one_way
    agrees_with_compose
    refuses_a_taken_port
    never_signals_a_foreign_process
    tidies_up_after_a_failure
    serves_several_callers
    keeps_the_data
    finds_programs
    mapfile -t all < <(names)
    set -- "${all[@]}"
  fi
  for name; do
    reason=$(broker list | awk -v name="$name" '$1 == name' | grep -o 'not here.*' || true)
    if [[ -z $reason ]]; then
      SECONDS=0
      lifecycle "$name"
      printf '%s took %s s\n' "$name" "$SECONDS"
    elif required "$name"; then
      check "$name is required, but $reason" false
    else
      printf 'skipped %s, %s\n' "$name" "$reason"
    fi
  done
  ((failures == 0)) || { printf '%s checks failed\n' "$failures"; exit 1; }
  echo "ok"
}

main "$@"
