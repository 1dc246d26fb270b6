# Apache Pulsar, standalone: broker, bookie and metadata in one process.

pulsar_version=4.0.8 # the newest whose distribution is in Maven Central
names=(pulsar)
source="the distribution of Pulsar $pulsar_version from Maven Central, on this machine's Java"

layout() { node 1 client=6650 admin=8650; }

missing() {
  local lacking
  lacking=$(pulsar_lacking)
  [[ -z $lacking ]] || has_debian_root || echo "it needs what Debian's packages ${lacking// / and } hold"
}

# pulsar_lacking prints the Debian packages of the tools that are not here.
pulsar_lacking() {
  local packages=()
  type -P java >/dev/null || packages+=(default-jre-headless)
  [[ -d $(distribution) ]] || type -P mvn >/dev/null || packages+=(maven)
  printf '%s' "${packages[*]}"
}

distribution() { printf '%s' "$cache/pulsar-$pulsar_version"; }

programs() { printf '%s' "$(distribution)/bin"; }

install() {
  local lacking made
  read -ra lacking <<<"$(pulsar_lacking)"
  ((${#lacking[@]} == 0)) || install_debian "${lacking[@]}"
  [[ ! -d $(distribution) ]] || return 0
  note "getting Pulsar $pulsar_version with Maven"
  made=$(distribution).part
  rm -rf -- "$made"
  mkdir -p "$made"
  mvn -q -B -Dstyle.color=never dependency:copy -Dartifact="org.apache.pulsar:pulsar-server-distribution:$pulsar_version:tar.gz:bin" \
    -DoutputDirectory="$made" >&2 || fail "Maven could not copy the distribution of Pulsar $pulsar_version"
  tar -xz -C "$made" --strip-components=1 --exclude='*/instances' -f "$made"/*.tar.gz || fail "the distribution of Pulsar could not be unpacked"
  rm -f -- "$made"/*.tar.gz
  mv -- "$made" "$(distribution)"
}

# The file is the distribution's own with these settings in the place of what it has: of a property that is given twice the last one counts.
configure() {
  {
    cat "$(distribution)/conf/standalone.conf"
    cat <<PROPERTIES

bindAddress=127.0.0.1
advertisedAddress=127.0.0.1
brokerServicePort=$(port client)
webServicePort=$(port admin)
# Without these the bookie listens everywhere.
allowLoopback=true
listeningInterface=lo
# A topic is there when it was created, and not because somebody misspelt another's name.
allowAutoTopicCreation=false
# Each message of a batch is settled by itself.
acknowledgmentAtBatchIndexLevelEnabled=true
numIOThreads=2
numHttpServerThreads=8
PROPERTIES
  } >"$dir/standalone.conf"
}

start() {
  local memory="-Xms256m -Xmx512m -XX:MaxDirectMemorySize=512m"
  PULSAR_MEM=$memory PULSAR_GC=-XX:+UseG1GC PULSAR_GC_LOG=' ' PULSAR_LOG_DIR=$dir PULSAR_LOG_APPENDER=Console PULSAR_STANDALONE_USE_ZOOKEEPER='' \
    spawn "$(distribution)/bin/pulsar" standalone --no-functions-worker --no-stream-storage --advertised-address 127.0.0.1 \
    --metadata-dir "$dir/data/metadata" --bookkeeper-dir "$dir/data/bookkeeper" --config "$dir/standalone.conf"
}

# The broker sends itself a message and answers when it has received it; then the namespace for what tests send is there.
healthy() { [[ $(http_status "$(port admin)" /admin/v2/brokers/health) == 200 && $(http_status "$(port admin)" /admin/v2/namespaces/public/default) == 200 ]]; }

urls() {
  local query
  query="?adminUrl=http://127.0.0.1:$(port admin)"
  echo "pulsar pulsar://$(hosts)$query"
  echo "pulsar-failover pulsar-failover://$(hosts)$query"
}
