package e2e

import (
	"strings"
	"testing"

	"github.com/xk6-broker/xk6-broker/e2e/harness"
)

// A mistake in a script is found before any load starts, and said in words that name the option, what was given and what is allowed.
func TestMistakesAreFoundInInit(t *testing.T) {
	const none = "export default function () { throw new Error('the test began'); }"
	for name, c := range map[string]struct{ script, want string }{
		"unknown scheme":          {`broker.connect('zeromq://localhost')`, `no driver for scheme "zeromq": this k6 knows`},
		"no scheme":               {`broker.connect('localhost')`, "no scheme"},
		"no URL":                  {`broker.connect()`, "the URL is missing: a string such as"},
		"secret in a broken URL":  {`broker.connect('nats://user:s3cret@host:port')`, "malformed"},
		"unknown option in URL":   {`broker.connect('embedded:?colour=red')`, `no option "colour"`},
		"unknown option":          {`broker.connect('embedded:', {colour: 'red'})`, `no option "colour"`},
		"unknown profile":         {`broker.connect('embedded:', {profile: 'fast'})`, `not one of latency, throughput, durable`},
		"no topic":                {`broker.connect('embedded:').producer('')`, "the topic's name is missing"},
		"unknown producer option": {`broker.connect('embedded:').producer('t', {maxInflight: 3})`, `no option "maxInflight"`},
		"mistyped option":         {`broker.connect('jetstream://h').consumer('t', {gruop: 'g'})`, `no option "gruop" here: known are connections, group, prefetch, confirmAcks, start, profile, ackWait`},
		"mistyped scheme":         {`broker.connect('redis://h')`, `no driver for scheme "redis": this k6 knows`},
		"wrong type":              {`broker.connect('embedded:').producer('t', {maxInFlight: 'many'})`, `option "maxInFlight": "many" is not an integer from 1`},
		"window of none":          {`broker.connect('embedded:').producer('t', {maxInFlight: 0})`, `option "maxInFlight": 0 is not`},
		"unknown stamp":           {`broker.connect('embedded:').producer('t', {stamp: 'tail'})`, "not one of auto, header, body, off"},
		"options not an object":   {`broker.connect('embedded:').producer('t', 7)`, "options must be an object"},
		"stream as a queue":       {`broker.connect('rabbitmq://h?queueType=stream')`, `option "queueType": "stream" is not one of classic, quorum`},
		"list of topics":          {`broker.connect('embedded:').consumer(['a', 'b'])`, "consumer: the topic's name must be a string, not a list"},
		"unsupported start":       {`broker.connect('embedded-nats:').consumer('t', {start: 'earliest'})`, `option "start": "earliest" is not one of new`},
		"unsupported confirmAcks": {`broker.connect('embedded-nats:').consumer('t', {confirmAcks: true})`, "does not answer acknowledgements"},
		"unsupported nack":        {`broker.connect('embedded-nats:').consumer('t').nack([])`, "nats cannot requeue"},
		"unsupported request":     {`broker.connect('influxdb://h/d').producer('t').request('x')`, "influxdb has no requests: see conn.features.requests"},
		"unmet requirement":       {`broker.connect('embedded-nats:').require({replay: true})`, "replay: true (has false)"},
		"unknown feature":         {`broker.connect('embedded:').require({speed: true})`, `no feature "speed"`},
		"fraction of a second":    {`broker.connect('rabbitmq://h?heartbeat=1500ms')`, `option "heartbeat": "1500ms" is not a duration such as "500ms" or a number of milliseconds, at least 1s, at most 1h0m0s, in steps of 1s`},
		"too short":               {`broker.connect('rabbitmq://h', {heartbeat: '500ms'})`, `option "heartbeat": "500ms" is not a duration such as "500ms" or a number of milliseconds, at least 1s, at most 1h0m0s`},
		"rate of 0":               {`broker.connect('embedded:').producer('t').produce({rate: 0, duration: '1s'})`, `"rate"`},
		"negative rate":           {`broker.connect('embedded:').producer('t').produce({rate: -5, duration: '1s'})`, `"rate"`},
		"rate not a number":       {`broker.connect('embedded:').producer('t').produce({rate: 'high', duration: '1s'})`, `option "rate": "high" is not a number`},
		"unknown arrivals":        {`broker.connect('embedded:').producer('t').produce({rate: 5, arrivals: 'bursty', duration: '1s'})`, "not one of constant, poisson"},
		"endless produce":         {`broker.connect('embedded:').producer('t').produce({})`, "it would never end"},
		"endless rate":            {`broker.connect('embedded:').producer('t').produce({rate: 5})`, "it would never end"},
		"trace and rate":          {`broker.connect('embedded:').producer('t').produce({trace: '0.1', rate: 5})`, `option "trace": a trace has the due times: leave out "rate"`},
		"endless consume":         {`broker.connect('embedded:').consumer('t').consume({})`, "it would never end"},
		"body below the stamp":    {`broker.connect('embedded:').producer('t').produce({count: 1, payload: {size: 10}})`, "less than the 40 bytes of the trace stamp"},
		"unknown payload option":  {`broker.connect('embedded:').producer('t').produce({count: 1, payload: {bytes: 10}})`, `no option "bytes": known are bodies, headers, keys, order, properties, random, size`},
		"malformed trace":         {`broker.connect('embedded:').producer('t').produce({trace: '0.1\n0.2\nsoon\n'})`, "line 3"},
		"unknown ack":             {`broker.connect('embedded:').consumer('t').consume({duration: '1s', ack: 'late'})`, "not one of batch, message, none"},
		"ack where there is none": {`broker.connect('embedded-nats:').consumer('t').consume({duration: '1s', ack: 'batch'})`, "no acknowledgements"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := harness.K6(t, nil, "run", "--quiet", harness.Script(t, "import broker from 'k6/x/broker';\n"+c.script+";\n"+none))
			said := r.Stderr + r.Stdout
			if r.Code == 0 || strings.Contains(said, "the test began") {
				t.Fatalf("the test ran:\n%v", r)
			}
			if !strings.Contains(strings.ReplaceAll(said, `\"`, `"`), c.want) {
				t.Errorf("no %q in\n%v", c.want, r)
			}
			if strings.Contains(said, "s3cret@") {
				t.Errorf("the password was printed:\n%v", r)
			}
		})
	}
}

