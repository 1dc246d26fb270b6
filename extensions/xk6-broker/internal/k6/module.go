// Package k6 is the k6 module k6/x/broker: it lends the engine to JavaScript and gives k6 the metrics.
package k6

import (
	"cmp"
	"context"
	"errors"
	"slices"
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
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
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
	first := false
	m.begin.Do(func() {
		collector()
		run, err := newRun(vu)
		if err != nil {
			common.Throw(vu.Runtime(), err)
		}
		m.run, first = run, true
	})
	if err := m.run.refuse(); err != nil {
		common.Throw(vu.Runtime(), err)
	}
	in := &instance{vu: vu, run: m.run, first: first, connections: objects{}, parse: builtin(vu, "JSON", "parse"), isView: builtin(vu, "ArrayBuffer", "isView")}
	in.due.in = in
	if err := in.checkSettings(); err != nil {
		common.Throw(vu.Runtime(), err)
	}
	return in
}

// builtin is a function of the language, as it is before a script may have changed it.
func builtin(vu modules.VU, object, name string) sobek.Callable {
	rt := vu.Runtime()
	f, _ := sobek.AssertFunction(rt.GlobalObject().Get(object).ToObject(rt).Get(name))
	return f
}

// instance is the module in one VU.
type instance struct {
	vu      modules.VU
	run     *run
	first   bool // of the process: its init context is run before the test begins
	due     dueTimes
	network *driver.Network // the VU's, once it has run

	connections objects // that the script has described

	promises promises
	stranded bool // its scripts are resumed no more

	verb          string // of the module, which the script called last; for the event loop only
	parse, isView sobek.Callable
}

// Exports is what a script imports.
func (in *instance) Exports() modules.Exports {
	rt := in.vu.Runtime()
	exports := map[string]any{
		"connect":     in.connect,
		"drivers":     in.drivers,
		"arrival":     in.arrival,
		"mark":        in.mark,
		"bodies":      in.bodies,
		"phase":       in.phase,
		"checkReport": in.checkReport, "report": in.report, "handleSummary": in.handleSummary,
		"result": in.result,
	}
	def := rt.NewObject()
	for name, value := range exports {
		exports[name] = in.guarded(name, value)
		if err := def.Set(name, exports[name]); err != nil {
			common.Throw(rt, err)
		}
	}
	return modules.Exports{Default: def, Named: exports}
}

// drivers lists what this binary can connect to.
func (in *instance) drivers() any {
	rt := in.vu.Runtime()
	list := make([]any, 0, len(driver.Drivers()))
	for _, d := range driver.Drivers() {
		list = append(list, describe(d))
	}
	return rt.ToValue(list)
}

// result gives what is known of the run: complete in handleSummary, and so far anywhere else.
func (in *instance) result() (any, error) {
	text, err := in.run.resultJSON()
	if err != nil {
		return nil, err
	}
	return in.parse(sobek.Undefined(), in.vu.Runtime().ToValue(string(text)))
}

// run is what all VUs of the process share.
type run struct {
	*engine.Run
	metrics      *brokerMetrics
	subjects     []subject
	limits       thresholds
	declared     declared
	dialers      dialers
	shared       bool            // the test has several processes
	coordination *coordination   // nil if there is no coordinator
	interrupted  context.Context // ends with Ctrl-C
	stopWaiting  func()
	calls        int             // that all processes of the test make, in setup and teardown
	segment      *result.Segment // that this process has of the test, once it runs; nil where that is not divided
	noTags       *metrics.TagSet
	pushed       pushed
	collector    *engine.Collector
	logger       logrus.FieldLogger
	patience     time.Duration
	quiet        bool  // k6 was asked for no summary
	usage        usage // nil where k6 notes none down

	peak     atomic.Uint64 // messages per second, the most that any loop announced
	used     sync.Once
	state    atomic.Pointer[testState] // once a VU has run
	flusher  *flusher
	warmUp   warmUp
	leaving  sync.WaitGroup // consumers whose VU is still active
	ended    sync.Once
	internal sync.Once                     // a mistake of ours is told with its stack once
	stuck    sync.Once                     // and that something was given up, once
	final    atomic.Pointer[result.Result] // once the test has ended
	over     atomic.Bool                   // everything is accounted for
	wanted   atomic.Bool                   // the script asks for results
	stranded atomic.Uint64                 // VUs whose scripts are resumed no more
	reported atomic.Pointer[reported]      // once it has written them

	meanwhile atomic.Pointer[report.Folder] // where the results so far go; nil where they go nowhere

	marksLock sync.Mutex
	marks     []result.Annotation // of the script, in order

	filesLock sync.Mutex
	files     map[string]*bodies // that scripts have named

	slotsLock sync.Mutex
	ramps     map[string]*rampSlots // by scenario
}

// testState is what k6 tells of the test once it runs.
type testState struct {
	samples   chan<- metrics.SampleContainer
	builtin   *metrics.BuiltinMetrics
	runTags   *metrics.TagSet
	execution *lib.ExecutionState
	budget    uint64 // of samples that k6 gets of each trend each second

	audience audience
	cpu      time.Duration // of the process, when the test began
	began    time.Time
}

