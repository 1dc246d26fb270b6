package faults

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/xk6-broker/xk6-broker/e2e/harness"
)

// entrance is one attempt to get in, and what shall come of it: "" or the kind of the error.
type entrance struct {
	Name string `json:"name"`
	URL  string `json:"url"`
	want string
}

// secured is a server that wants TLS and one of password, token and certificate.
type secured struct {
	t     *testing.T
	url   *url.URL
	certs string
}

func (s secured) secret(name string) string {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join(s.certs, name))
	if err != nil {
		s.t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// as is the URL for a driver and a user, if any, with options.
func (s secured) as(scheme string, user *url.Userinfo, options ...string) string {
	u, q := *s.url, s.url.Query()
	u.Scheme, u.User = scheme, user
	for i := 0; i < len(options); i += 2 {
		q.Set(options[i], options[i+1])
	}
	u.RawQuery = q.Encode()
	return u.String()
}

const wrongPassword = "5ecret-that-is-wr0ng"

// byPassword is every way to come with a password.
func (s secured) byPassword(scheme string) []entrance {
	right := url.UserPassword(s.secret("user"), s.secret("password"))
	return []entrance{
		{scheme + ": right password", s.as(scheme, right), ""},
		{scheme + ": wrong password", s.as(scheme, url.UserPassword(s.secret("user"), wrongPassword)), "denied"},
		{scheme + ": no password", s.as(scheme, nil), "denied"},
		{scheme + ": no rights", s.as(scheme, url.UserPassword(s.secret("outsider"), s.secret("password"))), "denied"},
		{scheme + ": another authority", s.as(scheme, right, "tlsCA", filepath.Join(s.certs, "other-ca.pem")), "denied"},
		{scheme + ": another name", s.as(scheme, right, "tlsServerName", "elsewhere.example"), "denied"},
	}
}

// byToken is every way to come with a token.
func (s secured) byToken(scheme string) []entrance {
	right := s.secret("user-token")
	return []entrance{
		{scheme + ": right token", s.as(scheme, nil, "token", right), ""},
		{scheme + ": a file with the token", s.as(scheme, nil, "tokenFile", filepath.Join(s.certs, "user-token")), ""},
		{scheme + ": wrong token", s.as(scheme, nil, "token", wrongPassword), "denied"},
		{scheme + ": a token that somebody else signed", s.as(scheme, nil, "token", right[:strings.LastIndex(right, ".")+1]+wrongPassword), "denied"},
		{scheme + ": a token without rights", s.as(scheme, nil, "token", s.secret("outsider-token")), "denied"},
		{scheme + ": token, another authority", s.as(scheme, nil, "token", right, "tlsCA", filepath.Join(s.certs, "other-ca.pem")), "denied"},
	}
}

// byCertificate is every way to come with a certificate.
func (s secured) byCertificate(scheme string, options ...string) []entrance {
	with := func(name string) string {
		return s.as(scheme, nil, append([]string{
			"tlsCert", filepath.Join(s.certs, name+".pem"), "tlsKey", filepath.Join(s.certs, name+"-key.pem"),
		}, options...)...)
	}
	return []entrance{
		{scheme + ": right certificate", with("client"), ""},
		{scheme + ": certificate of another authority", with("other-client"), "denied"},
		{scheme + ": no certificate", s.as(scheme, nil, options...), "denied"},
	}
}

// With the right password, token or certificate messages are sent and received; with a wrong one, or without rights, the error is of kind
// denied, comes before the time to connect is over, and is counted. No secret is shown to anybody.
func TestCredentials(t *testing.T) {
	t.Parallel()
	names := brokers(t, func(name string) bool { return strings.HasSuffix(name, "-secure") })
	p := start(t, securityPorts, names...)
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			env := map[string]secured{} // by the end of the variable's name
			certs := p.broker("certs", name)
			for line := range strings.Lines(p.broker("env", name)) {
				variable, value, _ := strings.Cut(strings.TrimSpace(line), "=")
				u, err := url.Parse(strings.Trim(value, "'"))
				if err != nil {
					t.Fatal(err)
				}
				if name == "pulsar-secure" { // by default 5 s, in which a broker that has just started on a busy machine may not make thirty topics
					q := u.Query()
					q.Set("operationTimeout", "20s")
					u.RawQuery = q.Encode()
				}
				env[variable[strings.LastIndex(variable, "_")+1:]] = secured{t, u, certs}
			}
			secrets := []string{env["SECURE"].secret("password"), wrongPassword}
			var all []entrance
			for _, address := range p.urls[name] {
				scheme, _, _ := strings.Cut(address, ":")
				all = append(all, env["SECURE"].byPassword(scheme)...)
				if at, ok := env["CERTIFICATE"]; ok {
					all = append(all, at.byCertificate(scheme)...)
				}
				switch name {
				case "rabbitmq-secure":
					all = append(all, env["SECURE"].byCertificate(scheme, "sasl", "external")...)
				case "pulsar-secure":
					all = append(all, env["SECURE"].byToken(scheme)...)
					all = append(all, env["SECURE"].byCertificate(scheme)...)
					secrets = append(secrets, env["SECURE"].secret("user-token"), env["SECURE"].secret("outsider-token"))
				}
			}
			enter(t, all, secrets)
		})
	}
}

