# The native backend: the servers are processes of this machine. What fails leaves by fail, and the trap tidies up.

# lacks prints why the broker cannot be started natively; nothing if it can be.
lacks() { if [[ " ${contained[*]} " == *" $name "* ]]; then echo "it comes as containers only"; else missing; fi; }

native_up() {
  local node dir lacking
  lacking=$(lacks)
  [[ -z $lacking ]] || fail "cannot be started here: $lacking (and no Docker engine answers)"
  install_alone

  begun=() # the nodes that this call started
  fresh=   # set if this call made the state of the broker
  trap undo EXIT
  trap 'exit 130' INT TERM
  [[ -d $home ]] || fresh=yes
  mkdir -p "$home"
  printf 'native\n' >"$home/backend"
  remember_ports
  for node in "${nodes[@]}"; do
    dir=$home/$node
    case $(condition) in
      up) ;;
      paused) fail "node $node is paused; scripts/broker resume $name/$node" ;;
      *) native_begin "$node" ;;
    esac
  done
  native_settle
  trap - EXIT INT TERM
  urls | while read -r _ url; do printf '%s %s\n' "$name" "$url"; done
}

# native_begin starts one node with the data that it has.
native_begin() {
  local dir=$home/$1
  refuse_taken_ports "$1"
  if [[ ! -d $dir ]]; then
    mkdir -p "$dir/data"
    configure "$1"
  fi
  note "starting$(of_node "$1")"
  begun+=("$1")
  start "$1"
}

# native_settle waits until every node answers and all know of one another.
native_settle() {
  local node
  ((${#begun[@]} == 0)) || note "waiting until it answers"
  for node in "${nodes[@]}"; do
    await "$node" healthy "$node"
  done
  if [[ ! -f $home/formed ]]; then
    form
    : >"$home/formed"
  fi
  await "${nodes[*]}" formed
}

# undo is what remains of an up that failed: nothing.
undo() {
  local node dir
  for node in "${begun[@]}"; do
    dir=$home/$node
    signal KILL
    gone 10 || true
  done
  [[ -z $fresh ]] || rm -rf -- "$home"
}

# await NODES COMMAND... waits until COMMAND succeeds, or fails with the end of the logs of NODES.
await() {
  local watched=$1 node dir deadline=$((SECONDS + ${BROKER_WAIT:-120})) why=''
  shift
  until "$@"; do
    for node in $watched; do
      dir=$home/$node
      [[ $(condition) == up ]] || why="node $node is $(condition)"
    done
    ((SECONDS < deadline)) || why="no answer within ${BROKER_WAIT:-120} s"
    if [[ -n $why ]]; then
      for node in $watched; do
        printf '%s\n' "--- the end of the log of $name/$node" >&2
        tail -n 20 "$home/$node/log" >&2 || true
      done
      fail "$why"
    fi
    sleep 0.1
  done
}

native_down() {
  local node dir
  [[ -d $home ]] || return 0
  refuse_node "$1" down
  note "stopping"
  for node in "${nodes[@]}"; do
    dir=$home/$node
    signal KILL # the data goes too, so there is nothing to put in order
  done
  for node in "${nodes[@]}"; do
    dir=$home/$node
    gone 10 || fail "node $node does not end"
  done
  rm -rf -- "$home"
}

native_stop() {
  local node dir
  [[ -d $home ]] || return 0
  refuse_node "$1" down
  note "stopping, and keeping the data"
  native_end "${nodes[@]}"
}

# native_end ends nodes in good order, all at the same time: the last ones of a cluster may need the others for it.
native_end() {
  local node dir deadline=$((SECONDS + 30))
  for node; do
    dir=$home/$node
    signal TERM
    signal CONT
  done
  for node; do
    dir=$home/$node
    # A Redis that writes its first append-only file refuses to end, and must be asked again.
    until gone 2; do
      ((SECONDS < deadline)) || { signal KILL && break; }
      signal TERM
    done
    gone 10 || fail "node $node does not end"
    rm -f -- "$dir/pid"
  done
}

native_restart() {
  local targets=("${nodes[@]}") node
  [[ -z $1 ]] || targets=("$1")
  [[ -d $home ]] || fail "is not up, so there is nothing to restart; scripts/broker up $name"
  begun=()
  native_end "${targets[@]}"
  for node in "${targets[@]}"; do
    native_begin "$node"
  done
  for node in "${targets[@]}"; do
    await "$node" healthy "$node"
  done
  # A single node that comes back is not made to wait for others that are still dead.
  [[ -n $1 ]] || native_settle
}

native_pause() { native_signal "$1" STOP up paused; }
native_resume() { native_signal "$1" CONT paused up; }
native_kill() { native_signal "$1" KILL '@(up|paused)' dead; }

# native_signal NODE SIGNAL FROM TO sends SIGNAL to a node, or all of them, and waits until the condition is TO.
native_signal() {
  local targets=("${nodes[@]}") node dir deadline
  [[ -z $1 ]] || targets=("$1")
  for node in "${targets[@]}"; do
    dir=$home/$node
    # shellcheck disable=SC2053 # FROM is a pattern
    [[ $(condition) == $3 || $(condition) == "$4" ]] || fail "node $node is $(condition)"
    signal "$2"
    deadline=$((SECONDS + 10))
    until [[ $(condition) == "$4" ]]; do
      ((SECONDS < deadline)) || fail "node $node is $(condition), not $4"
      sleep 0.02
    done
  done
}

native_status() {
  local targets=("${nodes[@]}") node dir is pid born code=0
  [[ -z $1 ]] || targets=("$1")
  for node in "${targets[@]}"; do
    dir=$home/$node
    is=$(condition)
    [[ $is != up ]] || healthy "$node" || is=unhealthy
    [[ $is == up ]] || code=3
    pid=-
    [[ $is == @(down|dead) ]] || read_pid
    printf '%-24s %-10s pid %-8s %s\n' "$name/$node" "$is" "$pid" "$(ports_of "$node")"
  done
  return $code
}

native_logs() {
  local targets=("${nodes[@]}") node
  [[ -z $1 ]] || targets=("$1")
  for node in "${targets[@]}"; do
    [[ -f $home/$node/log ]] || fail "node $node has no log, because it was not started"
    ((${#targets[@]} == 1)) || printf '==> %s/%s\n' "$name" "$node"
    cat "$home/$node/log"
  done
}

refuse_node() { [[ -z $1 ]] || fail "$2 takes the whole broker; scripts/broker kill $name/$1 ends one node"; }

# of_node names a node where there are several.
of_node() { ((${#nodes[@]} == 1)) || printf ' node %s' "$1"; }

# native_summary is the worst condition of any node.
native_summary() {
  local node dir worst=up is
  for node in "${nodes[@]}"; do
    dir=$home/$node
    is=$(condition)
    [[ $is == up ]] || worst=$is
  done
  printf '%s' "$worst"
}
