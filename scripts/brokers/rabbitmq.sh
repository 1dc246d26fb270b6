# RabbitMQ with its management, stream and Prometheus plugins: one node, a cluster of three, one node with TLS, passwords and
# certificates, or one node of RabbitMQ 4. The nodes find one another by an epmd of their own, so that several sets of them do not meet.
#
# RabbitMQ 4 is that of Debian 13, whose libraries an older Debian does not have: it runs in a folder with that system, as its root.

names=(rabbitmq rabbitmq-cluster rabbitmq-secure rabbitmq-4)
source="Debian packages rabbitmq-server and Erlang, unpacked into the cache, or as installed"
[[ ${name:-} != *-4 ]] || source="Debian 13 with its package rabbitmq-server, in a folder of the cache"

layout() {
  local i
  case $name in
    rabbitmq)
      node epmd client=14369
      node 1 client=5672 management=15672 stream=5552 prometheus=15692 distribution=25672
      ;;
    rabbitmq-cluster)
      node epmd client=14370
      for i in 1 2 3; do
        node "$i" client=$((5680 + i)) management=$((15680 + i)) stream=$((5560 + i)) prometheus=$((15700 + i)) distribution=$((25680 + i))
      done
      ;;
    rabbitmq-secure)
      node epmd client=14371
      node 1 client=5671 management=15670 prometheus=15690 distribution=25670
      ;;
    rabbitmq-4)
      node epmd client=14372
      node 1 client=5677 management=15677 stream=5557 prometheus=15697 distribution=25677
      ;;
  esac
}

missing() {
  if [[ $name == *-4 ]]; then
    if ! can_bootstrap_debian; then
      echo "a Debian 13 in a folder can be made and run on a Debian only, by root who may mount"
    elif [[ ! -d $(rabbitmq_root) && -z $(debian_mirror) ]]; then
      echo "$no_mirror"
    fi
  else
    [[ -n $(rabbitmq_sbin) ]] || has_debian || echo "RabbitMQ is not installed, and there is no apt-get to get it"
  fi
}

install() {
  if [[ $name == *-4 ]]; then
    [[ -d $(rabbitmq_root) ]] || bootstrap_debian "$(rabbitmq_root)" trixie rabbitmq-server
    return
  fi
  [[ -n $(rabbitmq_sbin) ]] || unpack_debian "$cache/rabbitmq" rabbitmq-server
  # Erlang's start script holds the folder that it was packaged for.
  local erl=$cache/rabbitmq/usr/lib/erlang
  [[ ! -d $erl ]] || sed -i "s|^\( *ROOTDIR=\).*|\1$erl|" "$erl/bin/erl"
}

# rabbitmq_root prints the folder with the system that RabbitMQ 4 runs in.
rabbitmq_root() { printf '%s' "$cache/rabbitmq-4"; }

# rabbitmq_sbin prints the folder of RabbitMQ's own scripts. Those in /usr/sbin are Debian's, and change the user.
rabbitmq_sbin() {
  local folder
  if [[ $name == *-4 ]]; then
    for folder in "$(rabbitmq_root)"/usr/lib/rabbitmq/lib/rabbitmq_server-*/sbin; do
      printf '%s' "${folder#"$(rabbitmq_root)"}"
    done
    return
  fi
  for folder in "$cache"/rabbitmq/usr/lib/rabbitmq/lib/rabbitmq_server-*/sbin /usr/lib/rabbitmq/lib/rabbitmq_server-*/sbin; do
    if [[ -x $folder/rabbitmq-server ]]; then
      printf '%s' "$folder"
      return
    fi
  done
}

# rabbitmq_node prints the Erlang name of a node.
rabbitmq_node() { printf 'rabbit%s@localhost' "$1"; }

configure() {
  local each
  if [[ $1 == epmd ]]; then
    # The cookie, which every node must have, is what Erlang nodes know one another by.
    mkdir -p "$home/erlang"
    od -A n -t x1 -N 20 /dev/urandom | tr -d ' \n' >"$home/erlang/.erlang.cookie"
    chmod 400 "$home/erlang/.erlang.cookie"
    return
  fi
  cp "$scripts/brokers/rabbitmq/enabled_plugins" "$dir/enabled_plugins"
  cat >"$dir/rabbitmq.conf" <<CONF
management.tcp.ip = 127.0.0.1
management.tcp.port = $(port management "$1")
prometheus.tcp.ip = 127.0.0.1
prometheus.tcp.port = $(port prometheus "$1")
vm_memory_high_watermark.absolute = 1GB
log.console = true
log.console.level = info
log.file = false
CONF
  if [[ $name == *-secure ]]; then
    rabbitmq_security
    return
  fi
  cat >>"$dir/rabbitmq.conf" <<CONF
listeners.tcp.1 = 127.0.0.1:$(port client "$1")
stream.listeners.tcp.1 = 127.0.0.1:$(port stream "$1")
stream.advertised_host = 127.0.0.1
stream.advertised_port = $(port stream "$1")
CONF
  if [[ $name == *-cluster ]]; then
    echo "cluster_formation.peer_discovery_backend = classic_config" >>"$dir/rabbitmq.conf"
    for each in 1 2 3; do
      echo "cluster_formation.classic_config.nodes.$each = $(rabbitmq_node "$each")" >>"$dir/rabbitmq.conf"
    done
  fi
}

