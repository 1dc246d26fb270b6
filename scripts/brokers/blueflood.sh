# Blueflood on Cassandra. There is no native way to it: no package registry has it.

names=(blueflood)
contained=(blueflood)

layout() { node 1 client=19000 query=20000; }

urls() { echo "blueflood blueflood://$(hosts)/load?queryAddress=127.0.0.1:$(port query)"; }
