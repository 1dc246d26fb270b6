# Kafka in KRaft mode with share groups: one node, three that keep every partition three times, or one
# with TLS, SASL, certificates and access control.

kafka_version=4.3.1 # the same as in kafka/pom.xml
names=(kafka kafka-cluster kafka-secure)
source="Maven artifacts of Kafka $kafka_version, on this machine's Java"

layout() {
  local i
  case $name in
    kafka) node 1 client=9092 controller=9093 ;;
    kafka-cluster)
      for i in 1 2 3; do node "$i" client=$((9191 + i)) controller=$((9195 + i)); done
      ;;
    kafka-secure) node 1 client=9292 certificate=9293 controller=9294 ;;
  esac
}

missing() { cannot_be_got "$(java_lacking "$(jars)")"; }

jars() { printf '%s' "$cache/kafka-$kafka_version"; }

install() { install_java "$(jars)" "Kafka $kafka_version" copy_maven "$scripts/brokers/kafka/pom.xml"; }

# kafka_java prints the command line that runs a class of Kafka, one word per line, after the JVM's own options.
kafka_java() {
  printf '%s\n' java "$@" -Dlog4j2.configurationFile="$scripts/brokers/kafka/log4j2.properties" -cp "$(jars)/*"
}

configure() {
  local copies=1 enough=1
  if [[ $name == *-cluster ]]; then
    copies=3 enough=2
  fi
  cat >"$dir/server.properties" <<PROPERTIES
process.roles=broker,controller
node.id=$1
controller.listener.names=CONTROLLER
controller.quorum.bootstrap.servers=$(controllers | cut -d ' ' -f 2 | paste -s -d ,)
log.dirs=$dir/data
num.partitions=1
default.replication.factor=$copies
min.insync.replicas=$enough
auto.create.topics.enable=false
# The internal topics are small, so that they are there soon after their first use.
offsets.topic.num.partitions=4
offsets.topic.replication.factor=$copies
transaction.state.log.num.partitions=4
transaction.state.log.replication.factor=$copies
transaction.state.log.min.isr=$enough
share.coordinator.state.topic.num.partitions=4
share.coordinator.state.topic.replication.factor=$copies
share.coordinator.state.topic.min.isr=$enough
# A new group starts at once instead of waiting three seconds for further members, and the second member of a share
# group has its partitions at once instead of after five.
group.initial.rebalance.delay.ms=0
group.share.assignment.interval.ms=0
PROPERTIES
  if [[ $name == *-secure ]]; then
    kafka_security >>"$dir/server.properties"
  else
    cat >>"$dir/server.properties" <<PROPERTIES
listeners=CLIENT://127.0.0.1:$(port client "$1"),CONTROLLER://127.0.0.1:$(port controller "$1")
listener.security.protocol.map=CLIENT:PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=CLIENT
PROPERTIES
  fi
  kafka_format "$1"
}

# kafka_security prints the properties of a broker that takes passwords (PLAIN, SCRAM), tokens (OAUTHBEARER, unsigned ones)
# and, on a port of its own, certificates; always by TLS.
kafka_security() {
  local certs=$home/certs user password modules=org.apache.kafka.common.security
  make_certs
  user=$(<"$certs/user") password=$(<"$certs/password")
  (umask 077 && cat "$certs/server-key.pem" "$certs/server.pem" >"$certs/server-both.pem")
  chmod 600 "$dir/server.properties"
  cat <<PROPERTIES
listeners=CLIENT://127.0.0.1:$(port),CERTIFICATE://127.0.0.1:$(port certificate),CONTROLLER://127.0.0.1:$(port controller)
listener.security.protocol.map=CLIENT:SASL_SSL,CERTIFICATE:SSL,CONTROLLER:PLAINTEXT
inter.broker.listener.name=CERTIFICATE
ssl.keystore.type=PEM
ssl.keystore.location=$certs/server-both.pem
ssl.truststore.type=PEM
ssl.truststore.location=$certs/ca.pem
listener.name.certificate.ssl.client.auth=required
ssl.principal.mapping.rules=RULE:^CN=([^,]*).*\$/\$1/,DEFAULT
sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER
listener.name.client.plain.sasl.jaas.config=$modules.plain.PlainLoginModule required user_$user="$password" user_$(<"$certs/outsider")="$password";
listener.name.client.scram-sha-256.sasl.jaas.config=$modules.scram.ScramLoginModule required;
listener.name.client.scram-sha-512.sasl.jaas.config=$modules.scram.ScramLoginModule required;
listener.name.client.oauthbearer.sasl.jaas.config=$modules.oauthbearer.OAuthBearerLoginModule required;
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS;User:server;User:$user
PROPERTIES
}

# controllers prints "node host:port" of every controller.
controllers() {
  local each
  for each in "${nodes[@]}"; do
    echo "$each 127.0.0.1:$(port controller "$each")"
  done
}

# kafka_format makes the storage of a node. All of them must be given the same cluster id and the same controllers, whose
# folders have ids that are 22 characters of base64 each.
kafka_format() {
  local java quorum mechanism each scram=()
  mapfile -t java < <(kafka_java -Xmx128m -XX:TieredStopAtLevel=1)
  quorum=$(controllers | while read -r each address; do printf '%s@%s:AAAAAAAAAAAAAAAAAAAA%sw\n' "$each" "$address" "$each"; done | paste -s -d ,)
  if [[ $name == *-secure ]]; then
    for mechanism in SCRAM-SHA-256 SCRAM-SHA-512; do
      for each in user outsider; do
        scram+=(--add-scram "$mechanism=[name=$(<"$home/certs/$each"),password=$(<"$home/certs/password")]")
      done
    done
  fi
  "${java[@]}" kafka.tools.StorageTool format -t "eGs2LWJyb2tlci1rYWZrYQ" -c "$dir/server.properties" \
    --initial-controllers "$quorum" "${scram[@]}" >>"$dir/log" 2>&1 || fail "the storage could not be formatted; see $dir/log"
}

start() {
  local java heap=512m
  [[ ${#nodes[@]} == 1 ]] || heap=384m
  mapfile -t java < <(kafka_java -Xms$heap -Xmx$heap -XX:+UseG1GC)
  spawn "${java[@]}" kafka.Kafka "$dir/server.properties"
}

# A node answers a Metadata request and names all brokers: then it can be used, and so can the cluster.
healthy() { [[ $(kafka_brokers "$1") -ge ${#nodes[@]} ]]; }

# kafka_brokers prints how many brokers a node knows of, by a Metadata request, version 1, for no topic. The answer is its
# size, the correlation id, and the brokers, whose number comes first: four bytes each.
kafka_brokers() {
  local bytes ask=(ask "$(port client "$1")")
  [[ $name != *-secure ]] || ask=(ask_tls "$(port certificate)")
  mapfile -t bytes < <(printf '\0\0\0\016\0\003\0\001\0\0\0\001\377\377\0\0\0\0' | "${ask[@]}" 12 | od -A n -v -t u1 | tr -s ' ' '\n' | sed '/^$/d')
  echo "$((${bytes[11]:-0}))"
}

urls() {
  local hosts query=''
  hosts=$(hosts)
  [[ $name != *-secure ]] || query=$(tls_query)
  echo "kafka kafka://$hosts$query"
  echo "kafka-share kafka-share://$hosts$query"
  echo "kmq kmq://$hosts$query"
}

also() { [[ $name != *-secure ]] || echo "kafka-certificate kafka://127.0.0.1:$(port certificate)$(tls_query)"; }
