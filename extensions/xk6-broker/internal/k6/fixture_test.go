package k6

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/grafana/sobek"
	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"go.k6.io/k6/v2/js/common"
	"go.k6.io/k6/v2/js/modules"
	"go.k6.io/k6/v2/lib"
	"go.k6.io/k6/v2/metrics"
	"go.uber.org/goleak"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/memory"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/executors"
)

// The brokers in memory that scripts connect to: memory: can do everything, subject: knows neither
// groups nor acknowledgements, apart: is said to be in no process of its clients, waits: has a
// client that waits for the broker in each send, discard: confirms at once and keeps nothing,
// files: is the same with options that name files, and broken: panics.
func TestMain(m *testing.M) {
	driver.Register(memory.New(memory.Config{}).Driver())
	driver.Register(memory.New(memory.Config{Name: "apart", Apart: true}).Driver())
	subject := memory.Subject()
	subject.Headers, subject.Async = true, true
	driver.Register(memory.New(memory.Config{Name: "subject", Features: subject}).Driver())
	waits := memory.Full()
	waits.Async, waits.Order = false, driver.Unordered
	driver.Register(memory.New(memory.Config{Name: "waits", Features: waits, Servers: 2, Service: func(int64) time.Duration { return time.Millisecond }}).Driver())
	driver.Register(brokenDriver())
	executors.Register()
	driver.Register(discardDriver())
	files := discardDriver()
	files.Name, files.Schemes, files.Options = "files", []string{"files"}, driver.ConnectOptions()
	driver.Register(files)
	goleak.VerifyTestMain(m)
}

// script is what k6 is to the module: one VU, with its runtime and its event loop. It implements
// modules.VU.
type script struct {
	t       testing.TB
	ctx     context.Context
	rt      *sobek.Runtime
	module  *Module
	exports modules.Exports
	init    *common.InitEnvironment // until begin
	state   *lib.State              // from then on
	log     *logtest.Hook
	calls   chan func() error // for the event loop
	waiting int               // calls that are still to come
}

func (s *script) Context() context.Context         { return s.ctx }
func (s *script) Events() common.Events            { return common.Events{} }
func (s *script) InitEnv() *common.InitEnvironment { return s.init }
func (s *script) State() *lib.State                { return s.state }
func (s *script) Runtime() *sobek.Runtime          { return s.rt }

func (s *script) RegisterCallback() func(func() error) {
	s.waiting++
	var called atomic.Bool
	return func(f func() error) {
		if called.Swap(true) {
			panic("a callback was called twice") // as k6 does
		}
		s.calls <- f
	}
}

// newScript makes a script that has imported the module as broker, and is in its init context.
func newScript(t testing.TB) *script {
	t.Helper()
	return newScriptIn(t, nil)
}

// newScriptIn makes one with an environment.
func newScriptIn(t testing.TB, environment map[string]string) *script {
	t.Helper()
	registry := metrics.NewRegistry()
	logger, log := logtest.NewNullLogger()
	s := &script{t: t, ctx: t.Context(), rt: sobek.New(), log: log, calls: make(chan func() error, 1<<16)}
	s.rt.SetFieldNameMapper(common.FieldNameMapper{})
	s.init = &common.InitEnvironment{TestPreInitState: &lib.TestPreInitState{
		Registry: registry, Logger: logger, LookupEnv: func(name string) (string, bool) { value, ok := environment[name]; return value, ok },
	}}
	module := New()
	instance, ok := module.NewModuleInstance(s).(*instance)
	if !ok {
		t.Fatal("not an instance")
	}
	s.exports = instance.Exports()
	s.set("broker", s.exports.Default)
	s.module = module
	return s
}

