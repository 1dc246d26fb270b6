package executors

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"go.k6.io/k6/v2/errext"
	"go.k6.io/k6/v2/lib"
	"go.k6.io/k6/v2/metrics"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/machine"
)

// play is a test of several scenarios under virtual time, which all have begun at 0.
type play struct {
	scenarios string // as a script's options have them
	segment   string
	sequence  string
	meet      func(*lib.ExecutionState) // called when the executors have been made
	// iterations of each scenario's VUs; of executors that are k6's own too
	work     map[string]func(ctx context.Context) error
	cancelAt time.Duration
}

// played is what became of it.
type played struct {
	mu     sync.Mutex
	begun  map[string][]time.Duration // iterations, by scenario
	over   map[string]time.Duration   // scenarios
	errors map[string]error
	log    *logtest.Hook
	state  *lib.ExecutionState
}

// actor is a VU that does what the test says instead of a script's function.
type actor struct {
	play   *play
	played *played
	start  int64
	id     uint64
	params *lib.VUActivationParams
	busy   sync.Mutex
}

func (a *actor) GetID() uint64 { return a.id }

func (a *actor) Activate(p *lib.VUActivationParams) lib.ActiveVU {
	a.params = p
	context.AfterFunc(p.RunContext, func() {
		a.busy.Lock()
		defer a.busy.Unlock()
		p.DeactivateCallback(a)
	})
	return a
}

func (a *actor) RunOnce() error {
	a.busy.Lock()
	defer a.busy.Unlock()
	a.params.GetNextIterationCounters()
	a.played.mu.Lock()
	a.played.begun[a.params.Scenario] = append(a.played.begun[a.params.Scenario], time.Duration(driver.Now()-a.start))
	a.played.mu.Unlock()
	ctx, cancel := context.WithCancel(a.params.RunContext)
	defer cancel()
	return a.play.work[a.params.Scenario](ctx)
}

func (p play) run(t *testing.T) *played {
	t.Helper()
	var r *played
	synctest.Test(t, func(t *testing.T) { r = p.inBubble(t) })
	return r
}

func (p play) inBubble(t *testing.T) *played {
	t.Helper()
	var scenarios lib.ScenarioConfigs
	if err := scenarios.UnmarshalJSON([]byte(p.scenarios)); err != nil {
		t.Fatal(err)
	}
	for _, err := range scenarios.Validate() {
		t.Fatal(err)
	}
	et := tuple(t, p.segment, p.sequence)
	registry := metrics.NewRegistry()
	logger := logrus.New()
	logger.SetOutput(io.Discard)
	steps := scenarios.GetFullExecutionRequirements(et)
	planned := lib.GetMaxPlannedVUs(steps)
	r := &played{
		begun: map[string][]time.Duration{}, over: map[string]time.Duration{}, errors: map[string]error{}, log: logtest.NewLocal(logger),
		state: lib.NewExecutionState(&lib.TestRunState{
			TestPreInitState: &lib.TestPreInitState{Registry: registry, BuiltinMetrics: metrics.RegisterBuiltinMetrics(registry)},
			Options:          lib.Options{SystemTags: &metrics.DefaultSystemTagSet, Scenarios: scenarios},
			RunTags:          registry.RootTagSet(),
		}, et, planned, lib.GetMaxPossibleVUs(steps)),
	}
	start := driver.Now()
	for n := range planned {
		r.state.AddInitializedVU(&actor{play: &p, played: r, start: start, id: n + 1})
	}
	ctx, cancel := context.WithCancel(lib.WithExecutionState(t.Context(), r.state))
	defer cancel()
	if p.meet != nil {
		p.meet(r.state)
	}
	if p.cancelAt > 0 {
		defer time.AfterFunc(p.cancelAt, cancel).Stop()
	}
	out := make(chan metrics.SampleContainer, 10_000)
	var running sync.WaitGroup
	for _, config := range scenarios.GetSortedConfigs() {
		if !config.HasWork(et) {
			continue
		}
		e, err := config.NewExecutor(r.state, logrus.NewEntry(logger))
		if err != nil {
			t.Fatal(err)
		}
		if open, ok := e.(*openArrivalRate); ok {
			open.sleep = machine.Timer
		}
		if err := e.Init(t.Context()); err != nil {
			t.Fatal(err)
		}
		running.Go(func() {
			if machine.Timer(ctx, start+int64(config.GetStartTime())) != nil {
				return
			}
			err := e.Run(ctx, out)
			r.mu.Lock()
			defer r.mu.Unlock()
			r.over[config.GetName()], r.errors[config.GetName()] = time.Duration(driver.Now()-start), err
		})
	}
	running.Wait()
	if n := r.state.GetCurrentlyActiveVUsCount(); n != 0 {
		t.Errorf("%d VUs are still counted as active", n)
	}
	for range planned { // all VUs came back
		if _, err := r.state.GetPlannedVU(logrus.NewEntry(logger), false); err != nil {
			t.Errorf("a VU was not given back: %v", err)
		}
	}
	return r
}

