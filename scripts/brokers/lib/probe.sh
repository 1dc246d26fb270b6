# Probes: how a server is asked, with nothing but bash, whether it answers.

# http_status prints the status code of GET PATH on a loopback PORT, with optional USER:PASSWORD.
http_status() {
  local status=''
  (
    exec {http}<>"/dev/tcp/127.0.0.1/$1"
    printf 'GET %s HTTP/1.0\r\nHost: 127.0.0.1\r\n' "$2" >&"$http"
    [[ -z ${3:-} ]] || printf 'Authorization: Basic %s\r\n' "$(printf '%s' "$3" | base64 -w 0)" >&"$http"
    printf '\r\n' >&"$http"
    read -r -t 5 _ status _ <&"$http"
    printf '%s' "$status"
  ) 2>/dev/null
}
