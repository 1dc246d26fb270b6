# Apache RocketMQ: a name server, and a broker with the proxy that speaks gRPC, in two processes. One with access control, too.

rocketmq_version=5.5.0 # the same as in rocketmq/pom.xml
names=(rocketmq rocketmq-secure)
source="Maven artifacts of RocketMQ $rocketmq_version, on this machine's Java"

# The broker has a second port for producers, two below its first.
layout() {
  case $name in
    rocketmq) node 1 client=8081 namesrv=9876 proxy=8082 broker=10911 fast=10909 replica=10912 ;;
    rocketmq-secure) node 1 client=8091 namesrv=9886 proxy=8092 broker=10931 fast=10929 replica=10932 ;;
  esac
}

missing() { cannot_be_got "$(rocketmq_lacking)"; }

# rocketmq_lacking prints the Debian packages of the tools that are not here.
rocketmq_lacking() {
  local packages
  read -ra packages <<<"$(java_lacking "$(jars)")"
  [[ -f $(loopback) ]] || type -P cc >/dev/null || packages+=(gcc libc6-dev)
  printf '%s' "${packages[*]}"
}

jars() { printf '%s' "$cache/rocketmq-$rocketmq_version"; }

# loopback is a library that keeps the servers from listening everywhere: two of their ports have no setting for that.
loopback() { printf '%s' "$cache/rocketmq-loopback.so"; }

install() {
  install_lacking "$(rocketmq_lacking)"
  install_java "$(jars)" "RocketMQ $rocketmq_version" copy_maven "$scripts/brokers/rocketmq/pom.xml"
  if [[ ! -f $(loopback) ]]; then
    cc -shared -fPIC -O2 -o "$(loopback).part" "$scripts/brokers/rocketmq/loopback.c" -ldl || fail "the library that binds to loopback could not be compiled"
    mv -- "$(loopback).part" "$(loopback)"
  fi
}

configure() {
  mkdir -p "$dir/home/conf" "$dir/data/namesrv" "$dir/data/store"
  [[ $name != *-secure ]] || make_certs
  cat >"$dir/namesrv.properties" <<PROPERTIES
listenPort=$(port namesrv)
bindAddress=127.0.0.1
rocketmqHome=$dir/home
kvConfigPath=$dir/data/namesrv/kvConfig.json
configStorePath=$dir/data/namesrv/namesrv.properties
PROPERTIES
  cat >"$dir/broker.conf" <<PROPERTIES
brokerClusterName=DefaultCluster
brokerName=broker-a
brokerId=0
brokerIP1=127.0.0.1
bindAddress=127.0.0.1
listenPort=$(port broker)
haListenPort=$(port replica)
namesrvAddr=127.0.0.1:$(port namesrv)
storePathRootDir=$dir/data/store
storePathCommitLog=$dir/data/store/commitlog
# A gibibyte of the disk would be taken at once otherwise.
mappedFileSizeCommitLog=67108864
mappedFileSizeConsumeQueue=600000
# Messages would go otherwise, within seconds, while 85 % of the disk are used, however much is left.
cleanFileForciblyEnable=false
timerWheelEnable=true
# A topic is there when it was created, and not because somebody misspelt another's name.
autoCreateTopicEnable=false
autoCreateSubscriptionGroup=false
PROPERTIES
  cat >"$dir/rmq-proxy.json" <<JSON
{
  "rocketMQClusterName": "DefaultCluster",
  "proxyMode": "local",
  "namesrvAddr": "127.0.0.1:$(port namesrv)",
  "localServeAddr": "127.0.0.1",
  "grpcServerPort": $(port client),
  "grpcClientConsumerMinLongPollingTimeoutMillis": 100,
  "remotingListenPort": $(port proxy)$([[ $name != *-secure ]] || rocketmq_proxy_security)
}
JSON
  [[ $name != *-secure ]] || rocketmq_security >>"$dir/broker.conf"
}

# rocketmq_security prints the properties of a broker that asks who somebody is, and what they may. The proxy asks for itself.
rocketmq_security() {
  chmod 600 "$dir/broker.conf"
  cat <<PROPERTIES
authenticationEnabled=true
authenticationProvider=org.apache.rocketmq.auth.authentication.provider.DefaultAuthenticationProvider
authenticationMetadataProvider=org.apache.rocketmq.auth.authentication.provider.LocalAuthenticationMetadataProvider
initAuthenticationUser={"username":"$(<"$home/certs/user")","password":"$(<"$home/certs/password")"}
innerClientAuthenticationCredentials={"accessKey":"$(<"$home/certs/user")","secretKey":"$(<"$home/certs/password")"}
authorizationEnabled=true
authorizationProvider=org.apache.rocketmq.auth.authorization.provider.DefaultAuthorizationProvider
authorizationMetadataProvider=org.apache.rocketmq.auth.authorization.provider.LocalAuthorizationMetadataProvider
PROPERTIES
}

