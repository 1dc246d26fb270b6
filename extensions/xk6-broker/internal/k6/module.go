// Package k6 is the k6 module k6/x/broker: it gives scripts the engine and k6 the metrics.
package k6

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/grafana/sobek"
	"github.com/sirupsen/logrus"
	"go.k6.io/k6/v2/errext"
	"go.k6.io/k6/v2/js/common"
	"go.k6.io/k6/v2/js/modules"
	"go.k6.io/k6/v2/lib"
	"go.k6.io/k6/v2/metrics"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/engine"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/executors"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/k6/samples"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/machine"
)

// Module is the k6 module: one for the process, with an instance for each VU.
type Module struct {
	begin sync.Once
	run   *run
}

var _ modules.Module = &Module{}

// New makes the module.
func New() *Module { return &Module{} }

// NewModuleInstance makes the instance of one VU.
func (m *Module) NewModuleInstance(vu modules.VU) modules.Instance {
	m.begin.Do(func() {
		collector()
		run, err := newRun(vu)
		if err != nil {
			common.Throw(vu.Runtime(), err)
		}
		m.run = run
	})
	m.run.limits.find() // k6 has them all before it makes VUs
	in := &instance{
		vu: vu, run: m.run, connections: objects{},
		parse: builtin(vu, "JSON", "parse"), isView: builtin(vu, "ArrayBuffer", "isView"),
	}
	in.due.in = in
	return in
}

// builtin returns a function of the language, before a script can change it.
func builtin(vu modules.VU, object, name string) sobek.Callable {
	rt := vu.Runtime()
	f, _ := sobek.AssertFunction(rt.GlobalObject().Get(object).ToObject(rt).Get(name))
	return f
}

// instance is the module in one VU.
type instance struct {
	vu      modules.VU
	run     *run
	due     dueTimes
	network *driver.Network // of the VU, once it runs

	connections objects // that the script has described

	promises promises

	parse, isView sobek.Callable
}

// Exports returns the names that a script imports.
func (in *instance) Exports() modules.Exports {
	exports := map[string]any{
		"connect":       in.connect,
		"drivers":       in.drivers,
		"arrival":       in.arrival,
		"mark":          in.mark,
		"phase":         in.phase,
		"handleSummary": in.handleSummary,
		"result":        in.result,
	}
	return modules.Exports{Default: in.object(exports), Named: exports}
}

// object makes an object of properties and functions for the script.
func (in *instance) object(properties map[string]any) *sobek.Object {
	o := in.vu.Runtime().NewObject()
	for name, value := range properties {
		_ = o.Set(name, value) // a new object takes any property
	}
	return o
}

// drivers lists the drivers of this binary.
func (in *instance) drivers() []map[string]any {
	list := []map[string]any{}
	for _, d := range driver.Drivers() {
		list = append(list, describe(d))
	}
	return list
}

// result returns the result of the run: complete in handleSummary, and so far anywhere else.
func (in *instance) result() (any, error) {
	text, err := in.run.resultJSON()
	if err != nil {
		return nil, err
	}
	return in.parse(sobek.Undefined(), in.vu.Runtime().ToValue(string(text)))
}

// run is shared by all VUs of the process.
type run struct {
	*engine.Run
	logger    logrus.FieldLogger
	metrics   *brokerMetrics
	usage     usage // nil if k6 notes none
	collector *engine.Collector
	flusher   *flusher
	limits    thresholds
	processes processes
	warmUp    warmUp
	output    output
	marks     marks

	used  sync.Once
	state atomic.Pointer[testState] // once a VU runs
	peak  atomic.Uint64             // messages per second, the most that a loop has announced

	interrupted  context.Context // ends with Ctrl-C, and with the test
	stopWaiting  func()
	promiseGrace time.Duration
	stuck        sync.Once      // an abandoned promise is logged once
	leaving      sync.WaitGroup // consumers whose VU is still active
	end          ending
}

// testState is k6's state of the test once it runs.
type testState struct {
	samples   chan<- metrics.SampleContainer
	builtin   *metrics.BuiltinMetrics
	runTags   *metrics.TagSet
	execution *lib.ExecutionState
	stored    bool          // an output stores samples with their tags
	budget    uint64        // samples that k6 gets of each trend each second
	cpu       time.Duration // of the process, at the start of the test
	began     time.Time
}

// expectRate notes the greatest rate of a loop, so that one sampling ratio fits the whole run.
func (r *run) expectRate(perSecond float64) {
	for n := uint64(perSecond); ; {
		peak := r.peak.Load()
		if n <= peak || r.peak.CompareAndSwap(peak, n) {
			return
		}
	}
}

