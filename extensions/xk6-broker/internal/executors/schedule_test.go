package executors

import (
	"fmt"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/schedule"
)

// punctual checks that each arrival of a schedule was started when it was due, and that there were no others.
func punctual(t *testing.T, o *outcome, want schedule.Schedule) {
	t.Helper()
	if o.err != nil {
		t.Fatal(o.err)
	}
	for n, a := range o.arrivals {
		due, ok := want.At(uint64(n))
		if !ok || a.Index != uint64(n) || a.Due != int64(due) || a.Started != a.Due || a.Scenario != "orders" {
			t.Fatalf("arrival %d is %+v, want it due at %d (%v) and started then", n, a, due, ok)
		}
		if o.counters[n] != [2]uint64{a.Index, a.Index} {
			t.Fatalf("the script counts arrival %d as %v", n, o.counters[n])
		}
	}
	n := uint64(len(o.arrivals))
	if due, more := want.At(n); more {
		t.Errorf("only %d arrivals: the next was due at %v", n, due)
	}
	if o.totals.Due != n || o.totals.Started != n || o.totals.Unserved != 0 || o.totals.Lag.Count() != n || o.totals.Lag.Max() != 0 {
		t.Errorf("totals: %+v", o.totals)
	}
	if got := o.state.GetFullIterationCount(); got != n {
		t.Errorf("k6 counts %d iterations, want %d", got, n)
	}
}

func TestArrivalsStartWhenDue(t *testing.T) {
	second := func(n int64) schedule.Rate { return schedule.Rate{Events: n, Per: time.Second} }
	base := schedule.Constant(second(500), 3*time.Second)
	ramp := schedule.Ramp(second(10), schedule.Stage{Target: second(300), Duration: 2 * time.Second},
		schedule.Stage{Target: second(0), Duration: 0}, schedule.Stage{Target: second(0), Duration: time.Second},
		schedule.Stage{Target: second(50), Duration: 1500 * time.Millisecond})
	const stages = `"startRate":10,"stages":[{"target":300,"duration":"2s"},{"target":0,"duration":"0s"},{"target":0,"duration":"1s"},{"target":50,"duration":"1500ms"}]`
	for _, c := range []struct {
		options string
		want    schedule.Schedule
		lasts   time.Duration
	}{
		{`"rate":500,"duration":"3s"`, base, 3 * time.Second},
		{`"rate":7,"timeUnit":"3s","duration":"9s"`, schedule.Constant(schedule.Rate{Events: 7, Per: 3 * time.Second}, 9*time.Second), 9 * time.Second},
		{`"rate":0.5,"duration":"9s","arrivals":"constant"`, schedule.Constant(schedule.Rate{Events: 1, Per: 2 * time.Second}, 9*time.Second), 9 * time.Second},
		{`"rate":500,"duration":"3s","arrivals":"poisson","seed":7`, schedule.Poisson(base, 7), 3 * time.Second},
		{`"rate":500,"duration":"3s","arrivals":"poisson"`, schedule.Poisson(base, 0), 3 * time.Second},
		{stages, ramp, 4500 * time.Millisecond},
		{stages + `,"arrivals":"poisson","seed":3`, schedule.Poisson(ramp, 3), 4500 * time.Millisecond},
	} {
		t.Run(c.options, func(t *testing.T) {
			o := scenario{options: fmt.Sprintf(`{%s,"preAllocatedVUs":60}`, c.options), work: takes(20 * time.Millisecond)}.run(t)
			punctual(t, o, c.want)
			if least := c.lasts; o.took < least || o.took > least+20*time.Millisecond {
				t.Errorf("the scenario took %v, want %v", o.took, least)
			}
		})
	}
}

// However fast a schedule is, a VU is woken for each arrival when it is due: none is late for the sake of the generator's own CPU.
func TestFastSchedulesAreServedInTime(t *testing.T) {
	const rate = 50_000
	o := scenario{options: fmt.Sprintf(`{"rate":%d,"duration":"1s","preAllocatedVUs":50}`, rate)}.run(t)
	punctual(t, o, schedule.Constant(schedule.Rate{Events: rate, Per: time.Second}, time.Second))
}

// Idle VUs take turns, as they do with k6's own executors: a script's per-VU connections are all used.
func TestIdleVUsTakeTurns(t *testing.T) {
	o := scenario{options: `{"rate":100,"duration":"1s","preAllocatedVUs":10}`, work: takes(time.Millisecond)}.run(t)
	for id := range uint64(10) {
		if n := o.vus[id+1]; n != 10 {
			t.Errorf("VU %d ran %d of 100 iterations, want 10: %v", id+1, n, o.vus)
		}
	}
}
