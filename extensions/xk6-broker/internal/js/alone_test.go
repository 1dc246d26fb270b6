package js

import (
	"context"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"go.k6.io/k6/v2/lib"
	"go.k6.io/k6/v2/metrics"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/memory"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/executors"
)

// slow is a broker in memory that works on each message for 50 ms.
func init() {
	driver.Register(memory.New(memory.Config{Name: "slow", Service: func(int64) time.Duration { return 50 * time.Millisecond }}).Driver())
}

// driven is a VU of an open-arrival-rate scenario, whose iterations run a script.
type driven struct {
	*script

	iteration string
	params    *lib.VUActivationParams
	late, own time.Duration // of the latest arrival, and by the generator's own fault
}

func (a *driven) GetID() uint64 { return 1 }

func (a *driven) Activate(p *lib.VUActivationParams) lib.ActiveVU {
	a.params, a.ctx = p, lib.WithExecutionState(p.RunContext, lib.GetExecutionState(a.ctx))
	context.AfterFunc(p.RunContext, func() { p.DeactivateCallback(a) })
	return a
}

func (a *driven) RunOnce() error {
	arrival, _ := executors.FromContext(a.ctx)
	a.late = time.Duration(arrival.Started - arrival.Due)
	a.own = time.Duration(arrival.Started - arrival.Free)
	a.state.Iteration++
	if _, err := a.run(a.iteration); err != nil {
		a.t.Error(err)
	}
	return nil
}

// arrive runs an iteration 20 times a second for a second, one at a time, and tells how late the last one began, how much of that is taken for the
// generator's own, and for how long the machine had let the process stand still.
func (s *script) arrive(iteration string) (late, own, stood time.Duration) {
	s.t.Helper()
	c, err := lib.GetParsedExecutorConfig("s", executors.Type, []byte(`{"rate":20,"duration":"1s","preAllocatedVUs":1}`))
	if err != nil {
		s.t.Fatal(err)
	}
	es := lib.GetExecutionState(s.ctx)
	es.Test.Options.SystemTags, es.Test.BuiltinMetrics = &metrics.DefaultSystemTagSet, s.state.BuiltinMetrics
	vu := &driven{script: s, iteration: iteration}
	es.AddInitializedVU(vu)
	logger := logrus.New()
	logger.SetOutput(io.Discard)
	e, err := c.NewExecutor(es, logrus.NewEntry(logger))
	if err != nil {
		s.t.Fatal(err)
	}
	if err := e.Init(s.ctx); err != nil {
		s.t.Fatal(err)
	}
	over := make(chan struct{})
	var beating sync.WaitGroup
	beating.Go(func() {
		beat := time.NewTicker(5 * time.Millisecond)
		defer beat.Stop()
		for seen := time.Now(); ; seen = time.Now() {
			select {
			case <-beat.C:
			case <-over:
				return
			}
			if gap := time.Since(seen); gap > 8*time.Millisecond {
				stood += gap
			}
		}
	})
	err = e.Run(s.ctx, s.state.Samples)
	close(over)
	beating.Wait()
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Logf("the last was %v late, of which %v is taken for the generator's own; the process stood still for %v", vu.late, vu.own, stood)
	if vu.late < 500*time.Millisecond {
		s.t.Errorf("the last arrival was %v late", vu.late)
	}
	return vu.late, vu.own, stood
}

