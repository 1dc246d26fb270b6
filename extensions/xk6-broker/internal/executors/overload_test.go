package executors

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.k6.io/k6/v2/errext"
	"go.k6.io/k6/v2/errext/exitcodes"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/k6/samples"
)

const ms = int64(time.Millisecond)

// One VU that takes 3 ms for what comes every millisecond: arrival n starts at 3n ms, and nothing is dropped.
func TestOverloadMakesArrivalsLateAndDropsNone(t *testing.T) {
	o := scenario{
		options: `{"rate":1000,"duration":"1s","preAllocatedVUs":1,"gracefulStop":"10s"}`, work: takes(3 * time.Millisecond),
	}.run(t)
	if o.err != nil || len(o.arrivals) != 1000 || o.totals.Due != 1000 || o.totals.Started != 1000 || o.totals.Unserved != 0 {
		t.Fatalf("%d arrivals, %+v, %v", len(o.arrivals), o.totals, o.err)
	}
	for n, a := range o.arrivals {
		n := int64(n)
		if a.Index != uint64(n) || a.Due != n*ms || a.Started != 3*n*ms {
			t.Fatalf("arrival %d is %+v, want it due at %d ms and started at %d ms", n, a, n, 3*n)
		}
	}
	if o.took != 3*time.Second {
		t.Errorf("the scenario took %v, want 3 s", o.took)
	}
	if o.sum("broker_arrivals") != 1000 || o.sum("broker_arrivals_unserved") != 0 || len(o.samples["broker_arrivals_unserved"]) != 1 {
		t.Errorf("%v arrivals and %v unserved in k6", o.sum("broker_arrivals"), o.sum("broker_arrivals_unserved"))
	}
}

// What k6 gets of the waits: within the budget, each at a time of its own, and with the quantiles of all.
func TestWaitsAreThinnedHonestly(t *testing.T) {
	o := scenario{
		options: `{"rate":1000,"duration":"10s","preAllocatedVUs":1,"gracefulStop":"60s","tags":{"team":"a"}}`, work: takes(2 * time.Millisecond),
	}.run(t)
	waits := o.samples["broker_queue_wait"]
	if n := len(waits); n < 19*samples.Budget/2 || n > 21*samples.Budget {
		t.Fatalf("%d samples of 10000 waits in 20 s", n)
	}
	moments, values := map[time.Time]bool{}, make([]float64, 0, len(waits))
	for _, s := range waits {
		moments[s.Time] = true
		values = append(values, s.Value)
		if name, _ := s.Tags.Get("scenario"); name != "orders" {
			t.Fatalf("tags %v", s.Tags.Map())
		}
		if team, _ := s.Tags.Get("team"); team != "a" {
			t.Fatalf("tags %v", s.Tags.Map())
		}
	}
	if len(moments) != len(waits) {
		t.Errorf("%d samples at %d moments: InfluxDB would lose some", len(waits), len(moments))
	}
	slices.Sort(values)
	if all := o.totals.Lag; values[len(values)-1] != float64(all.Max())/float64(ms) {
		t.Errorf("of waits up to %d, k6 got %d up to %v", all.Max(), len(waits), values[len(values)-1])
	}
	if team, _ := o.totals.Tags.Get("team"); team != "a" {
		t.Errorf("the scenario's tags are %v", o.totals.Tags.Map())
	}
	for _, q := range []float64{.01, .5, .9, .99} { // the wait of arrival n is n ms
		if got, want := values[int(q*float64(len(values)))], q*10_000; got < want-200 || got > want+200 {
			t.Errorf("quantile %v of the samples is %v ms, want %v", q, got, want)
		}
	}
	lengths := o.samples["broker_queue_length"]
	if n := len(lengths); n != 20 && n != 21 { // one a second, and the last, which comes at a full second too
		t.Fatalf("%d samples of the queue's length", len(lengths))
	}
	for i, s := range lengths[:9] { // after i+1 seconds
		if want := float64(i+1) * 500; s.Value < want-2 || s.Value > want+2 {
			t.Errorf("%v arrivals wait after %d s, want %v", s.Value, i+1, want)
		}
	}
}

