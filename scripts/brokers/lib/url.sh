# What is told of a broker that is up. It does not depend on the backend.

show_url() {
  local driver url
  refuse_down
  while read -r driver url; do
    if [[ -z ${2:-} || $driver == "$2" ]]; then
      printf '%s\n' "$url"
      return
    fi
  done < <(urls)
  fail "has no URL for a driver \"$2\"; it has $(urls | cut -d ' ' -f 1 | tr '\n' ' ')"
}

show_env() {
  local driver url
  refuse_down
  urls | while read -r driver url; do
    driver=${driver^^}
    printf "BROKER_URL_%s='%s'\n" "${driver//-/_}" "$url"
  done
}

show_certs() {
  refuse_down
  [[ -f $home/certs/ca.pem ]] || fail "has no certificates; a *-secure broker has"
  printf '%s\n' "$home/certs"
}

refuse_down() { [[ -f $home/backend ]] || fail "is not up; scripts/broker up $name"; }
