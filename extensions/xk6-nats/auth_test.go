package nats

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// write makes a file that a test may name in an option.
func write(t *testing.T, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func nkey(t *testing.T, make func() (nkeys.KeyPair, error)) (pair nkeys.KeyPair, public string, seed []byte) {
	t.Helper()
	pair = must[nkeys.KeyPair](t)(make())
	return pair, must[string](t)(pair.PublicKey()), must[[]byte](t)(pair.Seed())
}

// credentialsFile signs a user of an account.
func credentialsFile(t *testing.T, account nkeys.KeyPair) string {
	t.Helper()
	_, public, seed := nkey(t, nkeys.CreateUser)
	token := must[string](t)(jwt.NewUserClaims(public).Encode(account))
	return write(t, "user.creds", must[[]byte](t)(jwt.FormatUserConfig(token, seed)))
}

// operated is a server whose users show credentials that an account has signed.
func operated(t *testing.T) (options server.Options, account nkeys.KeyPair) {
	t.Helper()
	operator, operatorKey, _ := nkey(t, nkeys.CreateOperator)
	account, accountKey, _ := nkey(t, nkeys.CreateAccount)
	accountClaims := jwt.NewAccountClaims(accountKey)
	system, systemKey, _ := nkey(t, nkeys.CreateAccount)
	_ = system
	resolver := &server.MemAccResolver{}
	for key, claims := range map[string]*jwt.AccountClaims{accountKey: accountClaims, systemKey: jwt.NewAccountClaims(systemKey)} {
		if err := resolver.Store(key, must[string](t)(claims.Encode(operator))); err != nil {
			t.Fatal(err)
		}
	}
	trusted := jwt.NewOperatorClaims(operatorKey)
	trusted.SystemAccount = systemKey
	if _, err := trusted.Encode(operator); err != nil {
		t.Fatal(err)
	}
	return server.Options{
		TrustedOperators: []*jwt.OperatorClaims{trusted},
		SystemAccount:    systemKey,
		AccountResolver:  resolver,
	}, account
}

func TestAuthentication(t *testing.T) {
	_, public, seed := nkey(t, nkeys.CreateUser)
	_, _, otherSeed := nkey(t, nkeys.CreateUser)
	operatedOptions, account := operated(t)
	stranger, _, _ := nkey(t, nkeys.CreateAccount)
	const secret, wrong = "right-Secret", "wrong-Secret"
	for name, c := range map[string]struct {
		server server.Options
		user   string // in the URL
		right  map[string]any
		bad    string
		wrong  map[string]any
	}{
		"token": {
			server: server.Options{Authorization: secret},
			right:  map[string]any{"token": secret}, wrong: map[string]any{"token": wrong},
		},
		"token in the URL": {
			server: server.Options{Authorization: secret}, user: secret + "@", bad: wrong + "@",
		},
		"user": {
			server: server.Options{Username: "u", Password: secret},
			right:  map[string]any{"user": "u", "password": secret}, wrong: map[string]any{"user": "u", "password": wrong},
		},
		"user in the URL": {
			server: server.Options{Username: "u", Password: secret}, user: "u:" + secret + "@", bad: "u:" + wrong + "@",
		},
		"user in the URL and password beside": {
			server: server.Options{Username: "u", Password: secret}, user: "u@", bad: "u@",
			right: map[string]any{"password": secret}, wrong: map[string]any{"password": wrong},
		},
		"nkey": {
			server: server.Options{Nkeys: []*server.NkeyUser{{Nkey: public}}},
			right:  map[string]any{"nkey": write(t, "seed", seed)}, wrong: map[string]any{"nkey": write(t, "seed", otherSeed)},
		},
		"creds": {
			server: operatedOptions,
			right:  map[string]any{"creds": credentialsFile(t, account)}, wrong: map[string]any{"creds": credentialsFile(t, stranger)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			address := startServer(t, c.server).Addr().String()
			if _, _, err := dialURL(t, "nats://"+c.user+address, c.right); err != nil {
				t.Error(err)
			}
			denied(t, "nats://"+c.bad+address, c.wrong, wrong, string(otherSeed))
			denied(t, "nats://"+address, nil)
		})
	}
}

// denied connects, must not succeed, and must not show a secret.
func denied(t *testing.T, url string, given map[string]any, secrets ...string) {
	t.Helper()
	_, _, err := dialURL(t, url, given)
	if err == nil {
		t.Fatal("connected")
	}
	d, lookup := driver.Lookup("nats")
	if lookup != nil {
		t.Fatal(lookup)
	}
	if kind := d.KindOf(err); kind != driver.Denied {
		t.Errorf("kind %s, want denied: %v", kind, err)
	}
	for _, s := range secrets {
		if s != "" && strings.Contains(err.Error(), s) {
			t.Errorf("the error shows a secret: %v", err)
		}
	}
}

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	key := must[*ecdsa.PrivateKey](t)(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der := must[[]byte](t)(x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key))
	a := authority{cert: must[*x509.Certificate](t)(x509.ParseCertificate(der)), key: key}
	a.file = write(t, "ca.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	return a
}

// issue gives the paths of a certificate for name and of its key.
func (a authority) issue(t *testing.T, name string, addresses ...net.IP) (cert, key string) {
	t.Helper()
	pair := must[*ecdsa.PrivateKey](t)(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		DNSNames: []string{name}, IPAddresses: addresses,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der := must[[]byte](t)(x509.CreateCertificate(rand.Reader, template, a.cert, &pair.PublicKey, a.key))
	private := must[[]byte](t)(x509.MarshalPKCS8PrivateKey(pair))
	return write(t, "cert.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		write(t, "key.pem", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))
}

func TestTLS(t *testing.T) {
	ours, theirs := newAuthority(t), newAuthority(t)
	cert, key := ours.issue(t, "broker.test") // no address: the name has to be given
	clientCert, clientKey := ours.issue(t, "client.test")
	wrongCert, wrongKey := theirs.issue(t, "client.test")
	config := must[*tls.Config](t)(server.GenTLSConfig(&server.TLSConfigOpts{CertFile: cert, KeyFile: key, CaFile: ours.file, Verify: true}))
	address := startServer(t, server.Options{TLSConfig: config, TLS: true, TLSVerify: true, TLSTimeout: 5}).Addr().String()

	client := map[string]any{"tlsCert": clientCert, "tlsKey": clientKey, "tlsCA": ours.file, "tlsServerName": "broker.test"}
	with := func(changes map[string]any) map[string]any {
		given := map[string]any{}
		for name, value := range client {
			given[name] = value
		}
		for name, value := range changes {
			if given[name] = value; value == nil {
				delete(given, name)
			}
		}
		return given
	}
	for _, scheme := range []string{"nats", "tls", "nats+tls", "jetstream", "jetstream+tls"} {
		c, _, err := dialURL(t, scheme+"://"+address, client)
		if err != nil {
			t.Fatalf("%s: %v", scheme, err)
		}
		p := must[driver.Producer](t)(c.NewProducer(within(t), driver.ProducerConfig{Topic: "tls", Window: 1, Options: driver.Values{"ackTimeout": time.Second}}))
		if err := p.Close(within(t)); err != nil {
			t.Errorf("%s: %v", scheme, err)
		}
	}
	if _, _, err := dialURL(t, "tls://"+address, with(map[string]any{"tlsCA": nil, "tlsServerName": nil, "tlsInsecure": true})); err != nil {
		t.Error(err)
	}
	for name, given := range map[string]map[string]any{
		"another authority":      with(map[string]any{"tlsCA": theirs.file}),
		"another name":           with(map[string]any{"tlsServerName": nil}),
		"no client certificate":  with(map[string]any{"tlsCert": nil, "tlsKey": nil}),
		"its certificate unsafe": with(map[string]any{"tlsCert": wrongCert, "tlsKey": wrongKey}),
	} {
		t.Run(name, func(t *testing.T) { denied(t, "nats://"+address, given) })
	}
	plain := startServer(t, server.Options{}).Addr().String()
	t.Run("the server has none", func(t *testing.T) { denied(t, "tls://"+plain, nil) })
}

// What a target's options do not say of TLS the network does.
func TestTLS_OfTheNetwork(t *testing.T) {
	ours := newAuthority(t)
	cert, key := ours.issue(t, "broker.test")
	clientCert, clientKey := ours.issue(t, "client.test")
	config := must[*tls.Config](t)(server.GenTLSConfig(&server.TLSConfigOpts{CertFile: cert, KeyFile: key, CaFile: ours.file, Verify: true}))
	address := must[*driver.Address](t)(driver.ParseURL("tls://"+startServer(t, server.Options{TLSConfig: config, TLS: true, TLSVerify: true, TLSTimeout: 5}).Addr().String(), nil))
	client := must[tls.Certificate](t)(tls.LoadX509KeyPair(clientCert, clientKey))
	for name, network := range map[string]*driver.Network{
		"neither":        {TLS: &tls.Config{MinVersion: tls.VersionTLS12}},
		"no certificate": {TLS: &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}},
		"no trust":       {TLS: &tls.Config{Certificates: []tls.Certificate{client}, MinVersion: tls.VersionTLS12}},
	} {
		if _, err := address.OpenThrough(within(t), network, "test"); address.Driver.KindOf(err) != driver.Denied {
			t.Errorf("%s: %v", name, err)
		}
	}
	c, err := address.OpenThrough(within(t), &driver.Network{TLS: &tls.Config{Certificates: []tls.Certificate{client}, InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}}, "test")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(within(t)); err != nil {
		t.Error(err)
	}
}

func TestCredentialsThatCannotBeRead(t *testing.T) {
	address := startServer(t, server.Options{}).Addr().String()
	absent := filepath.Join(t.TempDir(), "absent")
	for _, given := range []map[string]any{
		{"nkey": absent}, {"creds": absent}, {"tlsCA": absent}, {"tlsCert": absent}, {"tlsCA": write(t, "empty.pem", nil)},
	} {
		_, a, err := dialURL(t, "nats://"+address, given)
		if err == nil {
			t.Fatalf("%v: connected", given)
		}
		for name := range given {
			if !strings.Contains(err.Error(), name) {
				t.Errorf("the error does not name %q: %v", name, err)
			}
		}
		if kind := a.Driver.KindOf(err); kind != driver.Rejected {
			t.Errorf("%v: kind %s, want rejected: %v", given, kind, err)
		}
	}
}

// permitted is a user who may do nothing with forbidden subjects.
func permitted() server.Options {
	forbidden := &server.SubjectPermission{Deny: []string{"forbidden.>"}}
	return server.Options{Users: []*server.User{{
		Username: "u", Password: "p", Permissions: &server.Permissions{Publish: forbidden, Subscribe: forbidden},
	}}}
}

func TestForbiddenSubject(t *testing.T) {
	address := startServer(t, permitted()).Addr().String()
	for _, scheme := range []string{"nats", "jetstream"} {
		t.Run(scheme, func(t *testing.T) {
			c, a := open(t, scheme+"://u:p@"+address)
			p := producer(t, c, a, "forbidden.topic", nil)
			// The server answers to a subject, not to a message: where nothing is confirmed, a later message learns of it.
			for deadline := time.Now().Add(patience); ; {
				err := send(t, p, bodies(1))[0]
				if a.Driver.KindOf(err) == driver.Denied {
					break
				}
				if (err != nil && scheme == "nats") || time.Now().After(deadline) {
					t.Fatal(err)
				}
			}
			if scheme == "nats" {
				_, err := c.NewConsumer(within(t), driver.ConsumerConfig{
					Topic: "forbidden.topic", Prefetch: 1, Start: driver.StartNew, Options: values(t, a, driver.OnConsumer, nil),
				})
				if a.Driver.KindOf(err) != driver.Denied {
					t.Errorf("NewConsumer: %v, want denied", err)
				}
			}
		})
	}
}

// The server does not answer what it refuses. Every question to JetStream ends all the same, the first one and later ones.
func TestForbiddenQuestions(t *testing.T) {
	everything, inbox := &server.SubjectPermission{Deny: []string{">"}}, &server.SubjectPermission{Deny: []string{"_INBOX.>"}}
	user := func(name string, may *server.Permissions) *server.User {
		return &server.User{Username: name, Password: "p", Permissions: may}
	}
	address := startServer(t, server.Options{Users: []*server.User{
		user("nobody", &server.Permissions{Publish: everything, Subscribe: everything}),
		user("mute", &server.Permissions{Publish: everything}),
		user("deaf", &server.Permissions{Subscribe: inbox}),
	}}).Addr().String()
	for _, name := range []string{"nobody", "mute", "deaf"} {
		t.Run(name, func(t *testing.T) {
			c, a := open(t, "jetstream://"+name+":p@"+address)
			admin := c.(driver.Admin)
			spec := driver.TopicSpec{Name: "topic", Partitions: 1, Replicas: 1, Options: values(t, a, driver.OnTopic, nil)}
			for what, do := range map[string]func() error{
				"CreateTopic": func() error { return admin.CreateTopic(within(t), spec) },
				"DeleteTopic": func() error { return admin.DeleteTopic(within(t), "topic") },
				"PurgeTopic":  func() error { return admin.PurgeTopic(within(t), "topic") },
				"Backlog": func() error {
					_, err := c.(driver.Backlogger).Backlog(within(t), "topic", "")
					return err
				},
				"NewConsumer": func() error {
					_, err := c.NewConsumer(within(t), driver.ConsumerConfig{
						Topic: "topic", Prefetch: 1, Start: driver.StartNew, Options: values(t, a, driver.OnConsumer, nil),
					})
					return err
				},
			} {
				if err := do(); a.Driver.KindOf(err) != driver.Denied {
					t.Errorf("%s: %v, want denied", what, err)
				}
			}
		})
	}
}