func TestWhatIsNotServedWithinGracefulStopIsCounted(t *testing.T) {
	for _, c := range []struct {
		graceful string
		started  uint64
	}{{"500500us", 501}, {"0s", 334}} { // every 3 ms, until 1500.5 ms and 1000 ms
		o := scenario{
			options: fmt.Sprintf(`{"rate":1000,"duration":"1s","preAllocatedVUs":1,"gracefulStop":"%s"}`, c.graceful), work: takes(3 * time.Millisecond),
		}.run(t)
		unserved := 1000 - c.started
		if o.err != nil || o.totals.Due != 1000 || o.totals.Started != c.started || o.totals.Unserved != unserved {
			t.Errorf("gracefulStop %s: %+v, %v, want %d started", c.graceful, o.totals, o.err, c.started)
		}
		if got := o.sum("broker_arrivals_unserved"); got != float64(unserved) {
			t.Errorf("gracefulStop %s: k6 has %v unserved arrivals, want %d", c.graceful, got, unserved)
		}
		if full, part := o.state.GetFullIterationCount(), o.state.GetPartialIterationCount(); full != c.started-1 || part != 1 {
			t.Errorf("gracefulStop %s: %d full and %d interrupted iterations", c.graceful, full, part)
		}
		want := fmt.Sprintf("%d of 1000 arrivals that were due were never started", unserved)
		if !o.logged(want) {
			t.Errorf("gracefulStop %s: the log does not say %q", c.graceful, want)
		}
	}
}

func (o *outcome) logged(part string) bool {
	return slices.ContainsFunc(o.messages(), func(m string) bool { return strings.Contains(m, part) })
}

func (o *outcome) messages() (all []string) {
	for _, e := range o.log.AllEntries() {
		all = append(all, e.Message)
	}
	return all
}

func TestTooLongAQueueEndsTheTest(t *testing.T) {
	o := scenario{
		options: `{"rate":1000,"duration":"10s","preAllocatedVUs":2,"maxQueue":100}`, work: takes(time.Hour),
	}.run(t)
	if o.err == nil {
		t.Fatal("no error")
	}
	for _, part := range []string{"orders", "maxQueue", "101 arrivals", "which is 100", "2 of 2 VUs are busy", "maxVUs"} {
		if !strings.Contains(o.err.Error(), part) {
			t.Errorf("the error does not tell of %q: %v", part, o.err)
		}
	}
	var code errext.HasExitCode
	if !errors.As(o.err, &code) || code.ExitCode() != exitcodes.ScriptAborted {
		t.Errorf("%v has no exit code, or another", o.err)
	}
	// Arrivals 0 and 1 run, 2 to 101 may wait, and with 102 there is one too many.
	if o.took != 102*time.Millisecond || o.totals.Due != 103 || o.totals.Unserved != 101 {
		t.Errorf("it took %v, %+v", o.took, o.totals)
	}
	if o.state.GetPartialIterationCount() != 2 {
		t.Errorf("%d iterations were interrupted, want 2", o.state.GetPartialIterationCount())
	}
}

func TestAQueueThatStaysWithinBoundsDoesNot(t *testing.T) {
	stall := func(ctx context.Context, a Arrival) error {
		if a.Index == 500 {
			return takes(100*time.Millisecond)(ctx, a) // 501 to 600 wait when it ends
		}
		return nil
	}
	options := func(most int) string {
		return fmt.Sprintf(`{"rate":1000,"duration":"2s","preAllocatedVUs":1,"maxQueue":%d}`, most)
	}
	if o := (scenario{options: options(100), work: stall}).run(t); o.err != nil || o.totals.Started != 2000 {
		t.Errorf("%+v, %v", o.totals, o.err)
	}
	if o := (scenario{options: options(98), work: stall}).run(t); o.err == nil {
		t.Error("99 waited where 98 may, and nothing happened")
	}
}
