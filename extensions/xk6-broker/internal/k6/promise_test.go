package k6

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/engine"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// unheard is called for each batch that mute takes.
var unheard func()

// mute is a broker that takes messages and answers when its producer closes.
type mute struct {
	driver.Conn
	mu   sync.Mutex
	held []func()
}

func (m *mute) NewProducer(context.Context, driver.ProducerConfig) (driver.Producer, error) {
	return m, nil
}

func (m *mute) Send(_ context.Context, b driver.Batch, done driver.Done) {
	m.mu.Lock()
	defer m.mu.Unlock()
	unheard()
	for i := range b {
		m.held = append(m.held, func() { done(i, context.DeadlineExceeded) })
	}
}

func (m *mute) Close(context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, fail := range m.held {
		fail()
	}
	m.held = nil
	return nil
}

func init() {
	driver.Register(driver.Driver{
		Name: "mute", Schemes: []string{"mute"}, Features: driver.Features{Start: driver.StartNew, Async: true, Confirm: driver.Accepted},
		Open: func(context.Context, driver.Target) (driver.Conn, error) { return &mute{}, nil },
	})
}

// A broker that answers nothing does not hold up the end of a test, and what was sent to it has
// failed.
func TestABrokerThatDoesNotAnswer(t *testing.T) {
	for name, call := range map[string]string{
		"send":    `p.send(['a', 'b'])`,
		"produce": `p.produce({ rate: 100, duration: '1m' })`,
	} {
		t.Run(name, func(t *testing.T) {
			s := newScript(t).begin()
			s.module.run.promiseGrace = 100 * time.Millisecond
			ctx, over := context.WithCancel(s.ctx)
			s.ctx = ctx
			unheard = over
			_, err := s.run(`const p = broker.connect('mute://h', { drainTimeout: 1000 }).producer('t', { maxInFlight: 3 }); await ` + call)
			if said := s.says(); !errors.Is(err, context.Canceled) || !strings.Contains(said, name+": given up: the VU's time has ended") {
				t.Error(err, said)
			}
			if err := s.module.run.Finish(t.Context(), engine.Drain{Limit: time.Second}); err != nil {
				t.Error(err)
			}
			topic := result.New(s.module.run.collector.Measured()).Topics[0]
			var failed int64
			for _, e := range topic.Errors {
				failed += e.Count
			}
			if sent := topic.Counts["sent"]; sent == 0 || failed != sent || topic.Counts["confirmed"] != 0 {
				t.Errorf("%v, %v", topic.Counts, topic.Errors)
			}
		})
	}
}

// Ctrl-C ends a test whatever a broker and the options make it wait for.
func TestInterrupt_PromiseWithoutAnswer_IsGivenUp(t *testing.T) {
	s := newScript(t).begin()
	s.module.run.promiseGrace = 24 * time.Hour
	ctx, over := context.WithCancel(s.ctx)
	s.ctx = ctx
	unheard = func() {
		over()
		s.module.run.interrupt()
	}
	_, err := s.run(`const p = broker.connect('mute://h', { drainTimeout: '24h' }).producer('t'); await p.send('a')`)
	if said := s.says(); !errors.Is(err, context.Canceled) || !strings.Contains(said, "send: given up: the VU's time has ended") {
		t.Error(err, said)
	}
}

// A VU that has another activation soon after the first waits in it for as long as it likes.
func TestAnotherActivationIsNotGivenUp(t *testing.T) {
	s := newScript(t).begin()
	s.module.run.promiseGrace = 100 * time.Millisecond
	alive := s.ctx
	ctx, over := context.WithCancel(alive)
	s.ctx = ctx
	s.mustRun(`
		globalThis.conn = broker.connect('memory://127.0.0.1:7', { drainTimeout: 1 });
		await conn.createTopic('again');
		await conn.producer('again').ready();`)
	over()
	s.ctx = alive
	s.mustRun(`await conn.consumer('again', { group: 'g', start: 'earliest' }).receive({ wait: '400ms' })`)
	if said := s.says(); strings.Contains(said, "given up") {
		t.Error(said)
	}
}

// end is the end of the VU's activation, as k6 makes it, while the script awaits the promise of a
// call whose answer is there already.
func (s *script) end(over context.CancelFunc, body string) {
	s.t.Helper()
	if _, err := s.rt.RunString("globalThis.resumed = 0; (async () => { " + body + "; resumed++ })()"); err != nil {
		s.t.Fatal(err)
	}
	answer := <-s.calls
	s.waiting--
	over()
	s.rt.Interrupt(context.Canceled)
	if err := answer(); !errors.Is(err, context.Canceled) {
		s.t.Error(err)
	}
	s.rt.ClearInterrupt()
}

// A script that waited when its VU's activation ended is not resumed, and those of the VU's next
// activation are. What it would have been handed over it never received.
func TestAnActivationThatEndsInAnAwait(t *testing.T) {
	s := newScript(t).begin()
	alive := s.ctx
	ctx, over := context.WithCancel(alive)
	s.ctx = ctx
	s.mustRun(`
		globalThis.conn = broker.connect('memory://127.0.0.1:7', { drainTimeout: 1000 });
		await conn.createTopic('cut');
		globalThis.p = conn.producer('cut'), globalThis.c = conn.consumer('cut', { group: 'g', start: 'earliest' });
		await c.ready();
		await p.send(['a', 'b', 'c']);`)
	s.end(over, `await c.receive({ max: 3, wait: '1m' })`)
	s.ctx = alive
	if n := s.mustRun(`await p.send('d'); return resumed`); n != int64(0) {
		t.Errorf("resumed %v times", n)
	}
	if err := s.module.run.Finish(t.Context(), engine.Drain{Limit: time.Second}); err != nil {
		t.Error(err)
	}
	topic := result.New(s.module.run.collector.Measured()).Topics[0]
	if g := topic.Groups[0]; topic.Counts["confirmed"] != 4 || topic.Counts["received"] != 0 || g.Expected != 4 || g.Drained != 4 || g.Lost != 0 {
		t.Errorf("%v, %+v", topic.Counts, g)
	}
}
