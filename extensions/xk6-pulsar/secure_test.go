package pulsar

import (
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// secure is a real broker that wants TLS and to know who somebody is, and what the folder of its tlsCA holds: certificates, tokens and passwords.
type secure struct {
	*testing.T
	url   *url.URL
	certs string
}

func newSecure(t *testing.T) *secure {
	t.Helper()
	if testing.Short() {
		t.Skip("part of make test-full")
	}
	raw := os.Getenv("BROKER_URL_PULSAR_SECURE")
	if raw == "" {
		t.Skip("no BROKER_URL_PULSAR_SECURE")
	}
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return &secure{t, u, filepath.Dir(u.Query().Get("tlsCA"))}
}

func (s *secure) at(name string) string { return filepath.Join(s.certs, name) }

func (s *secure) read(name string) string {
	s.Helper()
	b, err := os.ReadFile(s.at(name))
	if err != nil {
		s.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

// as is the address with other options, of which nil takes one away.
func (s *secure) as(options map[string]any) *driver.Address {
	s.Helper()
	u, given := *s.url, map[string]any{}
	q := u.Query()
	for name, value := range options {
		q.Del(name)
		if value != nil {
			given[name] = value
		}
	}
	u.RawQuery = q.Encode()
	a, err := driver.ParseURL(u.String(), given)
	if err != nil {
		s.Fatal(err)
	}
	return a
}

// open connects, or demands a connection of it.
func (s *secure) open(options map[string]any) *fixture {
	s.Helper()
	a := s.as(options)
	c, err := a.Open(within(s), "xk6-pulsar-test")
	if err != nil {
		s.Fatal(err)
	}
	f := &fixture{s, a, c.(*conn)}
	f.closes(c)
	return f
}

// forged is a token of the right user that somebody has signed with another key.
func (s *secure) forged() string {
	token := s.read("user-token")
	signature := strings.LastIndex(token, ".") + 1
	return token[:signature] + strings.Map(func(c rune) rune {
		if c == 'A' {
			return 'B'
		}
		return 'A'
	}, token[signature:])
}

func TestWhoIsLetIn(t *testing.T) {
	s := newSecure(t)
	for name, options := range map[string]map[string]any{
		"token":                 {"token": s.read("user-token")},
		"file with the token":   {"tokenFile": s.at("user-token")},
		"password":              {"user": s.read("user"), "password": s.read("password")},
		"certificate":           {"tlsCert": s.at("client.pem"), "tlsKey": s.at("client-key.pem")},
		"token, and any server": {"token": s.read("user-token"), "tlsCA": nil, "tlsInsecure": true},
	} {
		t.Run(name, func(t *testing.T) {
			f := (&secure{t, s.url, s.certs}).open(options)
			topic := f.topic(2)
			c := f.consumer(topic, "", nil)
			f.send(f.producer(topic, nil), numbered(3))
			if err := c.Settle(within(t), f.take(c, 3), driver.Ack); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestWhoIsDenied(t *testing.T) {
	s := newSecure(t)
	const wrong = "5ecret-that-is-wr0ng"
	token, forged, password := s.read("user-token"), s.forged(), s.read("password")
	for name, c := range map[string]struct {
		options map[string]any
		says    string
	}{
		"wrong token":                        {map[string]any{"token": wrong}, "refuses"},
		"a token that somebody else signed":  {map[string]any{"token": forged}, "refuses"},
		"no token":                           {nil, "refuses"},
		"wrong password":                     {map[string]any{"user": s.read("user"), "password": wrong}, "refuses"},
		"a certificate of another authority": {map[string]any{"tlsCert": s.at("other-client.pem"), "tlsKey": s.at("other-client-key.pem")}, "tls: "},
		"another authority":                  {map[string]any{"token": token, "tlsCA": s.at("other-ca.pem")}, "unknown authority"},
		"the system's authorities":           {map[string]any{"token": token, "tlsCA": nil}, "unknown authority"},
		"another name":                       {map[string]any{"token": token, "tlsServerName": "elsewhere.example"}, "elsewhere.example"},
	} {
		t.Run(name, func(t *testing.T) {
			options := map[string]any{"operationTimeout": "100ms"} // so long the client asks on that was refused
			maps.Copy(options, c.options)
			a := (&secure{t, s.url, s.certs}).as(options)
			conn, err := a.Open(within(t), "xk6-pulsar-test")
			if err == nil {
				_ = conn.Close(within(t))
				t.Fatal("it was let in")
			}
			if kind := a.Driver.KindOf(err); kind != driver.Denied || !strings.Contains(err.Error(), c.says) {
				t.Errorf("kind %s, want denied and %q: %v", kind, c.says, err)
			}
			for _, secret := range []string{wrong, token, forged, password} {
				if strings.Contains(err.Error(), secret) {
					t.Error("the error shows a secret")
				}
			}
		})
	}
}

// A server with TLS says nothing to who does not speak it, and the scheme alone is enough to speak it: then the server's certificate is looked at.
func TestTheSchemeAsksForTLS(t *testing.T) {
	s := newSecure(t)
	for scheme, says := range map[string]string{"pulsar": `set option "tls"`, "pulsar+ssl": "unknown authority"} {
		s.url.Scheme = scheme
		a := s.as(map[string]any{"tls": nil, "tlsCA": nil, "connectTimeout": "2s", "operationTimeout": "100ms"})
		conn, err := a.Open(within(t), "xk6-pulsar-test")
		if err == nil {
			_ = conn.Close(within(t))
			t.Fatalf("%s: it was let in", scheme)
		}
		if !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", scheme, err, says)
		}
	}
}

// Who may do nothing is connected, and denied whatever they ask for.
func TestNoRights(t *testing.T) {
	s := newSecure(t)
	topic := s.open(map[string]any{"tokenFile": s.at("user-token")}).topic(1)
	f := s.open(map[string]any{"tokenFile": s.at("outsider-token")})
	consumer := driver.ConsumerConfig{Topic: topic, Group: "group", Prefetch: 1, Start: driver.StartNew, Options: f.values(driver.OnConsumer, nil)}
	for what, do := range map[string]func() error{
		"CreateTopic": func() error {
			return f.conn.CreateTopic(within(t), driver.TopicSpec{Name: "forbidden", Partitions: 1, Replicas: 1, Options: f.values(driver.OnTopic, nil)})
		},
		"DescribeTopic": func() error { _, err := f.conn.DescribeTopic(within(t), topic); return err },
		"PurgeTopic":    func() error { return f.conn.PurgeTopic(within(t), topic) },
		"DeleteTopic":   func() error { return f.conn.DeleteTopic(within(t), topic) },
		"Backlog":       func() error { _, err := f.conn.Backlog(within(t), topic, "group"); return err },
		"NewProducer": func() error {
			_, err := f.conn.NewProducer(within(t), driver.ProducerConfig{Topic: topic, Window: 1, Options: f.values(driver.OnProducer, nil)})
			return err
		},
		"NewConsumer": func() error { _, err := f.conn.NewConsumer(within(t), consumer); return err },
	} {
		if err := do(); f.address.Driver.KindOf(err) != driver.Denied {
			t.Errorf("%s: %v, want kind denied", what, err)
		}
	}
}

// Opening a connection asks for no more than somebody may who has been granted one topic.
func TestRightsOnOneTopicAreEnough(t *testing.T) {
	s := newSecure(t)
	owner := s.open(map[string]any{"tokenFile": s.at("user-token")})
	topic := owner.topic(1)
	name, err := owner.conn.topic(topic)
	if err != nil {
		t.Fatal(err)
	}
	grant := name.path() + "/permissions/" + s.read("outsider")
	if err := owner.conn.admin.call(within(t), http.MethodPost, grant, []string{"produce", "consume"}, nil); err != nil {
		t.Fatal(err)
	}
	f := s.open(map[string]any{"tokenFile": s.at("outsider-token")})
	c := f.consumer(topic, "", nil)
	f.send(f.producer(topic, nil), numbered(3))
	if err := c.Settle(within(t), f.take(c, 3), driver.Ack); err != nil {
		t.Error(err)
	}
}
