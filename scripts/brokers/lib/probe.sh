# Probes: how a server is asked, with little more than bash, whether it answers.

# ask PORT BYTES sends standard input to a loopback port and prints the first BYTES bytes of the answer.
ask() (
  exec 2>/dev/null # that nobody listens yet is no news
  exec {server}<>"/dev/tcp/127.0.0.1/$1" || exit 1
  cat >&"$server"
  bounded 5 head -c "$2" <&"$server"
)

# http_get prints the answer to GET PATH on a loopback PORT, head and body, with optional USER:PASSWORD. The caller's ask may
# name what asks instead of ask.
http_get() {
  local user=''
  [[ -z ${3:-} ]] || user="Authorization: Basic $(printf '%s' "$3" | base64)"$'\r\n'
  printf 'GET %s HTTP/1.0\r\nHost: 127.0.0.1\r\n%s\r\n' "$2" "$user" | "${ask:-ask}" "$1" 1000000
}

# http_status prints the status code alone.
http_status() {
  local status=''
  read -r _ status _ < <(http_get "$@") || true
  printf '%s' "${status%$'\r'}"
}

# bounded runs a command for at most SECONDS, where the machine can do that.
bounded() {
  if command -v timeout >/dev/null; then
    timeout "$@"
  else
    "${@:2}"
  fi
}
