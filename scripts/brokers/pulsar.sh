# Apache Pulsar, standalone: broker, bookie and metadata in one process. One that anybody may use, and one with TLS, tokens, passwords and certificates.

pulsar_version=4.0.8 # the newest whose distribution is in Maven Central
names=(pulsar pulsar-secure)
source="the distribution of Pulsar $pulsar_version from Maven Central, on this machine's Java"

layout() {
  case $name in
    pulsar) node 1 client=6650 admin=8650 ;;
    pulsar-secure) node 1 client=6651 admin=8651 ;;
  esac
}

missing() { cannot_be_got "$(java_lacking "$(distribution)")"; }

distribution() { printf '%s' "$cache/pulsar-$pulsar_version"; }

programs() { printf '%s' "$(distribution)/bin"; }

install() { install_java "$(distribution)" "Pulsar $pulsar_version" unpack_maven "org.apache.pulsar:pulsar-server-distribution:$pulsar_version:tar.gz:bin" --exclude='*/instances'; }

# The file is the distribution's own with these settings in the place of what it has: of a property that is given twice the last one counts.
configure() {
  local tls=''
  if [[ $name == *-secure ]]; then
    pulsar_certs
    tls=Tls
  fi
  {
    cat "$(distribution)/conf/standalone.conf"
    cat <<PROPERTIES

bindAddress=127.0.0.1
advertisedAddress=127.0.0.1
brokerServicePort$tls=$(port client)
webServicePort$tls=$(port admin)
# Without these the bookie listens everywhere.
allowLoopback=true
listeningInterface=lo
# A topic is there when it was created, and not because somebody misspelt another's name.
allowAutoTopicCreation=false
# Nor does it go because nobody used it for a minute.
brokerDeleteInactiveTopicsEnabled=false
# Each message of a batch is settled by itself.
acknowledgmentAtBatchIndexLevelEnabled=true
numIOThreads=2
numHttpServerThreads=8
PROPERTIES
    [[ -z $tls ]] || pulsar_security
  } >"$dir/standalone.conf"
}

# pulsar_certs makes, besides certificates and password, the key that tokens are signed with, a token of each user, and the file of their passwords.
pulsar_certs() {
  local certs=$home/certs each
  make_certs
  (
    umask 077
    head -c 32 /dev/urandom >"$certs/token-key"
    for each in user outsider; do
      PULSAR_MEM="-Xmx128m -XX:TieredStopAtLevel=1" PULSAR_GC_LOG=' ' PULSAR_LOG_DIR=$dir "$(distribution)/bin/pulsar" tokens create \
        --secret-key "file://$certs/token-key" --subject "$(<"$certs/$each")" >"$certs/$each-token"
      printf '%s:%s\n' "$(<"$certs/$each")" "$(openssl passwd -apr1 -in "$certs/password")" >>"$certs/passwords"
    done
  ) 2>>"$dir/log" || fail "tokens and passwords could not be made: $(tail -n 3 "$dir/log")"
}

# pulsar_security prints the properties of a broker that takes tokens, passwords and certificates, always by TLS, and lets nobody do anything but one user.
pulsar_security() {
  local certs=$home/certs of=org.apache.pulsar.broker.authentication.AuthenticationProvider
  cat <<PROPERTIES
# No port is without TLS.
brokerServicePort=
webServicePort=
tlsCertificateFilePath=$certs/server.pem
tlsKeyFilePath=$certs/server-key.pem
tlsTrustCertsFilePath=$certs/ca.pem
authenticationEnabled=true
authenticationProviders=${of}Token,${of}Basic,${of}Tls
tokenSecretKey=file://$certs/token-key
basicAuthConf=$certs/passwords
authorizationEnabled=true
superUserRoles=$(<"$certs/user")
# The broker is a client of its own, too.
brokerClientTlsEnabled=true
brokerClientTrustCertsFilePath=$certs/ca.pem
brokerClientAuthenticationPlugin=org.apache.pulsar.client.impl.auth.AuthenticationToken
brokerClientAuthenticationParameters=file://$certs/user-token
PROPERTIES
}

start() {
  local memory="-Xms256m -Xmx512m -XX:MaxDirectMemorySize=512m"
  PULSAR_MEM=$memory PULSAR_GC=-XX:+UseG1GC PULSAR_GC_LOG=' ' PULSAR_LOG_DIR=$dir PULSAR_LOG_APPENDER=Console PULSAR_STANDALONE_USE_ZOOKEEPER='' \
    spawn "$(distribution)/bin/pulsar" standalone --no-functions-worker --no-stream-storage --advertised-address 127.0.0.1 \
    --metadata-dir "$dir/data/metadata" --bookkeeper-dir "$dir/data/bookkeeper" --config "$dir/standalone.conf"
}

# The broker sends itself a message and answers when it has received it; then the namespace for what tests send is there.
healthy() { [[ $(pulsar_status /admin/v2/brokers/health) == 200 && $(pulsar_status /admin/v2/namespaces/public/default) == 200 ]]; }

pulsar_status() {
  local ask=ask
  [[ $name != *-secure ]] || ask=ask_tls
  http_status "$(port admin)" "$1"
}

urls() {
  local query='?' admin=http
  [[ $name != *-secure ]] || query="$(tls_query)&" admin=https
  query+="adminUrl=$admin://127.0.0.1:$(port admin)"
  echo "pulsar pulsar://$(hosts)$query"
  echo "pulsar-failover pulsar-failover://$(hosts)$query"
}
