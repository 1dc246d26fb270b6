package k6

import (
	"context"
	"encoding/json"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.k6.io/k6/v2/lib"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason/reasontest"
)

func TestArrivalsEndAndDoNotContradictEachOther(t *testing.T) {
	const endless = `it would never end: give "duration", "count", "stages" or "trace"`
	s := newScript(t)
	s.mustRun(`globalThis.p = broker.connect('memory://h').producer('t')`)
	for options, want := range map[string]string{
		`{}`:                                                     endless,
		`{ rate: 5 }`:                                            endless,
		`{ rate: 5, arrivals: 'poisson' }`:                       endless,
		`{ rate: 5, duration: 0 }`:                               endless,
		`{ rate: 5, duration: '0s', count: 0 }`:                  endless,
		`{ rate: 5, stages: [] }`:                                endless,
		`{ trace: '0.1', rate: 5 }`:                              `option "trace": a trace has the due times: leave out "rate"`,
		`{ trace: '0.1', stages: [] }`:                           `option "trace": a trace has the due times: leave out "stages"`,
		`{ trace: '0.1', startRate: 5 }`:                         `option "trace": a trace has the due times: leave out "startRate"`,
		`{ trace: '0.1', arrivals: 'poisson' }`:                  `option "trace": a trace has the due times: leave out "arrivals"`,
		`{ trace: '0.1', timeUnit: '1m' }`:                       `option "trace": a trace has the due times: leave out "timeUnit"`,
		`{ trace: '0.1', colour: 'red' }`:                        `no option "colour"`,
		`{ rate: 5, duration: '1s' }`:                            errInInit.Error(), // nothing else is wrong with these
		`{ rate: 5, count: 1 }`:                                  errInInit.Error(),
		`{ duration: '1s' }`:                                     errInInit.Error(),
		`{ trace: '0.1' }`:                                       errInInit.Error(),
		`{ trace: '0.1', count: 1 }`:                             errInInit.Error(),
		`{ stages: [{ target: 5, duration: 1 }], startRate: 5 }`: errInInit.Error(),
	} {
		if _, err := s.run("await p.produce(" + options + ")"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", options, err, want)
		}
	}
}

// A loop that ends within what it has received drops nothing, whatever the broker can take back:
// the next loop or receive goes on with it.
func TestBoundedLoopsDropNothing(t *testing.T) {
	for scheme, group := range map[string]string{"memory": `{ group: 'g' }`, "subject": `{}`} {
		t.Run(scheme, func(t *testing.T) {
			s := newScript(t).begin()
			s.mustRun(`
				globalThis.conn = broker.connect('` + scheme + `://127.0.0.1:7', { drainTimeout: 1 });
				await conn.createTopic('bounded');
				globalThis.p = conn.producer('bounded'), globalThis.c = conn.consumer('bounded', ` + group + `);
				await c.ready();
				await p.send(['1', '2', '3', '4', '5', '6']);
				let received = 0, calls = 0;
				for (; received < 6; calls++) {
					if (calls === 1000) throw new Error(` + "`${received} of 6 were received`" + `);
					received += (await c.consume({ duration: '5ms', work: '4ms' })).received;
				}
				if (calls === 1) throw new Error('no loop ended within what it had received');
				await p.send(['a', 'b', 'c']);
				received = (await c.consume({ duration: '2ms', work: '4ms' })).received;
				let text = 'abc'.slice(0, received);
				while (text.length < 3) {
					const [m] = await c.receive({ wait: '10m' });
					if (!m) throw new Error('there is no more after ' + text);
					if (m.attempt !== undefined && m.attempt > 1) throw new Error('it was delivered again');
					text += m.text();
					await c.ack(m);
				}
				if (text !== 'abc') throw new Error(text);`)
		})
	}
}

