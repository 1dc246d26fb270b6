package executors

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.k6.io/k6/v2/errext"
)

// VUs that take 50 ms to make, one after the other, while each that is there is busy for good.
func TestMoreVUsAreMadeWhileArrivalsWait(t *testing.T) {
	for _, c := range []struct {
		planned int
		starts  []int64 // ms
	}{
		{1, []int64{0, 60, 110, 160, 210}}, // the second arrival, due at 10 ms, is the first to wait
		{0, []int64{50, 100, 150, 200, 250}},
		{5, []int64{0, 10, 20, 30, 40}},
	} {
		o := scenario{
			options: fmt.Sprintf(`{"rate":100,"duration":"1s","preAllocatedVUs":%d,"maxVUs":5,"gracefulStop":"1s"}`, c.planned),
			work:    takes(time.Hour), initTime: 50 * time.Millisecond,
		}.run(t)
		if len(o.arrivals) != 5 || o.totals.Unserved != 95 || o.state.GetInitializedVUsCount() != 5 {
			t.Fatalf("%d planned VUs: %d arrivals were started on %d VUs, %+v", c.planned, len(o.arrivals), o.state.GetInitializedVUsCount(), o.totals)
		}
		for n, a := range o.arrivals {
			if a.Index != uint64(n) || a.Started != c.starts[n]*ms || a.Due != int64(n)*10*ms {
				t.Errorf("%d planned VUs: arrival %d is %+v, want it started at %d ms", c.planned, n, a, c.starts[n])
			}
		}
		if !o.logged("reached 5 active VUs") {
			t.Errorf("%d planned VUs: nothing says that there are too few: %q", c.planned, o.messages())
		}
	}
}

// However the scenario ends, it is said once, from all iterations.
func TestTooFewVUsAreToldHowManyAreNeeded(t *testing.T) {
	quickThenStuck := func(ctx context.Context, a Arrival) error {
		if a.Index < 100 {
			return takes(time.Millisecond)(ctx, a)
		}
		return takes(time.Hour)(ctx, a)
	}
	for _, c := range []struct {
		options, segment, sequence string
		work                       func(context.Context, Arrival) error
		want                       string
	}{
		{`"rate":300,"duration":"2s"`, "", "", takes(20 * time.Millisecond), "At up to 300 arrivals/s and 20ms an iteration on average, 6 are busy"},
		{`"rate":300,"duration":"2s"`, "0:1/3", "0,1/3,1", takes(20 * time.Millisecond), "reached 1 active VUs and cannot initialize more."},
		{`"rate":10,"duration":"5s","maxQueue":20`, "", "", takes(time.Hour), "At up to 10 arrivals/s"},
		{`"rate":100,"duration":"3s"`, "", "", quickThenStuck, "204.56ms an iteration on average, 21 are busy"},
	} {
		o := scenario{
			options: fmt.Sprintf(`{%s,"preAllocatedVUs":3,"gracefulStop":"5s"}`, c.options), segment: c.segment, sequence: c.sequence, work: c.work,
		}.run(t)
		if said := strings.Join(o.messages(), "\n"); !strings.Contains(said, c.want) || strings.Count(said, "Insufficient VUs") != 1 {
			t.Errorf("%s on %q: %q, want %q", c.options, c.segment, o.messages(), c.want)
		}
	}
}

// Neither a wait by chance, nor one until a VU was made, tells of too few VUs.
func TestEnoughVUsAreNotCalledTooFew(t *testing.T) {
	for name, c := range map[string]struct {
		options string
		answer  time.Duration
		init    time.Duration
	}{
		"by chance":          {`{"rate":1000,"duration":"20s","arrivals":"poisson","preAllocatedVUs":9}`, 2 * time.Millisecond, 0},
		"until VUs are made": {`{"rate":100,"duration":"5s","preAllocatedVUs":1,"maxVUs":5}`, 15 * time.Millisecond, 50 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			o := scenario{options: c.options, work: takes(c.answer), initTime: c.init}.run(t)
			if o.totals.Lag.Max() == 0 {
				t.Error("nothing was late")
			}
			if o.logged("Insufficient VUs") {
				t.Errorf("logged: %q", o.messages())
			}
		})
	}
}

func TestNoVUIsMadeThatIsNotNeeded(t *testing.T) {
	o := scenario{
		options: `{"rate":100,"duration":"2s","preAllocatedVUs":2,"maxVUs":50}`, work: takes(19 * time.Millisecond), initTime: time.Millisecond,
	}.run(t)
	if n := o.state.GetInitializedVUsCount(); n != 2 || o.totals.Lag.Max() != 0 {
		t.Errorf("%d VUs where two suffice; the latest start was %v late", n, time.Duration(o.totals.Lag.Max()))
	}
	if len(o.log.AllEntries()) != 0 {
		t.Errorf("logged: %q", o.messages())
	}
}

func TestAnInterruptedTestEndsAtOnce(t *testing.T) {
	for _, work := range []func(context.Context, Arrival) error{nil, takes(time.Hour)} {
		o := scenario{
			options: `{"rate":100,"duration":"1h","preAllocatedVUs":3,"maxVUs":9}`, work: work, cancelAt: 495 * time.Millisecond,
			initTime: 10 * time.Second,
		}.run(t)
		if o.err != nil || o.totals.Due != 50 || o.totals.Due != o.totals.Started+o.totals.Unserved {
			t.Errorf("%+v, %v", o.totals, o.err)
		}
		if work == nil && (o.took != 495*time.Millisecond || o.totals.Unserved != 0) {
			t.Errorf("it took %v, %+v", o.took, o.totals)
		}
	}
}

func TestAScriptMayAbortTheTest(t *testing.T) {
	abort := &errext.InterruptError{Reason: "enough"}
	o := scenario{
		options: `{"rate":100,"duration":"1m","preAllocatedVUs":3}`,
		work: func(_ context.Context, a Arrival) error {
			if a.Index == 42 {
				return abort
			}
			return nil
		},
	}.run(t)
	if !errors.Is(o.err, abort) || o.totals.Started != 43 || o.took != 420*time.Millisecond {
		t.Errorf("%v after %v, %+v", o.err, o.took, o.totals)
	}
	if full, part := o.state.GetFullIterationCount(), o.state.GetPartialIterationCount(); full != 42 || part != 1 {
		t.Errorf("%d full and %d interrupted iterations", full, part)
	}
}

func TestAnIterationThatFailsIsLoggedAndTheTestGoesOn(t *testing.T) {
	o := scenario{
		options: `{"rate":10,"duration":"1s","preAllocatedVUs":3}`,
		work:    func(context.Context, Arrival) error { return errors.New("it broke") },
	}.run(t)
	if o.err != nil || o.state.GetFullIterationCount() != 10 || len(o.log.AllEntries()) != 10 || !o.logged("it broke") {
		t.Errorf("%v, %d iterations, %q", o.err, o.state.GetFullIterationCount(), o.messages())
	}
}

func TestOutsideIterationsThereIsNoArrival(t *testing.T) {
	if a, ok := FromContext(t.Context()); ok {
		t.Errorf("%+v", a)
	}
	idle := context.WithValue(t.Context(), seatKey{}, &seat{Arrival: Arrival{Index: 3}})
	if a, ok := FromContext(idle); ok {
		t.Errorf("between two iterations: %+v", a)
	}
}
