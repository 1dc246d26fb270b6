# KurrentDB, in insecure mode. There is no native way to it: no package registry has it. What is native is a stand-in, the server in memory of the driver's
# tests: it is this project's reading of the protocol, and what passes on it is not proven on KurrentDB.

names=(kurrentdb kurrentdb-standin)
contained=(kurrentdb)
source="the server in memory of the driver's tests, not KurrentDB, built with go"

layout() {
  case $name in
    kurrentdb) node 1 client=2113 ;;
    kurrentdb-standin) node 1 client=2114 ;;
  esac
}

missing() { command -v go >/dev/null || echo "Go (https://go.dev/dl) builds it"; }

standin() { printf '%s' "$cache/kurrentdb-standin/standin"; }

# Each time, because it is of this checkout.
install() {
  (cd "$repo" && GOWORK=off CGO_ENABLED=0 go build -o "$(standin)" github.com/xk6-broker/xk6-broker/extensions/xk6-kurrentdb/internal/standin) || fail "go build failed"
}

start() { spawn "$(standin)" "127.0.0.1:$(port)"; }

# A server of HTTP/2 sends its settings, a frame of type 4, to whoever sends the preface and settings of none.
healthy() {
  [[ $(printf 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0' | ask "$(port)" 4 | od -An -tu1) == *" 4" ]]
}

urls() { echo "kurrentdb kurrentdb://$(hosts)"; }
