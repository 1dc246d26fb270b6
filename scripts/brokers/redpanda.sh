# Redpanda, which speaks the protocol of Kafka. There is no native way to it: no package registry has it.

names=(redpanda)
contained=(redpanda)

layout() { node 1 client=9392; }

urls() { echo "redpanda redpanda://$(hosts)"; }
