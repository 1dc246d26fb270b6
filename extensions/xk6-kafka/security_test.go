package kafka

import (
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// secure is a real broker that wants TLS and SASL, and what the folder of its tlsCA holds: users and certificates. At
// BROKER_URL_KAFKA_CERTIFICATE it wants a certificate instead of SASL.
type secure struct {
	url            *url.URL
	certs          string
	user, password string
}

func newSecure(t *testing.T, env string) *secure {
	t.Helper()
	if testing.Short() {
		t.Skip("part of make test-full")
	}
	raw := os.Getenv(env)
	if raw == "" {
		t.Skip("no " + env)
	}
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	s := &secure{url: u, certs: filepath.Dir(u.Query().Get("tlsCA"))}
	s.user, s.password = s.read(t, "user"), s.read(t, "password")
	return s
}

func (s *secure) read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(s.certs, name))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

// open connects with other options, where "" takes one away.
func (s *secure) open(t *testing.T, user *url.Userinfo, options map[string]string) (driver.Conn, error) {
	t.Helper()
	u := *s.url
	u.User = user
	q := u.Query()
	for name, value := range options {
		if q.Set(name, value); value == "" {
			q.Del(name)
		}
	}
	u.RawQuery = q.Encode()
	address, err := driver.ParseURL(u.String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return address.Open(within(t), "security")
}

// bearer is a token that a broker takes which looks at no signature.
func bearer(user string) string {
	now := time.Now().Unix()
	encode := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	return encode(`{"alg":"none"}`) + "." + encode(fmt.Sprintf(`{"sub":%q,"iat":%d,"exp":%d}`, user, now, now+3600)) + "."
}

func TestRightCredentials(t *testing.T) {
	s := newSecure(t, "BROKER_URL_KAFKA_SECURE")
	tokenFile := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(tokenFile, []byte(bearer(s.user)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		user    *url.Userinfo
		options map[string]string
	}{
		"plain in the URL":    {url.UserPassword(s.user, s.password), nil},
		"plain as options":    {nil, map[string]string{"user": s.user, "password": s.password}},
		"scram-sha-256":       {url.UserPassword(s.user, s.password), map[string]string{"sasl": "scram-sha-256"}},
		"scram-sha-512":       {url.UserPassword(s.user, s.password), map[string]string{"sasl": "scram-sha-512"}},
		"oauthbearer":         {nil, map[string]string{"token": bearer(s.user)}},
		"oauthbearer, a file": {nil, map[string]string{"tokenFile": tokenFile}},
		"any certificate":     {url.UserPassword(s.user, s.password), map[string]string{"tlsCA": "", "tlsInsecure": "true"}},
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := s.open(t, c.user, c.options)
			if err != nil {
				t.Fatal(err)
			}
			address, err := driver.ParseURL("kafka://127.0.0.1", nil)
			if err != nil {
				t.Fatal(err)
			}
			f := &fixture{address, conn}
			t.Cleanup(func() { closed(t, conn) })
			f.send(t, f.producer(t, f.topic(t, 1), nil), numbered(name, 3))
		})
	}
}

func TestWrongCredentials(t *testing.T) {
	s := newSecure(t, "BROKER_URL_KAFKA_SECURE")
	const secret = "5ecret-that-is-wrong"
	for name, c := range map[string]struct {
		user    *url.Userinfo
		options map[string]string
	}{
		"plain":             {url.UserPassword(s.user, secret), nil},
		"scram-sha-256":     {url.UserPassword(s.user, secret), map[string]string{"sasl": "scram-sha-256"}},
		"scram-sha-512":     {url.UserPassword(s.user, secret), map[string]string{"sasl": "scram-sha-512"}},
		"oauthbearer":       {nil, map[string]string{"token": secret}},
		"nobody":            {nil, nil},
		"another authority": {url.UserPassword(s.user, secret), map[string]string{"tlsCA": filepath.Join(s.certs, "other-ca.pem")}},
		"another name":      {url.UserPassword(s.user, secret), map[string]string{"tlsServerName": "elsewhere.example"}},
	} {
		t.Run(name, func(t *testing.T) { refused(t, s, c.user, c.options, secret) })
	}
}

// refused demands that a connection is denied before its timeout, and tells no secret.
func refused(t *testing.T, s *secure, user *url.Userinfo, options map[string]string, secret string) {
	t.Helper()
	begin := time.Now()
	conn, err := s.open(t, user, options)
	if err == nil {
		closed(t, conn)
		t.Fatal("it was let in")
	}
	d, _ := driver.Lookup("kafka")
	if kind := d.KindOf(err); kind != driver.Denied {
		t.Errorf("kind %s, want denied: %v", kind, err)
	}
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("it took %v, more than the connectTimeout", took)
	}
	if strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), s.password) {
		t.Error("the error shows the secret")
	}
	t.Log(err)
}

func TestNoPermission(t *testing.T) {
	s := newSecure(t, "BROKER_URL_KAFKA_SECURE")
	conn, err := s.open(t, url.UserPassword(s.read(t, "outsider"), s.password), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closed(t, conn) })
	admin, _ := conn.(driver.Admin)
	err = admin.CreateTopic(within(t), driver.TopicSpec{Name: "forbidden", Partitions: 1, Replicas: 1})
	d, _ := driver.Lookup("kafka")
	if kind := d.KindOf(err); kind != driver.Denied {
		t.Errorf("CreateTopic by a user without rights: kind %s, want denied: %v", kind, err)
	}
}

func TestMutualTLS(t *testing.T) {
	s := newSecure(t, "BROKER_URL_KAFKA_CERTIFICATE")
	pair := func(name string) map[string]string {
		return map[string]string{
			"tlsCert": filepath.Join(s.certs, name+".pem"), "tlsKey": filepath.Join(s.certs, name+"-key.pem"),
		}
	}
	conn, err := s.open(t, nil, pair("client"))
	if err != nil {
		t.Fatalf("with the right certificate: %v", err)
	}
	closed(t, conn)
	t.Run("of another authority", func(t *testing.T) { refused(t, s, nil, pair("other-client"), s.password) })
	t.Run("without one", func(t *testing.T) { refused(t, s, nil, nil, s.password) })
}

func TestMistakesInTheURL(t *testing.T) {
	for raw, want := range map[string]string{
		"kafka://":                                "names no broker",
		"kafka://h?tlsCA=/x":                      "tlsCA",
		"kafka+tls://h?tlsCA=/does/not/exist":     "tlsCA",
		"kafka+tls://h?tlsCert=/does/not/exist":   "tlsCert",
		"kafka://h?sasl=plain":                    "needs a user and a password",
		"kafka://user@h?sasl=scram-sha-256":       "needs a user and a password",
		"kafka://h?sasl=oauthbearer":              "needs the option token or tokenFile",
		"kafka://h1,h2?ignoreAdvertised=true":     "one host",
		"kafka-share://h?sasl=plain&password=5ec": "needs a user and a password",
	} {
		address, err := driver.ParseURL(raw, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = address.Open(within(t), "mistakes")
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "5ec") {
			t.Errorf("%s: %v, want an error that says %q and no secret", raw, err, want)
		}
	}
}

func TestNobodyAnswers(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0") // it accepts nothing and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	address, err := driver.ParseURL("kafka://"+l.Addr().String()+"?connectTimeout=200ms", nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = address.Open(within(t), "silence")
	if err == nil || !strings.Contains(err.Error(), l.Addr().String()) || address.Driver.KindOf(err) != driver.Timeout {
		t.Errorf("a server that says nothing: %v, want an error of kind timeout that names it", err)
	}
}
