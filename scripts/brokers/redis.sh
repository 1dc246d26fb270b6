# Redis: alone with an append-only file, alone in memory only, a primary with a replica, those under three sentinels, a
# cluster of three primaries with a replica each, and alone with TLS and passwords.

names=(redis redis-memory redis-replica redis-sentinel redis-cluster redis-secure)
source="Debian package redis-server, unpacked into the cache, or the redis-server on PATH"

layout() {
  local i
  case $name in
    redis) node 1 client=6379 ;;
    redis-memory) node 1 client=6378 ;;
    redis-secure) node 1 client=6377 ;;
    redis-replica)
      node primary client=6380
      node replica client=6381
      ;;
    redis-sentinel)
      node primary client=6390
      node replica client=6391
      for i in 1 2 3; do node "sentinel-$i" client=$((26378 + i)); done
      ;;
    redis-cluster)
      for i in 1 2 3 4 5 6; do node "$i" client=$((7000 + i)) bus=$((17000 + i)); done
      ;;
  esac
}

missing() { redis_tool redis-server >/dev/null || has_debian || echo "redis-server is not installed, and there is no apt-get to get it"; }

install() { redis_tool redis-server >/dev/null || unpack_debian "$cache/redis" redis-server; }

# redis_tool prints where a command of Redis is.
redis_tool() { locate "$cache/redis" "$1"; }

configure() {
  [[ $name != *-secure ]] || make_certs
  {
    printf '%s\n' "bind 127.0.0.1" "dir \"$dir/data\""
    if [[ $name == *-secure ]]; then
      redis_security
    else
      echo "port $(port client "$1")"
    fi
    case $1 in
      sentinel-*)
        # The name mymaster is the one of Redis's own examples. Two seconds of silence are a failure.
        printf '%s\n' \
          "sentinel monitor mymaster 127.0.0.1 $(port client primary) 2" \
          "sentinel down-after-milliseconds mymaster 2000" \
          "sentinel failover-timeout mymaster 10000"
        ;;
      *)
        printf '%s\n' 'save ""' "repl-diskless-sync-delay 0"
        if [[ $name == redis-memory ]]; then
          echo "appendonly no"
        else
          printf '%s\n' "appendonly yes" "appendfsync everysec"
        fi
        ;;&
      replica) echo "replicaof 127.0.0.1 $(port client primary)" ;;
    esac
    if [[ $name == redis-cluster ]]; then
      printf '%s\n' "cluster-enabled yes" "cluster-port $(port bus "$1")" "cluster-node-timeout 5000"
    fi
  } >"$dir/redis.conf" # Redis and its sentinels rewrite it when roles change
}

redis_security() {
  local certs=$home/certs
  cat <<CONF
port 0
tls-port $(port)
tls-cert-file "$certs/server.pem"
tls-key-file "$certs/server-key.pem"
tls-ca-cert-file "$certs/ca.pem"
tls-auth-clients optional
user default off
user $(<"$certs/user") on >$(<"$certs/password") ~* &* +@all
user $(<"$certs/outsider") on >$(<"$certs/password") -@all +auth +hello
CONF
}

start() {
  local role=()
  [[ $1 != sentinel-* ]] || role=(--sentinel)
  LD_LIBRARY_PATH=$(libraries "$cache/redis") spawn "$(redis_tool redis-server)" "$dir/redis.conf" "${role[@]}"
}

healthy() { [[ $(redis_cli "$1" ping) == PONG ]]; }

redis_cli() {
  local node=$1 security=()
  shift
  if [[ $name == *-secure ]]; then
    export REDISCLI_AUTH
    REDISCLI_AUTH=$(<"$home/certs/password")
    security=(--tls --cacert "$home/certs/ca.pem" --user "$(<"$home/certs/user")")
  fi
  LD_LIBRARY_PATH=$(libraries "$cache/redis") bounded "${patience:-5}" "$(redis_tool redis-cli)" -h 127.0.0.1 -p "$(port client "$node")" "${security[@]}" "$@" 2>/dev/null
}

form() {
  [[ $name == redis-cluster ]] || return 0
  # shellcheck disable=SC2046 # one word per node
  patience=60 redis_cli 1 --cluster create $(hosts | tr ',' ' ') --cluster-replicas 1 --cluster-yes >>"$home/1/log" ||
    fail "redis-cli --cluster create failed; its words are at the end of $home/1/log"
}

formed() {
  local node
  case $name in
    redis-replica) [[ $(redis_cli primary info replication) == *state=online* ]] ;;
    redis-sentinel)
      for node in sentinel-1 sentinel-2 sentinel-3; do
        [[ $(redis_cli "$node" info sentinel) == *status=ok,*slaves=1,sentinels=3* ]] || return 1
      done
      ;;
    redis-cluster)
      for node in "${nodes[@]}"; do
        [[ $(redis_cli "$node" cluster info) == *cluster_state:ok*cluster_known_nodes:6* ]] || return 1
        [[ $(redis_cli "$node" info replication) != *master_link_status:down* ]] || return 1
      done
      ;;
  esac
}

urls() {
  local driver query=''
  local hosts
  case $name in
    redis-replica) hosts=$(hosts primary) ;;
    redis-sentinel) hosts=$(hosts sentinel-1 sentinel-2 sentinel-3) query='?master=mymaster' ;;
    redis-secure) hosts=$(hosts) query=$(tls_query) ;;
    *) hosts=$(hosts) ;;
  esac
  for driver in redis-streams redis-list redis-pubsub; do
    echo "$driver $driver://$hosts$query"
  done
}
