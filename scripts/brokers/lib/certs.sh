# Certificates and passwords of the *-secure brokers, made anew for each of them in $home/certs:
#
#   ca.pem                                     the authority that the servers trust, and clients should
#   server.pem server-key.pem                  for 127.0.0.1 and localhost
#   client.pem client-key.pem                  of the user tester
#   other-ca.pem                               an authority that has nothing to do with them
#   other-client.pem other-client-key.pem      from it, and of tester by their own account
#   user password                              tester, who may do everything
#   outsider                                   a user with the same password, who may do nothing

make_certs() {
  local certs=$home/certs
  type -P openssl >/dev/null || fail "there is no openssl to make certificates with"
  mkdir -p "$certs"
  (
    umask 077
    cd "$certs" || exit 1
    printf 'tester' >user
    printf 'outsider' >outsider
    od -A n -t x1 -N 16 /dev/urandom | tr -d ' \n' >password
    make_authority ca
    make_certificate ca server server
    make_certificate ca client tester
    make_authority other-ca
    make_certificate other-ca other-client tester
    # Nobody is to sign anything else.
    rm -- ca-key.pem other-ca-key.pem ./*.srl ./*.csr
  ) >"$certs/log" 2>&1 || { cat "$certs/log" >&2; fail "openssl could not make certificates"; }
  rm -- "$certs/log"
}

make_authority() {
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 -sha256 \
    -subj "/CN=xk6-broker test authority $1" -keyout "$1-key.pem" -out "$1.pem" \
    -addext "basicConstraints=critical,CA:TRUE" -addext "keyUsage=critical,keyCertSign,cRLSign"
}

# make_certificate AUTHORITY FILE COMMON-NAME
make_certificate() {
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -sha256 -subj "/CN=$3" -keyout "$2-key.pem" -out "$2.csr"
  openssl x509 -req -in "$2.csr" -CA "$1.pem" -CAkey "$1-key.pem" -CAcreateserial -days 30 -sha256 -out "$2.pem" \
    -extfile <(printf '%s\n' "subjectAltName=IP:127.0.0.1,DNS:localhost" "extendedKeyUsage=serverAuth,clientAuth" "keyUsage=critical,digitalSignature")
}

# ask_tls is ask, by TLS and with the certificate of tester.
ask_tls() {
  local certs=$home/certs client
  exec {answer}< <(exec openssl s_client -quiet -verify_quiet -connect "127.0.0.1:$1" -CAfile "$certs/ca.pem" -verify_return_error \
    -cert "$certs/client.pem" -key "$certs/client-key.pem" 2>/dev/null)
  client=$!
  bounded 5 head -c "$2" <&"$answer"
  exec {answer}<&-
  kill "$client" 2>/dev/null || true # it would wait for the server to close
}

# tls_query is what the URL of a *-secure broker says to its driver. The password is no part of it.
tls_query() { printf '?tls=true&tlsCA=%s' "$(query_escape "$home/certs/ca.pem")"; }

query_escape() {
  local LC_ALL=C character i
  for ((i = 0; i < ${#1}; i++)); do
    character=${1:i:1}
    case $character in
      [a-zA-Z0-9/._~-]) printf '%s' "$character" ;;
      *) printf '%%%02X' "'$character" ;;
    esac
  done
}
