# MongoDB, a replica set of one. There is no native way to it: no package registry has it. What is native is a stand-in, mongo-java-server, as a replica set of
# one and as a standalone server: it is another implementation of the protocol, and what passes on it is not proven on MongoDB.

standin_version=1.47.0 # the same as in mongodb/pom.xml
names=(mongodb mongodb-standin mongodb-standin-standalone)
contained=(mongodb)
source="Maven artifacts of mongo-java-server $standin_version, not MongoDB, on this machine's Java"

layout() {
  case $name in
    mongodb) node 1 client=27017 ;;
    mongodb-standin) node 1 client=27018 ;;
    mongodb-standin-standalone) node 1 client=27019 ;;
  esac
}

missing() { cannot_be_got "$(java_lacking "$(standin_jars)")"; }

standin_jars() { printf '%s' "$cache/mongodb-standin-$standin_version"; }

install() { install_java "$(standin_jars)" "mongo-java-server $standin_version" copy_maven "$scripts/brokers/mongodb/pom.xml"; }

start() {
  local mode=replicaSet
  [[ $name != *-standalone ]] || mode=standalone
  spawn java -Xmx512m -XX:+UseSerialGC -Dslf4j.internal.verbosity=ERROR -cp "$(standin_jars)/*" "$scripts/brokers/mongodb/Standin.java" "$(port)" "$mode"
}

# The server answers a hello, {hello: 1, $db: "admin"}, whose number its answer repeats: it is the four letters "here".
healthy() {
  [[ $(printf '\064\0\0\0here\0\0\0\0\335\7\0\0\0\0\0\0\0\037\0\0\0\020hello\0\1\0\0\0\2\044db\0\6\0\0\0admin\0\0' | ask "$(port)" 16 | tr -d '\0') == *here* ]]
}

# Each set's own address of its one member leads nowhere for whoever comes by another way. The stand-in looks through all messages for each lease, and may take long.
urls() {
  local patience=''
  [[ $name != *-standin* ]] || patience='&timeout=2m'
  echo "mongodb mongodb://$(hosts)/?directConnection=true$patience"
}