// What produce had not sent when its scenario ended speaks against the run, also where it was to
// wait for consumers that did not come.
func TestAScheduleThatTheScenarioEndsIsNotValid(t *testing.T) {
	for name, c := range map[string]struct{ scenarios, want string }{
		"under way":           {`{ "p": { "executor": "per-vu-iterations" } }`, "load-incomplete why=due"},
		"waits for consumers": {`{ "p": { "executor": "per-vu-iterations" }, "c": { "executor": "consumers" } }`, "load-incomplete why=due missing=1"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScript(t).begin()
			if err := json.Unmarshal([]byte(c.scenarios), &lib.GetExecutionState(s.ctx).Test.Options.Scenarios); err != nil {
				t.Fatal(err)
			}
			s.mustRun(`
				globalThis.conn = broker.connect('memory://127.0.0.1:7', { drainTimeout: 1 });
				await conn.createTopic('cut');
				globalThis.p = conn.producer('cut');
				await p.ready();`)
			before := s.ctx
			var reasons []reason.Reason
			for after := 10 * time.Millisecond; !reasontest.Has(reasons, c.want); after *= 2 { // until the call had begun before its scenario ended
				if after > time.Minute {
					t.Fatalf("no %q in %q", c.want, reasontest.Codes(reasons))
				}
				ctx, end := context.WithCancel(lib.WithScenarioState(before, &lib.ScenarioState{Name: "p"}))
				s.ctx = ctx
				time.AfterFunc(after, end)
				_, err := s.run(`await p.produce({ rate: 1000, duration: '1h' })`)
				if s.ctx = before; err != nil && !strings.Contains(err.Error(), context.Canceled.Error()) {
					t.Fatal(err)
				}
				reasons = s.module.run.buildResult().Verdict.Invalid()
			}
		})
	}
}

// What came to the members of a loop of several is for the next loop, or the next receive, of
// fewer.
func TestALoopOfFewerConsumersHasWhatTheOthersHeld(t *testing.T) {
	for _, rest := range []string{"await c.consume({ count: 200 - all })", "await c.receive({ max: 500, wait: '10m' }).then(async (list) => { await c.ack(list); return { received: list.length }; })"} {
		s := newScript(t).begin()
		s.mustRun(`globalThis.conn = broker.connect('memory://127.0.0.1:7', { drainTimeout: '1s' }); await conn.createTopic('t');
			globalThis.p = conn.producer('t'); globalThis.c = conn.consumer('t', { group: 'g', prefetch: 20 }); await c.ready();
			for (let i = 0; i < 200; i++) await p.send('x');`)
		s.mustRun(`globalThis.all = (await c.consume({ count: 30, consumers: 3, work: '1ms' })).received;
			for (let more = 1; more > 0 && all < 200;) { const next = ` + rest + `; all += more = next.received; }
			if (all < 200) throw new Error(all + ' of 200');`)
	}
}

// A producer that cannot connect sends nothing: its messages were due all the same.
func TestSend_NoConnection_MessagesWereDue(t *testing.T) {
	driver.Register(driver.Driver{
		Name: "unreachable", Schemes: []string{"unreachable"}, Features: driver.Features{Start: driver.StartNew, Headers: true},
		Open: func(context.Context, driver.Target) (driver.Conn, error) { return nil, syscall.ECONNREFUSED },
	})
	s := newScript(t).begin()
	const scenario = `{ "p": { "executor": "constant-arrival-rate", "rate": 10, "duration": "1s", "preAllocatedVUs": 1 } }`
	if err := json.Unmarshal([]byte(scenario), &s.state.Options.Scenarios); err != nil {
		t.Fatal(err)
	}
	s.state.GetScenarioGlobalVUIter = func() uint64 { return 0 }
	s.ctx = lib.WithScenarioState(s.ctx, &lib.ScenarioState{Name: "p", StartTime: time.Now()})
	for _, call := range []string{`send(['a', 'b', 'c'])`, `produce({ rate: 100, duration: '1s' })`} {
		if _, err := s.run(`await broker.connect('unreachable://127.0.0.1:7').producer('events').` + call); err == nil {
			t.Fatalf("%s resolved without a connection", call)
		}
	}
	result := s.module.run.buildResult()
	if n := result.Topics[0].Counts["due"]; n != 103 || !reasontest.Has(result.Verdict.Invalid(), "load-incomplete why=due count=103") {
		t.Errorf("%d due, %q", n, reasontest.Codes(result.Verdict.Reasons))
	}
}
