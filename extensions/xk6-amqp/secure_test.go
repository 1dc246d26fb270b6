package amqp_test

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// kindOfOpening tries to connect and gives the kind of the error, "" where there is none.
func kindOfOpening(t *testing.T, raw string, secrets ...string) driver.Kind {
	t.Helper()
	address, err := driver.ParseURL(raw, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := address.Open(ctx, "test")
	if err == nil {
		if err := c.Close(ctx); err != nil {
			t.Error(err)
		}
		return ""
	}
	for _, secret := range secrets {
		if secret != "" && strings.Contains(err.Error(), secret) {
			t.Error("the error shows a secret")
		}
	}
	return address.Driver.KindOf(err)
}

func TestWrongPasswordIsDenied(t *testing.T) {
	raw := server(t, "rabbitmq")
	if raw == "" {
		t.Skip("no URL for rabbitmq")
	}
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal("the URL is malformed")
	}
	u.User = url.UserPassword("guest", "not-the-password")
	if kind := kindOfOpening(t, u.String(), "not-the-password"); kind != driver.Denied {
		t.Errorf("a wrong password is %q, want denied", kind)
	}
	u, _ = url.Parse(raw)
	u.Path = "/no-such-vhost"
	if kind := kindOfOpening(t, u.String()); kind != driver.NotFound {
		t.Errorf("an absent vhost is %q, want not_found", kind)
	}
	u.Path = "/%2F"
	u.RawPath = ""
	u.Path = "//"
	if kind := kindOfOpening(t, u.String()); kind != "" {
		t.Errorf("the vhost / is %q", kind)
	}
	u, _ = url.Parse(raw)
	u.RawQuery = "tls=true"
	if kind := kindOfOpening(t, u.String()); kind != driver.Unsupported {
		t.Errorf("TLS to a port without it is %q, want unsupported", kind)
	}
}

// secure is what scripts/broker makes for rabbitmq-secure: a server with TLS, and the files beside its authority.
type secure struct {
	url   *url.URL
	certs string
}

func newSecure(t *testing.T) *secure {
	t.Helper()
	if testing.Short() {
		t.Skip("part of make test-full")
	}
	raw := os.Getenv("BROKER_URL_RABBITMQ_SECURE")
	if raw == "" {
		t.Skip("no BROKER_URL_RABBITMQ_SECURE")
	}
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal("BROKER_URL_RABBITMQ_SECURE is malformed")
	}
	return &secure{u, filepath.Dir(u.Query().Get("tlsCA"))}
}

func (s *secure) file(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.certs, name))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// as is the URL for a user, who may be nil, with options, of which "" takes one away.
func (s *secure) as(user *url.Userinfo, options ...string) string {
	u := *s.url
	u.User = user
	q := u.Query()
	for i := 0; i+1 < len(options); i += 2 {
		q.Set(options[i], options[i+1])
		if options[i+1] == "" {
			q.Del(options[i])
		}
	}
	u.RawQuery = q.Encode()
	return u.String()
}

func TestSecure(t *testing.T) {
	s := newSecure(t)
	password := s.file(t, "password")
	user := url.UserPassword(s.file(t, "user"), password)
	at := func(name string) string { return filepath.Join(s.certs, name) }
	for _, c := range []struct {
		name string
		url  string
		want driver.Kind
	}{
		{"password", s.as(user), ""},
		{"own certificate too", s.as(user, "tlsCert", at("client.pem"), "tlsKey", at("client-key.pem")), ""},
		{"own certificate instead", s.as(nil, "sasl", "external", "tlsCert", at("client.pem"), "tlsKey", at("client-key.pem")), ""},
		{"any server", s.as(user, "tlsCA", "", "tlsInsecure", "true"), ""},
		{"another name", s.as(user, "tlsServerName", "elsewhere.example"), driver.Denied},
		{"another authority", s.as(user, "tlsCA", at("other-ca.pem")), driver.Denied},
		{"the system's authorities", s.as(user, "tlsCA", ""), driver.Denied},
		{"a certificate of another authority", s.as(user, "tlsCert", at("other-client.pem"), "tlsKey", at("other-client-key.pem")), driver.Denied},
		{"wrong password", s.as(url.UserPassword(user.Username(), "not-the-password")), driver.Denied},
		{"no password", s.as(nil), driver.Denied},
		{"external without a certificate", s.as(nil, "sasl", "external"), driver.Denied},
		{"a user without permissions", s.as(url.UserPassword(s.file(t, "outsider"), password)), driver.Denied},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := kindOfOpening(t, c.url, password, "not-the-password"); got != c.want {
				t.Errorf("kind %q, want %q", got, c.want)
			}
		})
	}
}

// A connection that is encrypted carries messages, and one without TLS gets no answer that it understands.
func TestSecureCarriesMessages(t *testing.T) {
	s := newSecure(t)
	user := url.UserPassword(s.file(t, "user"), s.file(t, "password"))
	r := newRig(t, s.as(user))
	topic := r.topic(nil)
	p, c := r.producer(topic, 100, nil), r.consumer(topic, "", 100)
	r.kinds("", r.send(p, text("one"), text("two"), driver.Message{Body: make([]byte, 1<<20)})...)
	if b := r.take(c, 3); string(b[1].Body) != "two" || len(b[2].Body) != 1<<20 {
		t.Errorf("%q and %d bytes came", b[1].Body, len(b[2].Body))
	}
	plain := s.as(user, "tls", "", "tlsCA", "")
	plain = "amqp" + plain[strings.Index(plain, ":"):]
	if kind := kindOfOpening(t, plain); kind == "" {
		t.Error("plain text to a port with TLS is accepted")
	}
}
