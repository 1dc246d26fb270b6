package executors

import (
	"context"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/machine"
)

// freeze is a time in which the process stands still: what would have woken in it wakes at its end.
type freeze struct {
	from, to time.Duration // after the start
	start    int64
}

func (f *freeze) thaw(at int64) int64 {
	if at >= f.start+int64(f.from) && at < f.start+int64(f.to) {
		return f.start + int64(f.to)
	}
	return at
}

func (f *freeze) sleep(ctx context.Context, until int64) error {
	return machine.Timer(ctx, f.thaw(until))
}

// serves is an iteration whose answer comes at the time that answer gives for the time of its start, both after the scenario's start.
func (f *freeze) serves(answer func(time.Duration) time.Duration) func(context.Context, Arrival) error {
	return func(ctx context.Context, a Arrival) error {
		return f.sleep(ctx, f.start+int64(answer(time.Duration(a.Started-f.start))))
	}
}

// after is an answer that takes some time.
func after(d time.Duration) func(time.Duration) time.Duration {
	return func(start time.Duration) time.Duration { return start + d }
}

// silent is an answer that takes a millisecond, but for a time in which there is none.
func silent(from, to time.Duration) func(time.Duration) time.Duration {
	return func(start time.Duration) time.Duration {
		if end := start + time.Millisecond; end < from || end >= to {
			return end
		}
		return to
	}
}

// parts gives of each arrival how late it began, and how much of that was the generator's own fault.
func (o *outcome) parts(t *testing.T) (late, own []time.Duration) {
	t.Helper()
	if o.err != nil || o.totals.Unserved != 0 {
		t.Fatalf("%+v, %v", o.totals, o.err)
	}
	for _, a := range o.byIndex() {
		if a.Free < a.Due || a.Free > a.Started {
			t.Fatalf("arrival %+v", a)
		}
		late = append(late, time.Duration(a.Started-a.Due))
		own = append(own, time.Duration(a.Started-a.Free))
	}
	return late, own
}

// An arrival that finds an idle VU and is late is late by the generator's own fault.
func TestAStandstillIsTheGeneratorsOwn(t *testing.T) {
	f := &freeze{from: 1000500 * time.Microsecond, to: 1150500 * time.Microsecond}
	late, own := scenario{
		options: `{"rate":1000,"duration":"3s","preAllocatedVUs":500}`, work: f.serves(after(19 * time.Millisecond)), frozen: f,
	}.run(t).parts(t)
	delayed := 0
	for n := range late {
		if own[n] != late[n] {
			t.Fatalf("arrival %d was %v late, of which %v is taken for the generator's own", n, late[n], own[n])
		}
		if late[n] > 0 {
			delayed++
		}
	}
	if delayed < 150 {
		t.Errorf("only %d arrivals were late", delayed)
	}
}

// What waits while the system under test keeps all VUs busy is no fault of the generator's, also where the generator stood still
// meanwhile.
func TestASilentBrokerIsNotTheGenerators(t *testing.T) {
	stall := silent(time.Second, 2*time.Second)
	for name, c := range map[string]struct {
		options string
		answer  func(time.Duration) time.Duration
		frozen  freeze
	}{
		"a silence":                   {`{"rate":500,"duration":"4s","preAllocatedVUs":2}`, stall, freeze{}},
		"a silence, many VUs":         {`{"rate":500,"duration":"4s","preAllocatedVUs":100}`, stall, freeze{}},
		"a standstill in the silence": {`{"rate":500,"duration":"4s","preAllocatedVUs":2}`, stall, freeze{from: 1400 * time.Millisecond, to: 1550 * time.Millisecond}},
		"too few VUs":                 {`{"rate":500,"duration":"2s","preAllocatedVUs":2,"gracefulStop":"1h"}`, after(10 * time.Millisecond), freeze{}},
	} {
		t.Run(name, func(t *testing.T) {
			f := &c.frozen
			late, own := scenario{options: c.options, work: f.serves(c.answer), frozen: f}.run(t).parts(t)
			delayed := 0
			for n := range late {
				if own[n] != 0 {
					t.Fatalf("arrival %d was %v late, of which %v is taken for the generator's own", n, late[n], own[n])
				}
				if late[n] > 0 {
					delayed++
				}
			}
			if delayed < 400 {
				t.Errorf("only %d arrivals were late", delayed)
			}
		})
	}
}

// Arrivals that wait until further VUs are made wait for no fault of the process's clockwork.
func TestWaitingForAVUToBeMade(t *testing.T) {
	_, own := scenario{
		options: `{"rate":100,"duration":"1s","preAllocatedVUs":1,"maxVUs":5}`, work: takes(60 * time.Millisecond), initTime: 50 * time.Millisecond,
	}.run(t).parts(t)
	for n := range own {
		if own[n] != 0 {
			t.Fatalf("arrival %d: %v", n, own[n])
		}
	}
}
