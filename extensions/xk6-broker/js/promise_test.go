package js

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/load"
)

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

// A broker that answers nothing does not hold up the end of a test, and what was sent to it has failed.
func TestABrokerThatDoesNotAnswer(t *testing.T) {
	for name, call := range map[string]string{
		"send":    `p.send(['a', 'b'])`,
		"produce": `p.produce({ rate: 100, duration: '1m' })`,
	} {
		t.Run(name, func(t *testing.T) {
			s := newScript(t).begin()
			s.module.run.patience = 100 * time.Millisecond
			ctx, over := context.WithCancel(s.ctx)
			s.ctx = ctx
			time.AfterFunc(200*time.Millisecond, over)
			_, err := s.run(`const p = broker.connect('mute://h', { drainTimeout: 1000 }).producer('t', { maxInFlight: 3 }); await ` + call)
			if err == nil || !strings.Contains(err.Error(), name+": given up 100ms after the end of the VU's time") {
				t.Error(err)
			}
			if err := s.module.run.Finish(t.Context(), load.Drain{Limit: time.Second}); err != nil {
				t.Error(err)
			}
			topic := s.module.run.collector.Result().Topics[0]
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

// A VU that has another activation soon after the first waits in it for as long as it likes.
func TestAnotherActivationIsNotGivenUp(t *testing.T) {
	s := newScript(t).begin()
	s.module.run.patience = 100 * time.Millisecond
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