// What only the broker knows is an error of the iteration, with its kind, in bounded time.
func TestMistakesThatOnlyTheBrokerKnows(t *testing.T) {
	for name, c := range map[string]struct{ script, want string }{
		"I/O in init": {`const p = broker.connect('embedded:').producer('t');
			p.send('x').catch((e) => console.log('CAUGHT ' + e.message)); export default function () {}`, "not in the init context"},
		"unreachable": {
			`const p = broker.connect('nats://user:s3cret@127.0.0.1:9').producer('t');
			export default async function () { try { await p.send('x'); } catch (e) { console.log('CAUGHT ' + e.kind + ' ' + e.message); } }`,
			"CAUGHT disconnected nats: connect to nats://127.0.0.1:9",
		},
		"too large": {`const p = broker.connect('embedded-nats:').producer('t');
			export default async function () { try { await p.send('x'.repeat(2 << 20)); } catch (e) { console.log('CAUGHT ' + e.kind); } }`, "CAUGHT rejected"},
		"no such topic": {
			`const p = broker.connect('embedded:').producer('absent');
			export default async function () { try { await p.send('x'); } catch (e) { console.log('CAUGHT ' + e.kind + ' ' + e.message); } }`,
			`CAUGHT not_found nats-jetstream: send: nats: no response from stream: is there a topic \"absent\"? createTopic in setup makes it`,
		},
		"not a message": {`const c = broker.connect('embedded:').consumer('t');
			export default function () { try { c.ack({}); } catch (e) { console.log('CAUGHT ' + e); } }`, "a message or an array of messages that this consumer has received is needed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := harness.K6(t, nil, "run", "--quiet", "--iterations", "1", harness.Script(t, "import broker from 'k6/x/broker';\n"+c.script))
			said := r.Stderr + r.Stdout
			if !strings.Contains(said, c.want) {
				t.Errorf("no %q in\n%v", c.want, r)
			}
			if strings.Contains(said, "s3cret") {
				t.Errorf("the password was printed:\n%v", r)
			}
		})
	}
}

func TestTheNumberOfProcessesMustMakeSense(t *testing.T) {
	for want, env := range map[string][]string{
		`BROKER_PROCESSES: \"two\" is not a number of processes`: {"BROKER_RUN=a", "BROKER_PROCESSES=two"},
		`BROKER_PROCESSES: \"0\" is not a number of processes`:   {"BROKER_RUN=a", "BROKER_PROCESSES=0"},
		"give all of them the same BROKER_RUN":                   {"BROKER_PROCESSES=2"},
	} {
		if r := harness.K6(t, env, "run", "--quiet", harness.Quick); r.Code == 0 || !strings.Contains(r.Stderr, want) {
			t.Errorf("want %q\n%v", want, r)
		}
	}
}
