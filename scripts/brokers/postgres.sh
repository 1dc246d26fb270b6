# PostgreSQL, which waits for its disk at every commit: one node, a primary whose commits wait for its standby too, and one node with TLS and passwords. It
# refuses to run as root, and then runs as another user.

names=(postgres postgres-replica postgres-secure)
source="Debian package postgresql, unpacked into the cache, or as installed"

layout() {
  case $name in
    postgres) node 1 client=5432 ;;
    postgres-replica)
      node primary client=5433
      node standby client=5434
      ;;
    postgres-secure) node 1 client=5431 ;;
  esac
}

missing() {
  if [[ -z $(programs) ]] && ! has_debian; then
    echo "PostgreSQL is not installed, and there is no apt-get to get it"
  elif ((EUID == 0)) && ! command -v setpriv >/dev/null; then
    echo "PostgreSQL does not run as root, and there is no setpriv to run it as another user"
  fi
}

install() { [[ -n $(programs) ]] || unpack_debian "$cache/postgres" postgresql; }

# programs prints the folder of PostgreSQL's programs, most of which Debian does not put on PATH.
programs() {
  local folder
  for folder in "$cache"/postgres/usr/lib/postgresql/*/bin /usr/lib/postgresql/*/bin; do
    if [[ -x $folder/initdb ]]; then
      printf '%s' "$folder"
      return
    fi
  done
  folder=$(type -P initdb) || return 0
  printf '%s' "${folder%/*}"
}

# postgres_user prints whom root runs the server as.
postgres_user() { id -u postgres 2>/dev/null || id -u nobody; }

# as_server runs a command as the server's user, who may go through folders that are root's, such as those of mktemp. Asked with access(2), as initdb
# asks, the kernel says so only of a user whose capabilities it leaves alone.
as_server() {
  local user=()
  if ((EUID == 0)); then
    user=(setpriv --reuid="$(postgres_user)" --regid="$(id -g "$(postgres_user)")" --clear-groups --securebits=+no_setuid_fixup --inh-caps=+dac_override --ambient-caps=+dac_override)
  fi
  LD_LIBRARY_PATH=$(libraries "$cache/postgres") "${1:?}" "${user[@]}" "${@:2}"
}

configure() {
  if [[ $1 == standby ]]; then
    copy_primary
    return
  fi
  local who=(--username=postgres --auth=trust)
  if [[ $name == *-secure ]]; then
    make_certs
    who=(--username="$(<"$home/certs/user")" --pwfile="$home/certs/password" --auth=scram-sha-256)
  fi
  if ((EUID == 0)); then
    chown -R "$(postgres_user)" "$dir"
  fi
  chmod 700 "$dir/data"
  as_server env "$(programs)/initdb" --pgdata="$dir/data" "${who[@]}" --encoding=UTF8 --locale=C.UTF-8 --no-sync >>"$dir/log" 2>&1 ||
    fail "initdb failed: $(tail -n 3 "$dir/log")"
  cat >>"$dir/data/postgresql.conf" <<CONF
listen_addresses = '127.0.0.1'
port = $(port client "$1")
unix_socket_directories = ''
fsync = on
synchronous_commit = on
max_connections = 500
shared_buffers = 256MB
CONF
  if [[ $name == *-replica ]]; then
    echo "synchronous_standby_names = 'standby'" >>"$dir/data/postgresql.conf"
  fi
  if [[ $name == *-secure ]]; then
    postgres_security >>"$dir/data/postgresql.conf"
    echo "hostssl all all 127.0.0.1/32 scram-sha-256" >"$dir/data/pg_hba.conf"
  fi
}

# copy_primary makes the standby's data from those of the primary, which has been started before.
copy_primary() {
  if ((EUID == 0)); then
    chown -R "$(postgres_user)" "$dir"
  fi
  chmod 700 "$dir/data"
  await primary healthy primary
  as_server env "$(programs)/pg_basebackup" --pgdata="$dir/data" --checkpoint=fast --no-sync --write-recovery-conf \
    --dbname="host=127.0.0.1 port=$(port client primary) user=postgres application_name=standby" >>"$dir/log" 2>&1 ||
    fail "pg_basebackup failed: $(tail -n 3 "$dir/log")"
  printf '%s\n' "port = $(port client standby)" "synchronous_standby_names = ''" >>"$dir/data/postgresql.conf"
}

# formed asks the primary whether its commits wait for the standby.
formed() {
  [[ $name == *-replica ]] || return 0
  [[ $(LD_LIBRARY_PATH=$(libraries "$cache/postgres") bounded 5 "$(programs)/psql" -U postgres -h 127.0.0.1 -p "$(port client primary)" -Atc \
    "SELECT sync_state FROM pg_stat_replication WHERE application_name = 'standby'" postgres) == sync ]]
}

postgres_security() {
  local certs=$home/certs
  cat <<CONF
ssl = on
ssl_ca_file = '$certs/ca.pem'
ssl_cert_file = '$certs/server.pem'
ssl_key_file = '$certs/server-key.pem'
CONF
}

# form makes the user who may do nothing.
form() {
  local certs=$home/certs
  [[ $name == *-secure ]] || return 0
  PGPASSWORD=$(<"$certs/password") LD_LIBRARY_PATH=$(libraries "$cache/postgres") "$(programs)/psql" -q -v ON_ERROR_STOP=1 -f - \
    "host=127.0.0.1 port=$(port) user=$(<"$certs/user") dbname=postgres sslmode=verify-full sslrootcert=$certs/ca.pem" <<SQL || fail "psql could not make the user $(<"$certs/outsider")"
CREATE ROLE $(<"$certs/outsider") LOGIN PASSWORD '$(<"$certs/password")';
REVOKE CONNECT ON DATABASE postgres FROM PUBLIC;
SQL
}

# What a killed server leaves of its backends ends by itself, and until it has, no other may start on the data. Its lock file would keep the next one out
# for as long as nobody has reaped the process.
start() {
  local left=$dir/data/postmaster.pid key id deadline=$((SECONDS + 10))
  if [[ -f $left ]] && read -r key id < <(sed -n 7p "$left"); then
    while awk -v key="$key" -v id="$id" '$1 == key && $2 == id && $7 > 0 { found = 1 } END { exit !found }' /proc/sysvipc/shm; do
      ((SECONDS < deadline)) || fail "processes of the server that was killed do not end"
      sleep 0.05
    done
    rm -f -- "$left"
  fi
  as_server spawn "$(programs)/postgres" -D "$dir/data"
}

# outside prints the server's processes other than its first: each leads a group of its own.
outside() {
  # One may end while it is read.
  cat /proc/[0-9]*/stat 2>/dev/null | awk -v parent="$1" '{ pid = $1; sub(/.*\) /, ""); if ($2 == parent) print pid }' || true
}

healthy() { LD_LIBRARY_PATH=$(libraries "$cache/postgres") bounded 5 "$(programs)/pg_isready" -q -U postgres -h 127.0.0.1 -p "$(port client "$1")"; }

urls() {
  case $name in
    *-secure) echo "postgres postgres://$(hosts)/postgres$(tls_query)" ;;
    *) echo "postgres postgres://postgres@$(hosts)/postgres" ;;
  esac
}