// What waits for a VU whose script waits for a time of its own choosing waits for the generator, also where it does so through this module.
func TestWhatAScriptChoosesToWaitForIsItsOwn(t *testing.T) {
	for name, iteration := range map[string]string{
		"a receive that finds nothing":                  `await c.receive({ wait: '100ms' });`,
		"two of them beside a send":                     `await Promise.all([p.send('x'), c.receive({ wait: '100ms' }), c.receive({ wait: '100ms' })]);`,
		"the duration of consume":                       `await c.consume({ duration: '100ms' });`,
		"the duration of consume, of what comes":        `feed(); await mine.consume({ duration: '100ms' });`,
		"the idling of consume":                         `await c.consume({ idle: '100ms' });`,
		"the work of consume":                           `await q.send('x'); await mine.consume({ count: 1, work: '100ms' });`,
		"the schedule of produce":                       `await p.produce({ rate: 20, count: 3 });`,
		"the duration of produce":                       `await p.produce({ duration: '100ms' });`,
		"work, while an ack that was there is unread":   `await q.send('x'); const acked = mine.ack(await mine.receive({ wait: '1m' })); work(); await acked;`,
		"work, while it is not heard that all is ready": `const ready = c.ready(); work(); await ready;`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if late, own, _ := asked(t, "memory").arrive(iteration); own < late*9/10 {
				t.Errorf("of %v, %v are taken for the generator's own", late, own)
			}
		})
	}
}

// What waits for a VU whose script waits for what only the system can answer, be it somebody beyond it, waits for the system.
func TestWhatOnlyTheSystemAnswersIsItsOwn(t *testing.T) {
	for name, iteration := range map[string]string{
		"sends":                            `await p.send('x'); await p.send('y');`,
		"a request":                        `await asks.request('reply');`,
		"an answer by another topic":       `await asks.send('?'); await answers.receive({ wait: '1m' });`,
		"an answer, by consume":            `await asks.send('?'); await answers.consume({ count: 1 });`,
		"an answer, beside what is not":    `await asks.send('?'); await Promise.all([answers.receive({ wait: '1m' }), c.receive({ wait: '10ms' })]);`,
		"a produce that ends by its count": `await p.produce({ count: 2 });`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if late, own, stood := asked(t, "slow").arrive(iteration); own > 150*time.Millisecond+2*stood {
				t.Errorf("of %v, %v are taken for the generator's own", late, own)
			}
		})
	}
}

var hosts struct {
	sync.Mutex
	n int
}

// asked is a script with a producer and a consumer of topics of their own, with another that reads what it sends itself, and with a service that answers.
func asked(t *testing.T, scheme string) *script {
	t.Helper()
	hosts.Lock()
	hosts.n++
	prepare := fmt.Sprintf(`
		globalThis.conn = broker.connect('%s://127.0.0.1:7', { drainTimeout: 1000 });
		const topic = (name) => name + %d;
		for (const name of ['to', 'from', 'mine', 'questions', 'answers']) await conn.createTopic(topic(name));
		const group = { group: 'g', start: 'earliest' };
		globalThis.p = conn.producer(topic('to')), globalThis.c = conn.consumer(topic('from'), group);
		globalThis.q = conn.producer(topic('mine')), globalThis.mine = conn.consumer(topic('mine'), group);
		globalThis.asks = conn.producer(topic('questions')), globalThis.answers = conn.consumer(topic('answers'), group);
		globalThis.questions = conn.consumer(topic('questions'), group), globalThis.tells = conn.producer(topic('answers'));
		globalThis.feed = () => { for (let i = 0; i < 100; i++) q.send('x'); };`, scheme, hosts.n)
	hosts.Unlock()
	s, service := newScript(t).begin(), newScript(t).begin()
	s.set("work", func() { time.Sleep(100 * time.Millisecond) })
	s.mustRun(prepare)
	service.mustRun(prepare)
	var serving sync.WaitGroup
	ctx, over := context.WithCancel(service.ctx)
	service.ctx = ctx
	serving.Go(func() {
		for ctx.Err() == nil {
			_, _ = service.run(`const [m] = await questions.receive({ max: 1, wait: '100ms' });
				if (m) await Promise.all([m.text() === 'reply' ? questions.reply(m, '!') : tells.send('!'), questions.ack(m)]);`)
		}
	})
	t.Cleanup(serving.Wait)
	t.Cleanup(over)
	return s
}
