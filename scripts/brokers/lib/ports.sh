# Ports: where they are declared, overridden, looked up, and found taken.

# node declares a node and its ports: node 1 client=4222 monitor=8222. Each may be overridden by the environment.
node() {
  local node=$1 pair role variable
  shift
  nodes+=("$node")
  for pair; do
    role=${pair%%=*}
    variable=$(port_variable "$node" "$role")
    ports+=("$node $role ${!variable:-$((${pair#*=} + ${BROKER_PORT_OFFSET:-0}))}")
  done
}

# port_variable names the environment variable of a port. The node is left out where there is one node only, whose
# name is 1, and so is the role of the port that clients use.
port_variable() {
  local variable=BROKER_PORT_$name
  [[ $1 == 1 && $name != *-cluster ]] || variable+=_$1
  [[ $2 == client ]] || variable+=_$2
  variable=${variable^^}
  printf '%s' "${variable//-/_}"
}

# port prints the port of a ROLE (client) of a NODE (1).
port() {
  local role=${1:-client} node=${2:-1} line
  for line in "${ports[@]}"; do
    if [[ $line == "$node $role "* ]]; then
      printf '%s' "${line##* }"
      return
    fi
  done
  fail "node $node has no port for \"$role\""
}

# remember_ports and recall_ports keep what a broker was started with, so that later commands need no environment.
remember_ports() { printf '%s\n' "${ports[@]}" >"$home/ports"; }
recall_ports() { [[ ! -f $home/ports ]] || mapfile -t ports <"$home/ports"; }

# refuse_taken_ports fails if anything listens on a port of NODE already.
refuse_taken_ports() {
  local line role number
  for line in "${ports[@]}"; do
    [[ $line == "$1 "* ]] || continue
    read -r _ role number <<<"$line"
    refuse_taken_port "$1" "$role" "$number"
  done
}

# refuse_taken_port NODE ROLE NUMBER
refuse_taken_port() {
  if [[ ! $3 =~ ^[0-9]{1,5}$ ]] || ((10#$3 < 1 || 10#$3 > 65535)); then
    fail "$(port_variable "$1" "$2") is \"$3\", which is not a port"
  fi
  if taken "$3"; then
    fail "port $3 ($2) is taken$(holder "$3"); stop that, or choose another by $(port_variable "$1" "$2")=... or BROKER_PORT_OFFSET=..."
  fi
}

# taken succeeds if something listens on a TCP port of this machine.
taken() {
  if [[ -r /proc/net/tcp ]]; then
    [[ -n $(listening_inodes "$1") ]]
  else
    (: <>"/dev/tcp/127.0.0.1/$1") 2>/dev/null
  fi
}

# holder prints " by pid 123 (its command)" for who listens on a port, as far as this user may know.
holder() {
  local pid='' inode process
  if [[ -r /proc/net/tcp ]]; then
    for inode in $(listening_inodes "$1"); do
      process=$(find /proc/[0-9]*/fd -lname "socket:\[$inode\]" -print -quit 2>/dev/null || true)
      [[ $process =~ ^/proc/([0-9]+)/ ]] && pid=${BASH_REMATCH[1]} && break
    done
  elif command -v lsof >/dev/null; then
    pid=$(lsof -nP -t -iTCP:"$1" -sTCP:LISTEN 2>/dev/null | head -n 1)
  fi
  [[ -z $pid ]] || printf ' by pid %s (%.100s)' "$pid" "$(command_line "$pid")"
}

# listening_inodes prints the sockets that listen on a port. State 0A of /proc/net/tcp is LISTEN.
listening_inodes() {
  local hex file files=()
  printf -v hex '%04X' "$1"
  for file in /proc/net/tcp /proc/net/tcp6; do
    [[ ! -r $file ]] || files+=("$file")
  done
  awk -v port=":$hex" '$4 == "0A" && substr($2, length($2) - 4) == port { print $10 }' "${files[@]}"
}

# show_ports prints every port of a broker, as the variable that would change it.
show_ports() {
  local line node role number
  for line in "${ports[@]}"; do
    read -r node role number <<<"$line"
    printf '%s=%s\n' "$(port_variable "$node" "$role")" "$number"
  done
}

# ports_of prints the ports of a node with their roles.
ports_of() {
  local line role number
  for line in "${ports[@]}"; do
    [[ $line != "$1 "* ]] || { read -r _ role number <<<"$line" && printf '%s %s ' "$role" "$number"; }
  done
}

# hosts prints the host:port of the clients of every NODE (all of them), separated by commas.
hosts() {
  local each list=()
  (($# > 0)) || set -- "${nodes[@]}"
  for each; do
    list+=("127.0.0.1:$(port client "$each")")
  done
  (IFS=, && printf '%s' "${list[*]}")
}