// begin ends the init context.
func (s *script) begin() *script {
	s.t.Helper()
	everything, err := lib.NewExecutionTuple(nil, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	tags := s.init.Registry.RootTagSet()
	execution := lib.NewExecutionState(&lib.TestRunState{TestPreInitState: s.init.TestPreInitState, RunTags: tags}, everything, 1, 1)
	s.ctx = lib.WithExecutionState(s.ctx, execution)
	samples := make(chan metrics.SampleContainer)
	s.state = &lib.State{
		Samples: samples, BuiltinMetrics: metrics.RegisterBuiltinMetrics(s.init.Registry), Tags: lib.NewVUStateTags(tags), VUID: 1,
	}
	s.init = nil
	done := make(chan struct{})
	go func() {
		for {
			select {
			case <-samples:
			case <-done:
				return
			}
		}
	}()
	s.t.Cleanup(func() {
		s.module.run.finish()
		close(done)
	})
	return s
}

func (s *script) set(name string, value any) {
	s.t.Helper()
	if err := s.rt.Set(name, value); err != nil {
		s.t.Fatal(err)
	}
}

// run runs the body of an async function and gives what it returns.
func (s *script) run(body string) (any, error) {
	s.t.Helper()
	v, err := s.rt.RunString("(async () => {\n" + body + "\n})()")
	if err != nil {
		return nil, err
	}
	promise, ok := v.Export().(*sobek.Promise)
	if !ok {
		s.t.Fatalf("%v is not a promise", v)
	}
	for ; s.waiting > 0; s.waiting-- {
		if err := (<-s.calls)(); err != nil {
			return nil, err
		}
	}
	switch promise.State() {
	case sobek.PromiseStateFulfilled:
		return promise.Result().Export(), nil
	case sobek.PromiseStateRejected:
		return nil, errors.New(promise.Result().String())
	}
	s.t.Fatalf("it waits for something that does not come:\n%s", body)
	return nil, nil
}

// mustRun is run for a body that is right.
func (s *script) mustRun(body string) any {
	s.t.Helper()
	v, err := s.run(body)
	if err != nil {
		s.t.Fatalf("%v in\n%s", err, body)
	}
	return v
}

// says gives everything that was logged.
func (s *script) says() (text string) {
	for _, e := range s.log.AllEntries() {
		if e.Level <= logrus.WarnLevel {
			text += e.Message + "\n"
		}
	}
	return text
}

// discard is a broker that confirms at once and keeps nothing.
type discard struct{}

func discardDriver() driver.Driver {
	return driver.Driver{
		Name: "discard", Schemes: []string{"discard"}, Features: driver.Features{Start: driver.StartNew, Async: true, Headers: true},
		Open: func(context.Context, driver.Target) (driver.Conn, error) { return discard{}, nil },
	}
}

func (discard) NewProducer(context.Context, driver.ProducerConfig) (driver.Producer, error) {
	return discard{}, nil
}

func (discard) NewConsumer(context.Context, driver.ConsumerConfig) (driver.Consumer, error) {
	return nil, errors.ErrUnsupported
}

func (discard) Send(_ context.Context, b driver.Batch, done driver.Done) {
	for i := range b {
		done(i, nil)
	}
}

func (discard) Close(context.Context) error { return nil }

// broken is a broker whose client has a bug: the call that the topic or the scheme names panics,
// the first time.
type broken struct{ topic string }

var alreadyBroken sync.Map

func brokenDriver() driver.Driver {
	return driver.Driver{
		Name: "broken", Schemes: []string{"broken", "broken-open"},
		Features: driver.Features{Start: driver.StartNew, Settle: driver.Ack, Async: true},
		Open: func(_ context.Context, t driver.Target) (driver.Conn, error) {
			broken{t.URL.Scheme}.panicIn("broken-open")
			return broken{}, nil
		},
	}
}

func (b broken) panicIn(call string) {
	if b.topic != call {
		return
	}
	if _, again := alreadyBroken.LoadOrStore(call, true); !again {
		panic("a bug in " + call)
	}
}

func (broken) NewProducer(_ context.Context, c driver.ProducerConfig) (driver.Producer, error) {
	broken{c.Topic}.panicIn("producer")
	return broken{c.Topic}, nil
}

func (broken) NewConsumer(_ context.Context, c driver.ConsumerConfig) (driver.Consumer, error) {
	broken{c.Topic}.panicIn("consumer")
	return broken{c.Topic}, nil
}

func (broken) CreateTopic(_ context.Context, s driver.TopicSpec) error {
	broken{s.Name}.panicIn("createTopic")
	return nil
}

func (broken) DeleteTopic(context.Context, string) error { return nil }
func (broken) PurgeTopic(context.Context, string) error  { return nil }

func (broken) Backlog(_ context.Context, topic, _ string) (driver.Backlog, error) {
	broken{topic}.panicIn("backlog")
	return driver.Backlog{}, nil
}

func (b broken) Send(_ context.Context, batch driver.Batch, done driver.Done) {
	b.panicIn("send")
	for i := range batch {
		done(i, nil)
	}
	b.panicIn("sent")
}

func (b broken) Receive(ctx context.Context, batch driver.Batch) (int, error) {
	b.panicIn("receive")
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	batch[0] = driver.Message{Body: []byte("x")}
	return 1, nil
}

func (b broken) Settle(context.Context, driver.Batch, driver.Outcome) error {
	b.panicIn("ack")
	return nil
}

func (broken) Close(context.Context) error { return nil }
