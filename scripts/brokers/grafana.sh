# Grafana with the dashboards of ./grafana, beside InfluxDB. There is no native way to it: no package registry has it.

names=(grafana)
contained=(grafana)

layout() { node 1 client=3000; }

urls() { echo "grafana http://$(hosts)"; }