// push gives samples to k6, as far as somebody wants them.
func (r *run) push(samples metrics.Samples) {
	state := r.state.Load()
	samples = slices.DeleteFunc(samples, func(s metrics.Sample) bool { return !state.audience.wants(r.metrics, &s) })
	if len(samples) > 0 {
		r.pushed.note(samples)
		state.give(samples)
	}
}

// give gives samples to k6, unless it has closed their channel: it does before the test's end where it panics itself.
func (s *testState) give(samples metrics.Samples) {
	defer func() { _ = recover() }() // there is one cause
	s.samples <- samples
}

// expectRate tells the greatest rate that a loop is going to have, so that one sampling ratio fits the whole run.
func (r *run) expectRate(perSecond float64) {
	for n := uint64(perSecond); ; {
		peak := r.peak.Load()
		if n <= peak || r.peak.CompareAndSwap(peak, n) {
			return
		}
	}
}

func (r *run) expected() uint64 { return r.peak.Load() }

func newRun(vu modules.VU) (*run, error) {
	name, processes := "", 0
	r := &run{patience: patience, ramps: map[string]*rampSlots{}, files: map[string]*bodies{}, pushed: pushed{values: map[metrics.TimeSeries]float64{}}, logger: logrus.StandardLogger()}
	if env := vu.InitEnv(); env != nil {
		r.logger = env.Logger.WithField("source", "broker")
		r.quiet = env.RuntimeOptions.SummaryMode.String == "disabled"
		if env.Usage != nil {
			r.usage = env.Usage
		}
		var err error
		if name, processes, err = processesOf(env.LookupEnv); err != nil {
			return nil, err
		}
		if r.coordination, err = coordinationOf(env.LookupEnv, name); err != nil {
			return nil, err
		}
		if r.warmUp.length, r.warmUp.set, err = warmUpOf(env.LookupEnv); err != nil {
			return nil, err
		}
		if r.metrics, err = registerMetrics(env.Registry); err != nil {
			return nil, err
		}
		// k6 refuses thresholds on metrics that are not there when the script has been read, before there is an executor.
		queue, err := executors.RegisterMetrics(env.Registry)
		if err != nil {
			return nil, err
		}
		r.subjects, r.noTags = subjects(r.metrics, queue), env.Registry.RootTagSet()
	}
	if r.coordination != nil {
		name = cmp.Or(name, envCoordinator) // until the coordinator says the test's name
	}
	r.Run, r.shared = engine.NewRun(name, processes), name != ""
	r.wanted.Store(r.coordination != nil)
	r.interrupted, r.stopWaiting = context.WithCancel(context.Background())
	r.collector = r.NewCollector()
	r.subscribe(vu)
	return r, nil
}

// use is called by whatever needs a VU that runs: it starts the flow of metrics.
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
	in.run.used.Do(func() {
		in.run.state.Store(&testState{
			samples: state.Samples, builtin: state.BuiltinMetrics, runTags: execution.Test.RunTags, execution: execution,
			budget: samples.BudgetFor(executors.Planned(execution)), audience: newAudience(in.run.usage, state.Options.Thresholds), cpu: machine.CPU(), began: time.Now(),
		})
		if err := errors.Join(in.run.refuseGroups(), in.run.dialers.refuse(state.Options)); err != nil {
			in.vu.Runtime().Interrupt(&errext.InterruptError{Reason: errext.AbortTest + ": " + err.Error()})
		}
		in.run.hearSignals()
		in.run.collector.Start(driver.Now() - int64(execution.GetCurrentTestRunDuration()))
		in.run.join(execution)
		in.run.meet(execution)
		in.run.collector.Watch()
		in.run.beginWarmUp()
		in.run.flusher = startFlusher(in.run)
	})
	if err := in.run.coordinated(in.vu.Context()); err != nil {
		in.vu.Runtime().Interrupt(&errext.InterruptError{Reason: errext.AbortTest + ": " + err.Error()})
		return nil, err
	}
	in.watchWarmUp()
	return state, nil
}

var (
	errInTeardown = errors.New("in teardown k6 tells nothing of the test: use a broker in setup or in a scenario too, be it only to create a topic")
	errInInit     = errors.New("not in the init context: there is no I/O before the test starts; call it in setup or in a VU function")
	errNoMark     = errors.New("mark(what): what is the text of the annotation, and it is empty")
)

// async runs work in a goroutine and settles a promise with its outcome.
func (in *instance) async(work func(ctx context.Context) (any, error)) *sobek.Promise {
	made, settle := in.promise()
	if _, err := in.use(); err != nil {
		settle(func() (any, error) { return nil, err })
		return made
	}
	ctx := in.vu.Context()
	in.spawn(in.verb, settle, func() {
		v, err := work(ctx)
		settle(func() (any, error) { return v, err })
	})
	return made
}

// rejected is a promise for what failed before it began.
func (in *instance) rejected(err error) *sobek.Promise {
	p, settle := in.promise()
	settle(func() (any, error) { return nil, err })
	return p
}

// jsError is an Error with the properties kind, op and driver, where they are known.
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
			_ = object.Set(name, value) // a fresh Error takes any property
		}
	}
	return object
}
