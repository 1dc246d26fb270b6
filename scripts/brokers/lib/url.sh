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

# show_env names the URLs of a broker after its drivers. A variant has one, named after itself, so that it does not take the
# place of the broker whose drivers it shares.
show_env() {
  local each url
  refuse_down
  {
    if [[ $name == *-* ]]; then
      read -r _ url < <(urls)
      echo "$name $url"
    else
      urls
    fi
    also
  } | while read -r each url; do
    each=${each^^}
    printf "BROKER_URL_%s='%s'\n" "${each//-/_}" "$url"
  done
}

show_certs() {
  refuse_down
  [[ -f $home/certs/ca.pem ]] || fail "has no certificates; a *-secure broker has"
  printf '%s\n' "$home/certs"
}

refuse_down() { [[ -f $home/backend ]] || fail "is not up; scripts/broker up $name"; }
