# ElasticMQ, which speaks the protocol of Amazon SQS and keeps its queues in memory. It is not Amazon's, and checks no credentials.

elasticmq_version=1.7.1 # the same as in elasticmq/pom.xml
names=(elasticmq)
source="Maven artifacts of ElasticMQ $elasticmq_version, on this machine's Java"

layout() { node 1 client=9324; }

missing() { cannot_be_got "$(java_lacking "$(elasticmq_jars)")"; }

elasticmq_jars() { printf '%s' "$cache/elasticmq-$elasticmq_version"; }

install() { install_java "$(elasticmq_jars)" "ElasticMQ $elasticmq_version" copy_maven "$scripts/brokers/elasticmq/pom.xml"; }

configure() {
  cat >"$dir/elasticmq.conf" <<CONF
include classpath("application.conf")
node-address { protocol = http, host = 127.0.0.1, port = $(port), context-path = "" }
rest-sqs { enabled = true, bind-hostname = "127.0.0.1", bind-port = $(port), sqs-limits = strict }
rest-stats { enabled = false }
# It answers late, and not by an error, where the machine is busy.
pekko.http.server { request-timeout = 100 s, idle-timeout = 120 s }
CONF
}

start() {
  spawn java -Xms256m -Xmx512m -XX:+UseSerialGC -Dconfig.file="$dir/elasticmq.conf" -Dlogback.configurationFile="$scripts/brokers/elasticmq/logback.xml" \
    -cp "$(elasticmq_jars)/*" org.elasticmq.server.Main
}

healthy() { [[ $(http_status "$(port)" /health) == 200 ]]; }

urls() {
  echo "sqs sqs://any:any@$(hosts)"
  echo "sqs-fifo sqs-fifo://any:any@$(hosts)"
}