// consume is an iteration that opens a consumer in some time and then waits for messages for some more, or until there are no more.
func consume(opening, wait time.Duration, arrived Arrived) func(context.Context) error {
	return func(ctx context.Context) error {
		m, _ := MemberFrom(ctx)
		if done := m.Opening(arrived); !m.ready { // a consumer stays open
			if err := machine.Timer(ctx, driver.Now()+int64(opening)); err != nil {
				return err
			}
			done()
		}
		select {
		case <-time.After(wait):
		case <-m.Over().Done():
		case <-ctx.Done():
		}
		return ctx.Err()
	}
}

func lasting(d time.Duration) func(context.Context) error {
	return func(ctx context.Context) error { return machine.Timer(ctx, driver.Now()+int64(d)) }
}

func atOnce(context.Context) error { return nil }

// in says that everything has arrived so long after it was asked.
func in(d time.Duration) Arrived {
	return func(ctx context.Context, _ func(int64) int64) error { return lasting(d)(ctx) }
}

// Arrivals begin when the consumers are ready, however long that takes them, and the consumers end when everything has arrived.
func TestConsumersAreReadyFirstAndEndLast(t *testing.T) {
	r := play{
		scenarios: `{"consume":{"executor":"consumers","vus":3},
			"produce":{"executor":"open-arrival-rate","rate":10,"duration":"5s","preAllocatedVUs":2},
			"later":{"executor":"open-arrival-rate","rate":10,"duration":"2s","preAllocatedVUs":2,"startTime":"3s"}}`,
		work: map[string]func(context.Context) error{
			"consume": consume(7*time.Second, 500*time.Millisecond, in(20*time.Second)), "produce": atOnce, "later": atOnce,
		},
	}.run(t)
	for name, want := range map[string]struct {
		arrivals    int
		first, over time.Duration
	}{"produce": {50, 7 * time.Second, 12 * time.Second}, "later": {20, 10 * time.Second, 12 * time.Second}} {
		if got := r.begun[name]; len(got) != want.arrivals || got[0] != want.first || r.over[name] != want.over {
			t.Errorf("%s: %d arrivals from %v, over at %v; want %+v", name, len(got), got[0], r.over[name], want)
		}
	}
	// The last arrival is over with its scenario; that nobody is active any more is noticed a little later.
	if over := r.over["consume"]; over < 32*time.Second || over > 33*time.Second {
		t.Errorf("the consumers ended at %v", over)
	}
	for name, err := range r.errors {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if all := r.log.AllEntries(); len(all) != 1 || !strings.Contains(all[0].Message, "scenario consume goes on while messages arrive") {
		t.Errorf("logged: %v", all)
	}
}

// Consumers that start later than those who send are not waited for: there shall be a backlog first.
func TestLaterConsumersAreNotAwaited(t *testing.T) {
	r := play{
		scenarios: `{"consume":{"executor":"consumers","startTime":"4s"},
			"fill":{"executor":"open-arrival-rate","rate":10,"duration":"6s","preAllocatedVUs":2},
			"also":{"executor":"open-arrival-rate","rate":10,"duration":"1s","preAllocatedVUs":2,"startTime":"4s"}}`,
		work: map[string]func(context.Context) error{"consume": consume(time.Second, time.Second, in(0)), "fill": atOnce, "also": atOnce},
	}.run(t)
	if r.begun["fill"][0] != 0 || r.begun["also"][0] != 5*time.Second {
		t.Errorf("they began at %v and %v", r.begun["fill"][0], r.begun["also"][0])
	}
}

// Consumers see to all others, those of k6's own executors too, be they over before or after their time.
func TestConsumersSeeWhenAllOthersAreOver(t *testing.T) {
	for name, c := range map[string]struct {
		other  string
		length time.Duration // of an iteration
		over   time.Duration
	}{
		"constant-vus":          {`"executor":"constant-vus","vus":2,"duration":"5s"`, time.Second, 5 * time.Second},
		"ramping-vus":           {`"executor":"ramping-vus","startVUs":1,"stages":[{"target":3,"duration":"3s"},{"target":1,"duration":"2s"}]`, time.Second, 5 * time.Second},
		"constant-arrival-rate": {`"executor":"constant-arrival-rate","rate":1,"timeUnit":"2s","duration":"7s","preAllocatedVUs":4`, 4 * time.Second, 10 * time.Second},
		"ramping-arrival-rate":  {`"executor":"ramping-arrival-rate","startRate":1,"stages":[{"target":1,"duration":"7s"}],"preAllocatedVUs":9`, 10 * time.Millisecond, 7 * time.Second},
		"iterations":            {`"executor":"per-vu-iterations","vus":2,"iterations":3,"maxDuration":"1h"`, 2 * time.Second, 6 * time.Second},
		"shared iterations":     {`"executor":"shared-iterations","vus":2,"iterations":6,"maxDuration":"1h","startTime":"30s"`, 2 * time.Second, 36 * time.Second},
		"long iterations":       {`"executor":"open-arrival-rate","rate":1,"duration":"2s","preAllocatedVUs":5`, 15 * time.Second, 16 * time.Second},
	} {
		r := play{
			scenarios: `{"consume":{"executor":"consumers"},"other":{` + c.other + `}}`,
			work:      map[string]func(context.Context) error{"consume": consume(0, 100*time.Millisecond, in(0)), "other": lasting(c.length)},
		}.run(t)
		if over := r.over["consume"]; over < c.over || over > c.over+3*time.Second || over < r.over["other"]-2*time.Second {
			t.Errorf("%s: the consumers ended at %v, the other at %v, want %v", name, over, r.over["other"], c.over)
		}
	}
}

// Who never opens a consumer is ready when an iteration is over, or is not waited for any longer than a minute.
func TestNobodyWaitsForConsumersForGood(t *testing.T) {
	for name, c := range map[string]struct {
		work   func(context.Context) error
		begins time.Duration
		says   string
	}{
		"fails":     {func(ctx context.Context) error { _ = lasting(3 * time.Second)(ctx); return errors.New("no") }, 3 * time.Second, "no"},
		"sleeps":    {lasting(time.Hour), time.Minute, "the consumers of scenario consume are not ready after 1m0s"},
		"opens two": {twoAfterAnother, 5 * time.Second, ""},
	} {
		r := play{
			scenarios: `{"consume":{"executor":"consumers","vus":2,"gracefulStop":"1s"},
				"produce":{"executor":"open-arrival-rate","rate":10,"duration":"5s","preAllocatedVUs":2}}`,
			work: map[string]func(context.Context) error{"consume": c.work, "produce": atOnce},
		}.run(t)
		if begun := r.begun["produce"]; len(begun) != 50 || begun[0] != c.begins {
			t.Errorf("%s: %d arrivals from %v", name, len(begun), begun[0])
		}
		if all := r.log.AllEntries(); c.says == "" && len(all) > 0 || c.says != "" && !slices.ContainsFunc(all, func(e *logrus.Entry) bool {
			return strings.Contains(e.Message, c.says)
		}) {
			t.Errorf("%s: logged %v", name, all)
		}
		if len(r.begun["consume"]) > 10 {
			t.Errorf("%s: %d iterations of consumers", name, len(r.begun["consume"]))
		}
	}
}

// twoAfterAnother opens two consumers side by side, the second in 5 s.
func twoAfterAnother(ctx context.Context) error {
	m, _ := MemberFrom(ctx)
	first, second := m.Opening(in(0)), m.Opening(in(0))
	first()
	_ = machine.Timer(ctx, driver.Now()+int64(5*time.Second))
	second()
	return lasting(time.Second)(ctx)
}

// An iteration that hears nothing of the end has gracefulStop.
func TestConsumersAreStoppedGracefully(t *testing.T) {
	r := play{
		scenarios: `{"consume":{"executor":"consumers","vus":2,"gracefulStop":"4s"},"once":{"executor":"per-vu-iterations"}}`,
		work: map[string]func(context.Context) error{"consume": func(ctx context.Context) error {
			m, _ := MemberFrom(ctx)
			m.Opening(in(0))()
			return lasting(time.Hour)(ctx)
		}, "once": lasting(10 * time.Second)},
	}.run(t)
	if over := r.over["consume"]; over < 14*time.Second || over > 15*time.Second || r.state.GetPartialIterationCount() != 2 {
		t.Errorf("it was over at %v, %d iterations were interrupted", over, r.state.GetPartialIterationCount())
	}
}

func TestConsumersEndWithTheTest(t *testing.T) {
	scenarios := `{"consume":{"executor":"consumers","vus":2},"produce":{"executor":"open-arrival-rate","rate":1,"duration":"1h","preAllocatedVUs":2}}`
	r := play{
		scenarios: scenarios, cancelAt: 2500 * time.Millisecond,
		work: map[string]func(context.Context) error{"consume": consume(time.Hour, time.Hour, in(0)), "produce": atOnce},
	}.run(t)
	for _, totals := range Totals() {
		if totals.Scenario == "produce" && totals.Due != 0 {
			t.Errorf("%d arrivals were due before the consumers were ready", totals.Due)
		}
	}
	if r.over["consume"] != 2500*time.Millisecond || len(r.begun["produce"]) != 0 || r.over["produce"] != r.over["consume"] {
		t.Errorf("over at %v and %v, %d arrivals", r.over["consume"], r.over["produce"], len(r.begun["produce"]))
	}
	abort := &errext.InterruptError{Reason: "enough"}
	r = play{
		scenarios: scenarios, cancelAt: time.Minute, // k6 would interrupt the others at once
		work: map[string]func(context.Context) error{"consume": func(context.Context) error { return abort }, "produce": atOnce},
	}.run(t)
	if !Aborted(r.state) {
		t.Error("nobody knows that the script ended it")
	}
	if !errors.Is(r.errors["consume"], abort) || r.over["consume"] != 0 {
		t.Errorf("%v at %v", r.errors["consume"], r.over["consume"])
	}
}

// Where those who send are in another process, consumers go on for as long as the script says; a segment without any waits for none.
func TestConsumersAndSegments(t *testing.T) {
	scenarios := `{"consume":{"executor":"consumers","vus":1,"duration":"20s"},
		"produce":{"executor":"open-arrival-rate","rate":2,"duration":"5s","preAllocatedVUs":2}}`
	work := map[string]func(context.Context) error{"consume": consume(time.Second, time.Second, in(0)), "produce": atOnce}
	for _, segment := range []string{"0:1/2", "1/2:1"} {
		r := play{scenarios: scenarios, segment: segment, work: work}.run(t)
		_, here := r.over["consume"]
		want := time.Duration(0)
		if here {
			want = time.Second
			if over := r.over["consume"]; over < 20*time.Second || over > 22*time.Second {
				t.Errorf("%s: the consumers were over at %v", segment, over)
			}
		}
		if begun := r.begun["produce"]; len(begun) != 5 || begun[0]%(500*time.Millisecond) != 0 || begun[0]-want > 500*time.Millisecond {
			t.Errorf("%s: arrivals at %v, consumers here: %v", segment, begun, here)
		}
	}
}

func TestMistakesOfConsumersAreNamed(t *testing.T) {
	for options, want := range map[string]string{
		`{"vus":0}`:           `option "vus": 0 is not 1 or more`,
		`{"duration":"0s"}`:   `option "duration": 0s is not more than 0`,
		`{"maxDuration":"1"}`: `executor consumers: json: unknown field "maxDuration"`,
	} {
		c, err := lib.GetParsedExecutorConfig("consume", ConsumersType, []byte(options))
		if err == nil {
			err = errors.Join(c.Validate()...)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", options, err, want)
		}
	}
	var alone lib.ScenarioConfigs
	if err := alone.UnmarshalJSON([]byte(`{"consume":{"executor":"consumers"}}`)); err != nil {
		t.Fatal(err)
	}
	et := tuple(t, "", "")
	es := lib.NewExecutionState(&lib.TestRunState{Options: lib.Options{Scenarios: alone}}, et, 1, 1)
	if _, err := alone["consume"].NewExecutor(es, logrus.NewEntry(logrus.New())); err == nil || !strings.Contains(err.Error(), "give it a duration") {
		t.Errorf("consumers alone: %v", err)
	}
}

// Iterations that fail at once do not fill the log.
func TestConsumersThatFailDoNotSpin(t *testing.T) {
	r := play{
		scenarios: `{"consume":{"executor":"consumers"},"once":{"executor":"per-vu-iterations"}}`,
		work: map[string]func(context.Context) error{
			"consume": func(context.Context) error { return errors.New("no") }, "once": lasting(10 * time.Second),
		},
	}.run(t)
	if n := len(r.begun["consume"]); n < 90 || n > 120 {
		t.Errorf("%d iterations", n)
	}
}

// A VU whose first iteration opens no consumer counts as ready, and what it opens later is awaited at the end all the same.
func TestConsumersThatOpenLateAreAwaited(t *testing.T) {
	var rounds atomic.Int64
	opens := consume(0, 100*time.Millisecond, in(20*time.Second))
	r := play{
		scenarios: `{"consume":{"executor":"consumers"},"produce":{"executor":"open-arrival-rate","rate":10,"duration":"5s","preAllocatedVUs":2}}`,
		work: map[string]func(context.Context) error{"consume": func(ctx context.Context) error {
			if rounds.Add(1) == 1 {
				return errors.New("not yet")
			}
			return opens(ctx)
		}, "produce": atOnce},
	}.run(t)
	if over := r.over["consume"]; over < 25*time.Second || over > 27*time.Second {
		t.Errorf("the consumers were over at %v", over)
	}
}

// A minute is waited for consumers once, whoever waits; and k6 keeps the VUs of those who wait for as long.
func TestTheWaitForConsumersIsOneMinuteInAll(t *testing.T) {
	r := play{
		scenarios: `{"consume":{"executor":"consumers","gracefulStop":"1s"},
			"a":{"executor":"open-arrival-rate","rate":10,"duration":"10s","gracefulStop":"1s","preAllocatedVUs":2},
			"b":{"executor":"open-arrival-rate","rate":10,"duration":"5s","preAllocatedVUs":2,"startTime":"11s"},
			"c":{"executor":"open-arrival-rate","rate":10,"duration":"5s","preAllocatedVUs":2,"startTime":"90s"}}`,
		work: map[string]func(context.Context) error{"consume": lasting(time.Hour), "a": atOnce, "b": atOnce, "c": atOnce},
	}.run(t)
	for name, want := range map[string]time.Duration{"a": 60 * time.Second, "b": 71 * time.Second, "c": 150 * time.Second} {
		if r.errors[name] != nil || len(r.begun[name]) == 0 || r.begun[name][0] != want {
			t.Errorf("%s: %v, begun %v", name, r.errors[name], r.begun[name][:min(1, len(r.begun[name]))])
		}
	}
	if n := len(r.log.AllEntries()); n != 1 {
		t.Errorf("%d warnings", n)
	}
}

// Scenarios stay as far from one another as the script has them, whoever of them had to wait for its consumers.
func TestDistancesAreKeptWhoeverWaits(t *testing.T) {
	r := play{
		scenarios: `{"first":{"executor":"consumers"},"second":{"executor":"consumers","startTime":"5s"},
			"s1":{"executor":"open-arrival-rate","rate":1,"duration":"2s","preAllocatedVUs":2},
			"s2":{"executor":"open-arrival-rate","rate":1,"duration":"2s","preAllocatedVUs":2,"startTime":"5s"},
			"s3":{"executor":"open-arrival-rate","rate":1,"duration":"2s","preAllocatedVUs":2,"startTime":"7s"},
			"s4":{"executor":"open-arrival-rate","rate":1,"duration":"2s","preAllocatedVUs":2,"startTime":"20s"}}`,
		work: map[string]func(context.Context) error{
			"first": consume(time.Second, time.Second, in(0)), "second": consume(8*time.Second, time.Second, in(0)),
			"s1": atOnce, "s2": atOnce, "s3": atOnce, "s4": atOnce,
		},
	}.run(t)
	for name, want := range map[string]time.Duration{"s1": 1, "s2": 13, "s3": 15, "s4": 28} {
		if begun := r.begun[name]; len(begun) != 2 || begun[0] != want*time.Second {
			t.Errorf("%s: arrivals at %v, the first should be at %v", name, begun, want*time.Second)
		}
	}
}

// Consumers that begin later may send on what they find: those that are to receive it are there until then.
func TestConsumersWaitForThoseThatBeginLater(t *testing.T) {
	r := play{
		scenarios: `{"last":{"executor":"consumers"},"later":{"executor":"consumers","startTime":"20s"},"once":{"executor":"per-vu-iterations"}}`,
		work: map[string]func(context.Context) error{
			"last": consume(0, time.Second, in(0)), "later": consume(3*time.Second, time.Second, in(0)), "once": atOnce,
		},
	}.run(t)
	if over := r.over["last"]; over < 23*time.Second || over > 25*time.Second {
		t.Errorf("they ended at %v", over)
	}
}

func TestMember_BusyUntilItAsksAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := driver.Now()
		m := &Member{idle: start}
		is := func(what string, want time.Duration) {
			t.Helper()
			if got := time.Duration(m.idleSince(driver.Now()) - start); got != want {
				t.Errorf("%s: idle since %v, want %v", what, got, want)
			}
		}
		time.Sleep(time.Second)
		is("before it waits", 0)
		for range 3 {
			done := m.Waiting()
			time.Sleep(time.Second)
			done(false)
		}
		is("nothing came", 0)
		m.Waiting()(true) // at 4 s
		time.Sleep(time.Second)
		is("works on what came", 5*time.Second)
		done := m.Waiting()
		time.Sleep(time.Second)
		is("asks for more", 5*time.Second)
		other := m.Waiting()
		done(true) // at 6 s
		time.Sleep(time.Second)
		other(false)
		is("works beside another wait", 7*time.Second)
		m.setBusy(false)
		time.Sleep(time.Second)
		is("its iteration ended", 7*time.Second)
	})
}