func newRun(vu modules.VU) (*run, error) {
	env := vu.InitEnv()
	r := &run{promiseGrace: promiseGrace, logger: env.Logger.WithField("source", "broker")}
	if env.Usage != nil {
		r.usage = env.Usage
	}
	id, err := r.readEnvironment(env)
	if err != nil {
		return nil, err
	}
	if r.metrics, err = registerMetrics(env.Registry); err != nil {
		return nil, err
	}
	// k6 refuses thresholds on unknown metrics after it has read the script, before there is an
	// executor.
	queue, err := executors.RegisterMetrics(env.Registry)
	if err != nil {
		return nil, err
	}
	r.limits.subjects, r.limits.noTags = subjects(r.metrics, queue), env.Registry.RootTagSet()
	r.Run = engine.NewRun(id.run, id.processes)
	r.interrupted, r.stopWaiting = context.WithCancel(context.Background())
	r.collector = r.NewCollector()
	r.subscribe(vu)
	return r, nil
}

// readEnvironment reads the variables of the environment.
func (r *run) readEnvironment(env *common.InitEnvironment) (id identity, err error) {
	if r.output.settings, err = settingsOf(env.RuntimeOptions.Env); err != nil {
		return id, err
	}
	r.output.quiet = env.RuntimeOptions.SummaryMode.String == "disabled"
	if id, err = identityOf(env.LookupEnv); err != nil {
		return id, err
	}
	if r.processes.coordination, err = coordinationOf(env.LookupEnv, id.run); err != nil {
		return id, err
	}
	if r.processes.coordination != nil {
		id.run = cmp.Or(id.run, envCoordinator) // until the coordinator sends the test's name
	}
	r.warmUp.length, r.warmUp.set, err = warmUpOf(env.LookupEnv)
	return id, err
}

// use returns k6's state of the VU. The first call of the process starts the flow of metrics.
func (in *instance) use() (*lib.State, error) {
	state := in.vu.State()
	if state == nil {
		return nil, errInInit
	}
	execution := lib.GetExecutionState(in.vu.Context())
	if execution == nil && in.run.state.Load() == nil {
		return nil, errInTeardown
	}
	if in.network == nil {
		in.network = networkOf(state)
	}
	in.run.used.Do(func() { in.run.start(state, execution) })
	if _, err := in.run.client(in.vu.Context()); err != nil {
		abort(in.vu, err)
		return nil, err
	}
	in.watchWarmUp()
	return state, nil
}

// start begins the measurements.
func (r *run) start(state *lib.State, execution *lib.ExecutionState) {
	r.state.Store(&testState{
		samples: state.Samples, builtin: state.BuiltinMetrics, runTags: execution.Test.RunTags, execution: execution,
		stored: stored(r.usage), budget: samples.BudgetFor(executors.Planned(execution)),
		cpu: machine.CPU(), began: time.Now(),
	})
	r.hearSignals()
	r.collector.Start(driver.Now() - int64(execution.GetCurrentTestRunDuration()))
	r.join(execution)
	r.meet(execution)
	r.collector.Watch()
	r.beginWarmUp()
	r.flusher = startFlusher(r)
}

// abort ends the test with an error.
func abort(vu modules.VU, err error) {
	vu.Runtime().Interrupt(&errext.InterruptError{Reason: errext.AbortTest + ": " + err.Error()})
}

var (
	errInTeardown = errors.New(
		"the test has not used a broker before teardown: use one in setup or in a scenario too, such as by createTopic",
	)
	errInInit = errors.New(
		"not in the init context: there is no I/O before the test starts; call it in setup or in a VU function",
	)
)

// async runs work in a goroutine and settles a promise with its outcome.
func (in *instance) async(verb string, work func(ctx context.Context) (any, error)) *sobek.Promise {
	made, settle := in.promise(verb)
	if _, err := in.use(); err != nil {
		settle(nil, err)
		return made
	}
	ctx := in.vu.Context()
	go func() {
		settle(work(ctx))
	}()
	return made
}

// rejected returns a promise that is rejected.
func (in *instance) rejected(verb string, err error) *sobek.Promise {
	p, settle := in.promise(verb)
	settle(nil, err)
	return p
}

// jsError makes an Error with the properties kind, op and driver of a [driver.Error].
func (in *instance) jsError(err error) *sobek.Object {
	rt := in.vu.Runtime()
	class := rt.Get("Error")
	if class == nil {
		return rt.NewGoError(err)
	}
	object, newErr := rt.New(class, rt.ToValue(err.Error()))
	if newErr != nil {
		return rt.NewGoError(err)
	}
	var e *driver.Error
	if errors.As(err, &e) {
		for name, value := range map[string]string{"kind": string(e.Kind), "op": e.Op, "driver": e.Driver, "name": "BrokerError"} {
			_ = object.Set(name, value) // a new Error takes any property
		}
	}
	return object
}