rocketmq_proxy_security() {
  chmod 600 "$dir/rmq-proxy.json"
  cat <<JSON
,
  "tlsTestModeEnable": false,
  "tlsKeyPath": "$home/certs/server-key.pem",
  "tlsCertPath": "$home/certs/server.pem",
  "authenticationEnabled": true,
  "authenticationProvider": "org.apache.rocketmq.auth.authentication.provider.DefaultAuthenticationProvider",
  "authenticationMetadataProvider": "org.apache.rocketmq.proxy.auth.ProxyAuthenticationMetadataProvider",
  "innerClientAuthenticationCredentials": "{\"accessKey\":\"$(<"$home/certs/user")\",\"secretKey\":\"$(<"$home/certs/password")\"}",
  "authorizationEnabled": true,
  "authorizationProvider": "org.apache.rocketmq.auth.authorization.provider.DefaultAuthorizationProvider",
  "authorizationMetadataProvider": "org.apache.rocketmq.proxy.auth.ProxyAuthorizationMetadataProvider"
JSON
}

# rocketmq_java prints the command line that runs a class of RocketMQ, one word per line, after the JVM's own options.
rocketmq_java() {
  printf '%s\n' java "$@" "-Duser.home=$dir/data" -cp "$(jars)/*"
}

# Both processes are of one group, which is what is signalled. If the broker dies by itself, what watches it ends the name server.
start() {
  local namesrv broker
  mapfile -t namesrv < <(rocketmq_java -Xms128m -Xmx128m -XX:+UseSerialGC)
  mapfile -t broker < <(rocketmq_java -Xms512m -Xmx512m -XX:MaxDirectMemorySize=512m -XX:+UseG1GC \
    --add-opens=java.base/java.nio=ALL-UNNAMED --add-opens=java.base/sun.nio.ch=ALL-UNNAMED --add-opens=java.base/java.lang=ALL-UNNAMED \
    "-Dcom.rocketmq.proxy.configPath=$dir/rmq-proxy.json")
  namesrv+=(org.apache.rocketmq.namesrv.NamesrvStartup -c "$dir/namesrv.properties")
  broker+=(org.apache.rocketmq.proxy.ProxyStartup -n "127.0.0.1:$(port namesrv)" -pm local -bc "$dir/broker.conf" -pc "$dir/rmq-proxy.json")
  # shellcheck disable=SC2016 # the inner shell expands it: so many words are the first command, and the rest the second
  ROCKETMQ_HOME=$dir/home LD_PRELOAD=$(loopback) spawn bash -c '"${@:2:$1}" & while kill -0 $$; do sleep 1; done 2>/dev/null && kill 0 & exec "${@:2+$1}"' rocketmq "${#namesrv[@]}" "${namesrv[@]}" "${broker[@]}"
}

# form makes the user who has no rights, by RocketMQ's own tool, which takes from a file who it is.
form() {
  [[ $name == *-secure ]] || return 0
  local tool
  (umask 077 && printf 'accessKey: %s\nsecretKey: %s\n' "$(<"$home/certs/user")" "$(<"$home/certs/password")" >"$dir/home/conf/tools.yml")
  mapfile -t tool < <(rocketmq_java -Xmx128m -XX:TieredStopAtLevel=1)
  ROCKETMQ_HOME=$dir/home "${tool[@]}" org.apache.rocketmq.tools.command.MQAdminStartup createUser -n "127.0.0.1:$(port namesrv)" \
    -b "127.0.0.1:$(port broker)" -u "$(<"$home/certs/outsider")" -p "$(<"$home/certs/password")" -t Normal >>"$dir/log" 2>&1 ||
    fail "the user $(<"$home/certs/outsider") could not be made; see $dir/log"
}

# The name server knows the broker, as soon as that has started, and its proxy listens.
healthy() { rocketmq_broker_known && taken "$(port client)"; }

# rocketmq_broker_known asks the name server for the cluster, whose answer names brokers, as its first 147 bytes show, which is all of one without. A frame is its length, that of the header, and the header.
rocketmq_broker_known() {
  local header='{"code":106,"language":"OTHER","version":0,"opaque":1,"flag":0,"extFields":{}}' lengths
  printf -v lengths '\\0\\0\\0\\x%02x' $((${#header} + 4)) ${#header}
  printf '%b%s' "$lengths" "$header" | ask "$(port namesrv)" 147 | grep -q -a broker-a
}

urls() {
  local query='?'
  [[ $name != *-secure ]] || query="$(tls_query)&"
  query+="nameServer=127.0.0.1:$(port namesrv)"
  echo "rocketmq rocketmq://$(hosts)$query"
  echo "rocketmq-fifo rocketmq-fifo://$(hosts)$query"
}
