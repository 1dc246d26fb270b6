# Kafka in KRaft mode with share groups: one node, or three that keep every partition three times.

kafka_version=4.3.1 # the same as in kafka/pom.xml
names=(kafka kafka-cluster)
source="Maven artifacts of Kafka $kafka_version, on this machine's Java"

layout() {
  local i
  case $name in
    kafka) node 1 client=9092 controller=9093 ;;
    kafka-cluster)
      for i in 1 2 3; do node "$i" client=$((9191 + i)) controller=$((9195 + i)); done
      ;;
  esac
}

missing() {
  command -v java >/dev/null || echo "there is no java (17 or later)"
  [[ -d $(jars) ]] || command -v mvn >/dev/null || echo "there is no mvn (Maven)"
}

jars() { printf '%s' "$cache/kafka-$kafka_version"; }

install() {
  [[ ! -d $(jars) ]] || return 0
  note "getting Kafka $kafka_version with Maven"
  copy_maven "$(jars)" "$scripts/brokers/kafka/pom.xml"
}

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
listeners=CLIENT://127.0.0.1:$(port client "$1"),CONTROLLER://127.0.0.1:$(port controller "$1")
advertised.listeners=CLIENT://127.0.0.1:$(port client "$1"),CONTROLLER://127.0.0.1:$(port controller "$1")
listener.security.protocol.map=CLIENT:PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=CLIENT
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
# A new group starts at once instead of waiting three seconds for further members.
group.initial.rebalance.delay.ms=0
PROPERTIES
  kafka_format "$1"
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
  local java quorum
  mapfile -t java < <(kafka_java -Xmx128m -XX:TieredStopAtLevel=1)
  quorum=$(controllers | while read -r each address; do printf '%s@%s:AAAAAAAAAAAAAAAAAAAA%sw\n' "$each" "$address" "$each"; done | paste -s -d ,)
  "${java[@]}" kafka.tools.StorageTool format -t "eGs2LWJyb2tlci1rYWZrYQ" -c "$dir/server.properties" \
    --initial-controllers "$quorum" >>"$dir/log" 2>&1 || fail "the storage could not be formatted; see $dir/log"
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
  local bytes
  mapfile -t bytes < <(printf '\0\0\0\016\0\003\0\001\0\0\0\001\377\377\0\0\0\0' | ask "$(port client "$1")" 12 | od -A n -v -t u1 -w1)
  echo "$((${bytes[11]:-0}))"
}

urls() {
  local hosts
  hosts=$(hosts)
  echo "kafka kafka://$hosts"
  echo "kafka-share kafka-share://$hosts"
}
