package amqp1_test

import (
	"context"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// opening opens a URL and gives the error, in which no secret may be.
func opening(t *testing.T, raw string, secrets ...string) (driver.Kind, error) {
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
		return "", nil
	}
	for _, s := range secrets {
		if s != "" && strings.Contains(err.Error(), s) {
			t.Error("the error shows a secret")
		}
	}
	return address.Driver.KindOf(err), err
}

// A server of another protocol is named as such: one that says what it is, and one of the protocol whose name is nearly the same.
func TestAnotherProtocol(t *testing.T) {
	for answer, says := range map[string]string{
		"HTTP/1.1 400 Bad Request\r\n\r\n": `unexpected protocol "HTTP"`,
		"AMQP\x00\x00\x09\x01":             "speaks AMQP 0-9-1",
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Close() }()
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				_, _ = io.ReadFull(c, make([]byte, 8))
				_, _ = io.WriteString(c, answer)
				_ = c.Close()
			}
		}()
		kind, err := opening(t, "amqp1://user:Pa55@"+l.Addr().String(), "Pa55")
		if kind != driver.Unsupported || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: kind %q: %v", answer, kind, err)
		}
	}
}

func TestOptionsThatAreOfNoUse(t *testing.T) {
	d, err := driver.Lookup("amqp1")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		scope driver.Scope
		given map[string]any
		says  string
	}{
		{driver.OnProducer, map[string]any{"priority": 10}, "at most 9"},
		{driver.OnProducer, map[string]any{"ttl": "1us"}, "in steps of 1ms"},
		{driver.OnConsumer, map[string]any{"requeue": "later"}, "modify, elsewhere, release"},
		{driver.OnConnect, map[string]any{"sasl": "kerberos"}, "auto, plain, anonymous, external"},
		{driver.OnConsumer, map[string]any{"groupAddress": "x"}, "no option"},
	} {
		if _, err := d.Resolve(c.scope, driver.Latency, c.given); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v: %v", c.given, err)
		}
	}
	if _, err := d.Properties(map[string]any{"expiration": "1s"}); err == nil || !strings.Contains(err.Error(), "expiration") {
		t.Errorf("a property that there is none of: %v", err)
	}
}

func TestSecure(t *testing.T) {
	if testing.Short() {
		t.Skip("part of make test-full")
	}
	raw := os.Getenv("BROKER_URL_ARTEMIS_SECURE")
	if raw == "" {
		t.Skip("no BROKER_URL_ARTEMIS_SECURE")
	}
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal("BROKER_URL_ARTEMIS_SECURE is malformed")
	}
	certs := filepath.Dir(u.Query().Get("tlsCA"))
	file := func(name string) string {
		b, err := os.ReadFile(filepath.Join(certs, name))
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(b))
	}
	as := func(user *url.Userinfo, options ...string) string {
		to := *u
		to.User = user
		q := to.Query()
		for i := 0; i+1 < len(options); i += 2 {
			q.Set(options[i], options[i+1])
			if options[i+1] == "" {
				q.Del(options[i])
			}
		}
		to.RawQuery = q.Encode()
		return to.String()
	}
	password := file("password")
	user := url.UserPassword(file("user"), password)
	at := func(name string) string { return filepath.Join(certs, name) }
	for _, c := range []struct {
		name string
		url  string
		want driver.Kind
	}{
		{"password", as(user), ""},
		{"own certificate too", as(user, "tlsCert", at("client.pem"), "tlsKey", at("client-key.pem")), ""},
		{"any server", as(user, "tlsCA", "", "tlsInsecure", "true"), ""},
		{"another name", as(user, "tlsServerName", "elsewhere.example"), driver.Denied},
		{"another authority", as(user, "tlsCA", at("other-ca.pem")), driver.Denied},
		{"the system's authorities", as(user, "tlsCA", ""), driver.Denied},
		{"a certificate of another authority", as(user, "tlsCert", at("other-client.pem"), "tlsKey", at("other-client-key.pem")), driver.Denied},
		{"wrong password", as(url.UserPassword(user.Username(), "not-the-password")), driver.Denied},
		{"no password", as(nil), driver.Denied},
		{"external without a certificate", as(nil, "sasl", "external"), driver.Denied},
		{"no TLS", as(user, "tls", "", "tlsCA", ""), driver.Unsupported},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, err := opening(t, c.url, password, "not-the-password"); got != c.want {
				t.Errorf("kind %q, want %q: %v", got, c.want, err)
			}
		})
	}
	t.Run("a user without permissions", func(t *testing.T) {
		r := rigAt(t, as(url.UserPassword(file("outsider"), password)))
		r.kind(r.create("denied", nil), driver.Denied)
		_, err := r.conn.NewProducer(r.context(), driver.ProducerConfig{Topic: "DLQ", Window: 1, Options: r.values(driver.OnProducer, nil)})
		r.kind(err, driver.Denied)
		_, err = r.tryConsumer("DLQ", "", 1, nil)
		r.kind(err, driver.Denied)
	})
	t.Run("messages", func(t *testing.T) {
		r := rigAt(t, as(user))
		topic := r.topic()
		c := r.consumer(topic, "", nil)
		r.send(r.producer(topic, nil), text("one"), driver.Message{Body: make([]byte, 1<<20)})
		b := r.take(c, 2)
		if string(b[0].Body) != "one" || len(b[1].Body) != 1<<20 {
			t.Errorf("%q and %d bytes came", b[0].Body, len(b[1].Body))
		}
		r.settle(c, b, driver.Ack)
	})
}
