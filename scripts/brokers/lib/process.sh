# Processes: a node is one process that leads its own process group. Its pid file holds the pid and the moment of its
# birth, and only a process that has both is ever signalled.

# spawn starts a command as the process of node $dir, with its output in the node's log.
spawn() {
  # Job control gives the command its own process group, which a Ctrl-C at the caller's terminal does not reach. The
  # descriptor of the lock must not live on in the server.
  set -m
  (cd "$dir" && exec nohup "$@") </dev/null >>"$dir/log" 2>&1 {lock}>&- &
  local pid=$!
  set +m
  printf '%s %s\n' "$pid" "$(birth "$pid")" >"$dir/pid"
  disown "$pid" 2>/dev/null || true
}

# condition prints what node $dir is: up, paused, ending, dead, or down if it was never started.
condition() {
  local pid born letter threads stat
  read_pid || { printf 'down'; return; }
  read_stat "$pid"
  if [[ $letter == '' || $(birth "$pid") != "$born" ]]; then
    printf 'dead'
  elif [[ $letter == [ZX] ]]; then
    # The first thread may have ended before the others, which still hold the ports.
    ((threads > 1)) && printf 'ending' || printf 'dead'
  elif [[ $letter == T ]]; then
    printf 'paused'
  else
    printf 'up'
  fi
}

# read_pid fills the caller's pid and born.
read_pid() { [[ -s $dir/pid ]] && read -r pid born <"$dir/pid" && [[ $pid =~ ^[0-9]+$ && -n $born ]]; }

# read_stat fills the caller's letter, threads and stat (its fields after the command); letter is empty if there is no
# such process.
read_stat() {
  letter='' threads=1 stat=()
  if [[ -r /proc/self/stat ]]; then
    local line=''
    { read -r line <"/proc/$1/stat"; } 2>/dev/null || return 0
    # The command stands in parentheses and may hold anything.
    read -ra stat <<<"${line##*) }"
    letter=${stat[0]} threads=${stat[17]}
  else
    letter=$(ps -o stat= -p "$1" | cut -c 1)
  fi
}

# birth prints what tells a process from any other that ever has the same pid: which boot it was, and when.
birth() {
  local letter threads stat boot=''
  if [[ -r /proc/self/stat ]]; then
    read_stat "$1"
    [[ -n $letter ]] || return 0
    read -r boot </proc/sys/kernel/random/boot_id || true
    printf '%s-%s' "$boot" "${stat[19]}"
  else
    ps -o lstart= -p "$1" | tr ' ' _
  fi
}

command_line() {
  if [[ -r /proc/$1/cmdline ]]; then
    tr '\0\n' '  ' <"/proc/$1/cmdline"
  else
    ps -o command= -p "$1" 2>/dev/null || true
  fi
}

# signal sends SIGNAL to the process group of node $dir, and to what it has outside of that, if it still is the process that we started.
signal() {
  local pid born group others
  [[ $(condition) == @(up|paused) ]] || return 0
  read_pid || return 0
  others=$(outside "$pid")
  for group in "$pid" $others; do
    kill -s "$1" -- "-$group" 2>/dev/null || true # it may have ended meanwhile
  done
}

# gone waits up to SECONDS until the process of node $dir has ended.
gone() {
  local deadline=$((SECONDS + $1))
  until [[ $(condition) == @(dead|down) ]]; do
    ((SECONDS < deadline)) || return 1
    sleep 0.05
  done
}

# lock holds a lock on a file until this shell ends. Without flock (it is part of Linux) commands that run at the same
# time are not kept apart.
lock() {
  command -v flock >/dev/null || { lock=3; return 0; }
  exec {lock}>"$1"
  flock "$lock"
}