# A client with a certificate may leave the password out: sasl=external.
rabbitmq_security() {
  local certs=$home/certs
  make_certs
  cat >>"$dir/rabbitmq.conf" <<CONF
listeners.tcp = none
listeners.ssl.1 = 127.0.0.1:$(port)
ssl_options.cacertfile = $certs/ca.pem
ssl_options.certfile = $certs/server.pem
ssl_options.keyfile = $certs/server-key.pem
ssl_options.verify = verify_peer
ssl_options.fail_if_no_peer_cert = false
ssl_cert_login_from = common_name
auth_mechanisms.1 = PLAIN
auth_mechanisms.2 = EXTERNAL
default_user = $(<"$certs/user")
default_pass = $(<"$certs/password")
CONF
  chmod 600 "$dir/rabbitmq.conf"
  echo '[rabbitmq_management,rabbitmq_prometheus,rabbitmq_auth_mechanism_ssl].' >"$dir/enabled_plugins"
}

start() {
  local erlang=$cache/rabbitmq/usr/lib/erlang/bin at=$home within=()
  # RUNNING_UNDER_SYSTEMD makes the script become the server instead of a parent that waits for it.
  (
    export PATH LD_LIBRARY_PATH HOME
    if [[ $name == *-4 ]]; then
      at=/mnt
      in_debian "$(rabbitmq_root)" "$home"
      PATH=/usr/sbin:/usr/bin:/sbin:/bin
    else
      PATH=$erlang:$PATH:/usr/lib/erlang/bin
      LD_LIBRARY_PATH=$(libraries "$cache/rabbitmq")
    fi
    HOME=$at/erlang
    export ERL_EPMD_ADDRESS=127.0.0.1 ERL_EPMD_PORT
    ERL_EPMD_PORT=$(port client epmd)
    if [[ $1 == epmd ]]; then
      spawn "${within[@]}" epmd
      exit
    fi
    await epmd healthy epmd
    # At first the others join node 1, which must be there already. Later each waits for the others' data by itself.
    [[ $1 == 1 || -f $home/formed ]] || await 1 healthy 1
    at+=/$1
    export ERL_CRASH_DUMP=$at/erl_crash.dump RUNNING_UNDER_SYSTEMD=1 RABBITMQ_CONF_ENV_FILE=/dev/null
    export RABBITMQ_NODENAME RABBITMQ_DIST_PORT
    RABBITMQ_NODENAME=$(rabbitmq_node "$1")
    RABBITMQ_DIST_PORT=$(port distribution "$1")
    export RABBITMQ_MNESIA_BASE=$at/data RABBITMQ_LOG_BASE=$at RABBITMQ_LOGS=- RABBITMQ_PID_FILE=$at/rabbitmq.pid
    export RABBITMQ_CONFIG_FILE=$at/rabbitmq.conf RABBITMQ_ENABLED_PLUGINS_FILE=$at/enabled_plugins
    export RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS="-start_epmd false -kernel inet_dist_use_interface {127,0,0,1}"
    spawn "${within[@]}" "$(rabbitmq_sbin)/rabbitmq-server"
  )
}

# epmd is asked for the names that it knows, and answers with its port in four bytes first. A RabbitMQ node is asked for
# its listener and its alarms: with an alarm it would take no messages.
healthy() {
  if [[ $1 == epmd ]]; then
    [[ $(printf '\0\001n' | ask "$(port client epmd)" 4 | wc -c) -eq 4 ]]
  else
    [[ $(rabbitmq_api "$1" "health/checks/port-listener/$(port client "$1")") == 200 && $(rabbitmq_api "$1" health/checks/alarms) == 200 ]]
  fi
}

rabbitmq_api() { http_status "$(port management "$1")" "/api/$2" "$(rabbitmq_user)"; }

rabbitmq_user() {
  if [[ $name == *-secure ]]; then
    printf '%s:%s' "$(<"$home/certs/user")" "$(<"$home/certs/password")"
  else
    printf 'guest:guest'
  fi
}

# form makes the user who may do nothing. The answer to a creation is 201.
form() {
  local certs=$home/certs body answer
  [[ $name == *-secure ]] || return 0
  body="{\"password\":\"$(<"$certs/password")\",\"tags\":\"\"}"
  answer=$(printf 'PUT /api/users/%s HTTP/1.0\r\nHost: 127.0.0.1\r\nAuthorization: Basic %s\r\nContent-Length: %s\r\n\r\n%s' \
    "$(<"$certs/outsider")" "$(rabbitmq_user | base64)" "${#body}" "$body" | ask "$(port management)" 12)
  [[ $answer == *" 201" ]] || fail "the user $(<"$certs/outsider") could not be made: $answer"
}

# formed counts the nodes that each node sees running.
formed() {
  local each running
  [[ $name == *-cluster ]] || return 0
  for each in 1 2 3; do
    running=$(http_get "$(port management "$each")" "/api/nodes?columns=running" guest:guest | grep -o '"running":true' | wc -l)
    ((running == 3)) || return 1
  done
}

urls() {
  local driver address
  case $name in
    *-cluster) address=guest:guest@$(hosts 1 2 3) ;;
    *-secure) address=$(hosts 1)$(tls_query) ;;
    *) address=guest:guest@$(hosts 1) ;;
  esac
  for driver in rabbitmq rabbitmq-pubsub rabbitmq-stream; do
    echo "$driver $driver://$address"
  done
}
