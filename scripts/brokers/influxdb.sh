# InfluxDB 1.x, which k6's own --out influxdb writes to. It is no broker, but results go there.

names=(influxdb)
source="Debian package influxdb, unpacked into the cache, or the influxd on PATH"

layout() { node 1 client=8086 backup=8088; }

missing() { influx_server >/dev/null || has_debian || echo "influxd is not installed, and there is no apt-get to get it"; }

install() { influx_server >/dev/null || unpack_debian "$cache/influxdb" influxdb; }

influx_server() { locate "$cache/influxdb" influxd; }

configure() {
  cat >"$dir/influxdb.conf" <<CONF
reporting-disabled = true
bind-address = "127.0.0.1:$(port backup)"

[meta]
  dir = "$dir/data/meta"

[data]
  dir = "$dir/data/data"
  wal-dir = "$dir/data/wal"
  query-log-enabled = false

[http]
  bind-address = "127.0.0.1:$(port client)"
  log-enabled = false
CONF
}

start() { LD_LIBRARY_PATH=$(libraries "$cache/influxdb") spawn "$(influx_server)" -config "$dir/influxdb.conf"; }

healthy() { [[ $(http_status "$(port client)" /ping) == 204 ]]; }

urls() { echo "influxdb http://$(hosts)"; }