// attempt is what became of an entrance.
type attempt struct {
	Name   string
	Got    int
	Kinds  []string
	Millis float64
}

// enter tries all entrances in one run, which shows none of the secrets.
func enter(t *testing.T, all []entrance, secrets []string) {
	t.Helper()
	entrances, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "outcome.json")
	r := harness.K6(t, []string{"ENTRANCES=" + string(entrances), "OUTCOME=" + path}, "run", "--log-format", "raw", harness.Script(t, `
import broker from 'k6/x/broker';
import exec from 'k6/execution';
const entrances = JSON.parse(__ENV.ENTRANCES).map(({ name, url }, i) => {
  const conn = broker.connect(url), topic = 'entrance-' + i;
  const consumer = conn.consumer(topic, conn.features.groups ? { group: topic } : {});
  return { name, conn, topic, consumer, producer: conn.producer(topic) };
});
// All at the same time: some servers take a while to refuse a password.
export const options = { scenarios: { all: { executor: 'per-vu-iterations', vus: entrances.length } } };
export default async function () {
  const { name, conn, topic, consumer, producer } = entrances[exec.vu.idInTest - 1];
  const begin = Date.now(), kinds = [];
  let got = 0;
  // Who may not do the one is not kept from trying the other.
  for (const step of [() => conn.createTopic(topic), () => consumer.ready(), () => producer.send(['one', 'two', 'three'])]) {
    try {
      await step();
    } catch (e) {
      kinds.push(e.kind);
      console.error(name, e);
    }
  }
  for (let i = 0; i < 20 && got < 3 && kinds.length === 0; i++) {
    const batch = await consumer.receive({ max: 3, wait: '500ms' });
    got += batch.length;
    await consumer.ack(batch);
  }
  console.log('ATTEMPT ' + JSON.stringify({ name, got, kinds, millis: Date.now() - begin }));
}
export function handleSummary(data) { return { [__ENV.OUTCOME]: JSON.stringify({ metrics: data.metrics, result: broker.result() }) }; }
`))
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("no outcome: %v\n%v", err, r)
	}
	var o harness.Outcome
	if err := json.Unmarshal(text, &o); err != nil {
		t.Fatal(err)
	}
	for _, secret := range secrets {
		if strings.Contains(r.Stdout+r.Stderr+string(text), secret) {
			t.Error("a secret is shown")
		}
	}
	attempts := map[string]attempt{}
	for line := range strings.Lines(r.Stderr) {
		if found, ok := strings.CutPrefix(line, "ATTEMPT "); ok {
			var a attempt
			if err := json.Unmarshal([]byte(found), &a); err != nil {
				t.Fatal(err)
			}
			attempts[a.Name] = a
		}
	}
	const patience = 25_000 // ms: three refusals, each well before the 10 s to connect, of which RabbitMQ delays each by 3 s
	for i, e := range all {
		a, ok := attempts[e.Name]
		t.Logf("%+v", a)
		denied := int64(0)
		for _, topic := range o.Result.Topics {
			if topic.Topic != fmt.Sprintf("entrance-%d", i) {
				continue
			}
			for _, e := range topic.Errors {
				if e.Kind == "denied" {
					denied += e.Count
				}
			}
		}
		switch {
		case !ok, e.want != "" && a.Millis > patience:
			t.Errorf("%s: %+v, in good time?\n%v", e.Name, a, r)
		case e.want == "" && (a.Got != 3 || len(a.Kinds) != 0):
			t.Errorf("%s: %+v\n%v", e.Name, a, r)
		case e.want != "" && (len(a.Kinds) == 0 || slices.ContainsFunc(a.Kinds, func(kind string) bool { return kind != e.want })):
			t.Errorf("%s: %+v, want nothing but %s\n%v", e.Name, a, e.want, r)
		case e.want != "" && denied == 0:
			t.Errorf("%s: the result counts no error of kind denied\n%v", e.Name, r)
		}
	}
}
