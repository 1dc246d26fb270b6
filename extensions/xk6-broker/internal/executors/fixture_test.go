package executors

import (
	"cmp"
	"context"
	"io"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"go.k6.io/k6/v2/lib"
	"go.k6.io/k6/v2/metrics"
	"go.uber.org/goleak"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/machine"
)

func TestMain(m *testing.M) {
	Register()
	if os.Getenv("PROBE") != "" {
		runProbe()
		return
	}
	goleak.VerifyTestMain(m)
}

// scenario is a run of the executor under virtual time, with VUs that do what the test says instead of a script's function.
type scenario struct {
	options  string // of the scenario, as JSON
	segment  string // of the sequence
	sequence string
	work     func(ctx context.Context, a Arrival) error // an iteration, which waits for the system; nil takes no time
	initTime time.Duration                              // of a VU that was not planned
	during   func(e lib.Executor)                       // runs beside it
	cancelAt time.Duration                              // when the test is interrupted; 0 is never
	frozen   *freeze                                    // when the process stands still; nil is never
}

// outcome is what became of it.
type outcome struct {
	start    time.Time
	state    *lib.ExecutionState
	executor lib.Executor
	err      error
	arrivals []Arrival // in the order in which iterations began; times are since the start
	vus      map[uint64]int
	counters [][2]uint64 // local and global, as scripts see them
	samples  map[string][]metrics.Sample
	log      *logtest.Hook
	totals   ScenarioTotals
	took     time.Duration
}

func parse(t testing.TB, options string) *Config {
	t.Helper()
	c, err := lib.GetParsedExecutorConfig("orders", Type, []byte(options))
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range c.Validate() {
		t.Errorf("%s: %v", options, err)
	}
	return c.(*Config)
}

func tuple(t testing.TB, segment, sequence string) *lib.ExecutionTuple {
	t.Helper()
	var of *lib.ExecutionSegment
	var all *lib.ExecutionSegmentSequence
	if segment != "" {
		s, err := lib.NewExecutionSegmentFromString(segment)
		if err != nil {
			t.Fatal(err)
		}
		of = s
	}
	if sequence != "" {
		s, err := lib.NewExecutionSegmentSequenceFromString(sequence)
		if err != nil {
			t.Fatal(err)
		}
		all = &s
	}
	et, err := lib.NewExecutionTuple(of, all)
	if err != nil {
		t.Fatal(err)
	}
	return et
}

func (s scenario) run(t *testing.T) *outcome {
	t.Helper()
	var o *outcome
	synctest.Test(t, func(t *testing.T) { o = s.inBubble(t) })
	return o
}

func (s scenario) inBubble(t *testing.T) *outcome {
	t.Helper()
	config, et := parse(t, s.options), tuple(t, s.segment, s.sequence)
	registry := metrics.NewRegistry()
	logger := logrus.New()
	logger.SetOutput(io.Discard)
	test := &lib.TestRunState{
		TestPreInitState: &lib.TestPreInitState{Registry: registry, BuiltinMetrics: metrics.RegisterBuiltinMetrics(registry)},
		Options:          lib.Options{SystemTags: &metrics.DefaultSystemTagSet},
		RunTags:          registry.RootTagSet(),
	}
	steps := config.GetExecutionRequirements(et)
	planned, possible := lib.GetMaxPlannedVUs(steps), lib.GetMaxPossibleVUs(steps)
	o := &outcome{
		state: lib.NewExecutionState(test, et, planned, possible), vus: map[uint64]int{}, samples: map[string][]metrics.Sample{},
		log: logtest.NewLocal(logger),
	}
	f := &fleet{scenario: s, outcome: o}
	for range planned {
		o.state.AddInitializedVU(f.newVU())
	}
	o.state.SetInitVUFunc(func(context.Context, *logrus.Entry) (lib.InitializedVU, error) {
		time.Sleep(s.initTime)
		return f.newVU(), nil
	})
	e, err := config.NewExecutor(o.state, logrus.NewEntry(logger))
	if err != nil {
		t.Fatal(err)
	}
	e.(*openArrivalRate).sleep = machine.Timer
	if s.frozen != nil {
		s.frozen.start = driver.Now()
		e.(*openArrivalRate).sleep = s.frozen.sleep
	}
	o.executor = e
	if err := e.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if s.cancelAt > 0 {
		timer := time.AfterFunc(s.cancelAt, cancel)
		defer timer.Stop()
	}
	out := make(chan metrics.SampleContainer)
	var beside sync.WaitGroup
	beside.Go(func() {
		for c := range out {
			for _, sample := range c.GetSamples() {
				o.samples[sample.Metric.Name] = append(o.samples[sample.Metric.Name], sample)
			}
		}
	})
	if s.during != nil {
		beside.Go(func() { s.during(e) })
	}
	o.start = time.Now()
	begin := driver.Now()
	o.err = e.Run(ctx, out)
	o.took = time.Since(o.start)
	close(out)
	beside.Wait()
	for i := range o.arrivals {
		o.arrivals[i].Due -= begin
		o.arrivals[i].Started -= begin
		o.arrivals[i].Free -= begin
	}
	for _, totals := range Totals() {
		if totals.Scenario == config.Name {
			o.totals = totals
		}
	}
	for range possible - uint64(o.state.GetInitializedVUsCount()) {
		possible--
	}
	for range possible { // all VUs came back
		if _, err := o.state.GetPlannedVU(logrus.NewEntry(logger), false); err != nil {
			t.Errorf("a VU was not given back: %v", err)
		}
	}
	if n := o.state.GetCurrentlyActiveVUsCount(); n != 0 {
		t.Errorf("%d VUs are still counted as active", n)
	}
	return o
}

// sum adds up the samples of a counter.
func (o *outcome) sum(metric string) (total float64) {
	for _, s := range o.samples[metric] {
		total += s.Value
	}
	return total
}

// byIndex are the arrivals in the order of the schedule.
func (o *outcome) byIndex() []Arrival {
	return slices.SortedFunc(slices.Values(o.arrivals), func(a, b Arrival) int { return cmp.Compare(a.Index, b.Index) })
}

// fleet makes VUs.
type fleet struct {
	scenario
	*outcome
	mu   sync.Mutex
	last uint64
}

func (f *fleet) newVU() lib.InitializedVU {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last++
	return &testVU{fleet: f, id: f.last}
}

type testVU struct {
	*fleet
	id     uint64
	params *lib.VUActivationParams
	busy   sync.Mutex
}

func (v *testVU) GetID() uint64 { return v.id }

func (v *testVU) Activate(p *lib.VUActivationParams) lib.ActiveVU {
	v.params = p
	context.AfterFunc(p.RunContext, func() {
		v.busy.Lock()
		defer v.busy.Unlock()
		p.DeactivateCallback(v)
	})
	return v
}

func (v *testVU) RunOnce() error {
	v.busy.Lock()
	defer v.busy.Unlock()
	ctx, cancel := context.WithCancel(v.params.RunContext) // as k6 does for each iteration
	defer cancel()
	a, ok := FromContext(ctx)
	local, global := v.params.GetNextIterationCounters()
	v.mu.Lock()
	if ok {
		v.arrivals = append(v.arrivals, a)
	}
	v.vus[v.id]++
	v.counters = append(v.counters, [2]uint64{local, global})
	v.mu.Unlock()
	if v.work == nil {
		return nil
	}
	return v.work(ctx, a)
}

// takes is an iteration of some time.
func takes(d time.Duration) func(context.Context, Arrival) error {
	return func(ctx context.Context, _ Arrival) error {
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
