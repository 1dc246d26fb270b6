package redis_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

const secret = "c0rrect-horse"

// tryAll connects, sends and receives one message, and gives the first error.
func tryAll(t *testing.T, url string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c, err := parse(t, url, nil).Open(ctx, "security")
	if err != nil {
		return err
	}
	defer func() { _ = c.Close(ctx) }()
	name := "secured"
	if err := c.(driver.Admin).CreateTopic(ctx, driver.TopicSpec{Name: name, Partitions: 1, Replicas: 1}); err != nil {
		return err
	}
	r, err := c.NewConsumer(ctx, driver.ConsumerConfig{
		Topic: name, Group: "g", Prefetch: 1, Start: driver.StartEarliest, Options: resolve(t, url, driver.OnConsumer, nil),
	})
	if err != nil {
		return err
	}
	defer shut(t, r)
	p, err := c.NewProducer(ctx, driver.ProducerConfig{Topic: name, Window: 1, Options: resolve(t, url, driver.OnProducer, nil)})
	if err != nil {
		return err
	}
	defer shut(t, p)
	if err := sendOne(ctx, p, "x"); err != nil {
		return err
	}
	b := receive(t, r, 1)
	return r.Settle(ctx, b, driver.Ack)
}

// denied checks the kind of an error, and that it shows no secret.
func denied(t *testing.T, what string, err error) {
	t.Helper()
	if kind := kindOf(t, "redis-streams", err); kind != driver.Denied {
		t.Errorf("%s: %v, of kind %q", what, err, kind)
	}
	if err != nil && (strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), "wr0ng")) {
		t.Errorf("%s: the error shows the password", what)
	}
}

func TestAuthentication(t *testing.T) {
	if testing.Short() {
		t.Skip("part of make test-full")
	}
	s := start(t, "--requirepass", secret)
	admin := redis.NewClient(&redis.Options{Addr: s.addr(), Password: secret})
	defer func() { _ = admin.Close() }()
	for _, rule := range [][]any{
		{"ACL", "SETUSER", "alice", "on", ">" + secret, "~*", "&*", "+@all"},
		{"ACL", "SETUSER", "reader", "on", ">" + secret, "~*", "&*", "+@all", "-xadd"},
		{"ACL", "SETUSER", "noclient", "on", ">" + secret, "~*", "&*", "+@all", "-client"},
	} {
		if err := admin.Do(t.Context(), rule...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for _, right := range []string{
		"redis-streams://:" + secret + "@" + s.addr(),
		"redis-streams://alice:" + secret + "@" + s.addr(),
		"redis-streams://" + s.addr() + "?user=alice&password=" + secret,
		"redis-streams://noclient:" + secret + "@" + s.addr(),
	} {
		if err := tryAll(t, right); err != nil {
			t.Errorf("with the right password: %v", err)
		}
	}
	for what, wrong := range map[string]string{
		"no password":    "redis-streams://" + s.addr(),
		"wrong password": "redis-streams://:wr0ng@" + s.addr(),
		"wrong user":     "redis-streams://bob:" + secret + "@" + s.addr(),
		"no permission":  "redis-streams://reader:" + secret + "@" + s.addr(),
	} {
		denied(t, what, tryAll(t, wrong))
	}
}

// authority signs certificates into a folder.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	dir  string
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{dir: t.TempDir()}
	a.cert, a.key = a.sign(t, "ca", true)
	return a
}

func (a *authority) path(name string) string { return filepath.Join(a.dir, name) }

func (a *authority) sign(t *testing.T, name string, ca bool) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	serial, err2 := rand.Int(rand.Reader, big.NewInt(1<<62))
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: ca, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	parent, signer := template, key
	if a.cert != nil {
		parent, signer = a.cert, a.key
	}
	der, err3 := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	private, err4 := x509.MarshalECPrivateKey(key)
	cert, err5 := x509.ParseCertificate(der)
	if err := errors.Join(err, err2, err3, err4, err5,
		os.WriteFile(a.path(name+".pem"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600),
		os.WriteFile(a.path(name+"-key.pem"), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private}), 0o600),
	); err != nil {
		t.Fatal(err)
	}
	return cert, key
}

func TestTLS(t *testing.T) {
	if testing.Short() {
		t.Skip("part of make test-full")
	}
	ours, theirs := newAuthority(t), newAuthority(t)
	ours.sign(t, "server", false)
	ours.sign(t, "client", false)
	theirs.sign(t, "client", false)
	s := start(t, "--tls-cert-file", ours.path("server.pem"), "--tls-key-file", ours.path("server-key.pem"),
		"--tls-ca-cert-file", ours.path("ca.pem"), "--tls-auth-clients", "yes", "--requirepass", secret, "--tls-port", strconv.Itoa(freePort(t)))
	admin := redis.NewClient(&redis.Options{Addr: s.addr(), Password: secret})
	defer func() { _ = admin.Close() }()
	port := admin.ConfigGet(t.Context(), "tls-port").Val()["tls-port"]
	url := func(query string) string { return "redis-streams://:" + secret + "@127.0.0.1:" + port + "?" + query }
	cert := func(a *authority) string {
		return "&tlsCert=" + a.path("client.pem") + "&tlsKey=" + a.path("client-key.pem")
	}
	for _, right := range []string{
		"tlsCA=" + ours.path("ca.pem") + cert(ours),
		"tlsInsecure=true" + cert(ours),
	} {
		if err := tryAll(t, url(right)); err != nil {
			t.Errorf("with the right certificates: %v", err)
		}
	}
	for what, wrong := range map[string]string{
		"another authority":       "tlsCA=" + theirs.path("ca.pem") + cert(ours),
		"the system's authority":  "tls=true" + cert(ours),
		"no certificate":          "tlsCA=" + ours.path("ca.pem"),
		"a certificate of others": "tlsCA=" + ours.path("ca.pem") + cert(theirs),
		"another name":            "tlsCA=" + ours.path("ca.pem") + "&tlsServerName=elsewhere.example" + cert(ours),
	} {
		denied(t, what, tryAll(t, url(wrong)))
	}
}
