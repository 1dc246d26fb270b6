# NATS with JetStream: one node, three whose streams may have three replicas, or two that want TLS: one of them a password
# besides, the other the client's certificate.

nats_version=2.15.2
names=(nats nats-cluster nats-secure)
source="go install nats-server v$nats_version"

layout() {
  case $name in
    nats) node 1 client=4222 monitor=8222 ;;
    nats-cluster)
      node 1 client=4223 monitor=8231 route=6241
      node 2 client=4224 monitor=8232 route=6242
      node 3 client=4225 monitor=8233 route=6243
      ;;
    nats-secure)
      node password client=4232 monitor=8242
      node certificate client=4233 monitor=8243
      ;;
  esac
}

missing() { [[ -x $(nats_server) ]] || command -v go >/dev/null || echo "Go (https://go.dev/dl) builds it"; }

nats_server() { printf '%s' "$cache/nats-$nats_version/nats-server"; }

install() {
  [[ ! -x $(nats_server) ]] || return 0
  note "building nats-server v$nats_version with go install"
  go_install "github.com/nats-io/nats-server/v2@v$nats_version" "$(dirname "$(nats_server)")"
}

configure() {
  local peer
  [[ $name != *-secure || -d $home/certs ]] || make_certs
  {
    printf 'server_name: "%s-%s"\nlisten: "127.0.0.1:%s"\nhttp: "127.0.0.1:%s"\n' \
      "$name" "$1" "$(port client "$1")" "$(port monitor "$1")"
    printf 'jetstream { store_dir: "%s" }\n' "$dir/data"
    if [[ $name == *-cluster ]]; then
      printf 'cluster {\n  name: "%s"\n  listen: "127.0.0.1:%s"\n  routes: [\n' "$name" "$(port route "$1")"
      for peer in "${nodes[@]}"; do
        printf '    "nats://127.0.0.1:%s"\n' "$(port route "$peer")"
      done
      printf '  ]\n}\n'
    fi
    [[ $name != *-secure ]] || nats_security "$1"
  } >"$dir/nats.conf"
}

nats_security() {
  local certs=$home/certs verify=false users
  printf -v users '{ user: "%s", password: "%s" }, { user: "%s", password: "%s", permissions: { publish: { deny: ">" }, subscribe: { deny: ">" } } }' \
    "$(<"$certs/user")" "$(<"$certs/password")" "$(<"$certs/outsider")" "$(<"$certs/password")"
  if [[ $1 == certificate ]]; then
    verify=true users=
  fi
  printf 'tls { cert_file: "%s", key_file: "%s", ca_file: "%s", verify: %s }\n' "$certs/server.pem" "$certs/server-key.pem" "$certs/ca.pem" $verify
  [[ -z $users ]] || printf 'authorization { users: [%s] }\n' "$users"
}

start() { spawn "$(nats_server)" -c "$dir/nats.conf"; }

# /healthz is 200 once the server accepts clients and its JetStream is current; in a cluster that needs the others.
healthy() { [[ $(http_status "$(port monitor "$1")" /healthz) == 200 ]]; }

urls() {
  local hosts query=''
  hosts=$(hosts)
  if [[ $name == *-secure ]]; then
    hosts=$(hosts password) query=$(tls_query)
  fi
  echo "nats nats://$hosts$query"
  echo "nats-jetstream jetstream://$hosts$query"
}

also() { [[ $name != *-secure ]] || echo "nats-certificate nats://$(hosts certificate)$(tls_query)"; }
