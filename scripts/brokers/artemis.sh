# Apache Artemis: one node that waits for its disk, a primary whose messages its backup has too, and one node with TLS and passwords. Its one port speaks
# AMQP 1.0, and the protocol of Artemis's own command line.

artemis_version=2.56.0
names=(artemis artemis-replica artemis-secure)
source="the distribution of Artemis $artemis_version from Maven Central, on this machine's Java"

layout() {
  case $name in
    artemis) node 1 client=5674 ;;
    artemis-replica)
      node primary client=5675
      node backup client=5676
      ;;
    artemis-secure) node 1 client=5673 ;;
  esac
}

missing() { cannot_be_got "$(java_lacking "$(artemis_home)")"; }

artemis_home() { printf '%s' "$cache/artemis-$artemis_version"; }

programs() { printf '%s' "$(artemis_home)/bin"; }

install() { install_java "$(artemis_home)" "Artemis $artemis_version" unpack_maven "org.apache.artemis:apache-artemis:$artemis_version:tar.gz:bin" --exclude='*/web'; }

# An instance as the distribution makes it, without its console, and with the configuration that containers have too; those of a pair are the distribution's.
configure() {
  if [[ $name == *-replica ]]; then
    pair "$1"
    return
  fi
  local properties=(-Dbroker.host=127.0.0.1 "-Dbroker.port=$(port)")
  if [[ $name == *-secure ]]; then
    artemis_certs
    # Whoever may not create a topic is told that, and not that it is not there.
    properties+=(-Dbroker.security=true -Dbroker.create=true)
  fi
  create --require-login --java-options "-Xms256m -Xmx512m ${properties[*]}"
  cp "$scripts/brokers/artemis/broker.xml" "$dir/data/instance/etc/broker.xml"
  if [[ $name == *-secure ]]; then
    chmod 600 "$dir/data/instance/etc/broker.xml"
    sed -i "s|\${broker.tls:}|;$(artemis_tls)|" "$dir/data/instance/etc/broker.xml"
    artemis_users
  fi
}

# pair makes a node of two that know one another.
pair() {
  local role=() other=backup
  [[ $1 == primary ]] || role=(--backup) other=primary
  create --allow-anonymous --default-port "$(port client "$1")" --no-amqp-acceptor --no-hornetq-acceptor --no-mqtt-acceptor --no-stomp-acceptor --no-autocreate \
    --java-options "-Xms256m -Xmx512m" --clustered --cluster-user pair --cluster-password pair --replicated "${role[@]}" \
    --static-cluster "tcp://127.0.0.1:$(port client "$other")"
  sed -i 's|<max-disk-usage>.*</max-disk-usage>|<min-disk-free>512M</min-disk-free>|' "$dir/data/instance/etc/broker.xml"
}

create() {
  "$(artemis_home)/bin/artemis" create "$dir/data/instance" --silent --user nobody --password nobody --nio --no-autotune --no-web --host 127.0.0.1 "$@" \
    >>"$dir/log" 2>&1 || fail "artemis create failed: $(tail -n 3 "$dir/log")"
}

# artemis_certs makes the certificates, and of them the stores that Java reads.
artemis_certs() {
  local certs=$home/certs
  make_certs
  (
    umask 077
    openssl pkcs12 -export -inkey "$certs/server-key.pem" -in "$certs/server.pem" -out "$certs/server.p12" -passout "file:$certs/password"
    keytool -importcert -noprompt -alias ca -file "$certs/ca.pem" -keystore "$certs/ca.p12" -storetype PKCS12 -storepass:file "$certs/password"
  ) >>"$dir/log" 2>&1 || fail "the certificates could not be put into stores: $(tail -n 3 "$dir/log")"
}

# artemis_tls prints the acceptor's parameters. A client may show a certificate; one that no authority here has signed is refused.
artemis_tls() {
  local certs=$home/certs password
  password=$(<"$certs/password")
  printf '%s;' sslEnabled=true wantClientAuth=true \
    keyStoreType=PKCS12 "keyStorePath=$certs/server.p12" "keyStorePassword=$password" \
    trustStoreType=PKCS12 "trustStorePath=$certs/ca.p12" "trustStorePassword=$password"
}

# artemis_users makes the user who may do everything and the one who may do nothing.
artemis_users() {
  local certs=$home/certs etc=$dir/data/instance/etc
  (
    umask 077
    printf '%s = %s\n' "$(<"$certs/user")" "$(<"$certs/password")" "$(<"$certs/outsider")" "$(<"$certs/password")" >"$etc/artemis-users.properties"
  )
  printf 'all = %s\nnone = %s\n' "$(<"$certs/user")" "$(<"$certs/outsider")" >"$etc/artemis-roles.properties"
}

start() { spawn "$dir/data/instance/bin/artemis" run; }

# The server says which of AMQP's protocols it speaks: here the one that asks who the client is. A backup speaks none before it takes the primary's place,
# and says in its log when it has all that the primary has.
healthy() {
  local ask=ask
  if [[ $1 == backup ]] && grep -q AMQ221024 "$home/backup/log"; then
    return
  fi
  [[ $name != *-secure ]] || ask=ask_tls
  [[ $(printf 'AMQP\3\1\0\0' | $ask "$(port client "$1")" 5 | tr -d '\0') == $'AMQP\3' ]]
}

urls() {
  local query=''
  [[ $name != *-secure ]] || query=$(tls_query)
  echo "amqp1 amqp1://$(hosts)$query"
  echo "amqp1-pubsub amqp1-pubsub://$(hosts)$query"
}
