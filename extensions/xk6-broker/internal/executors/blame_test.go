package executors

import (
	"context"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/clock"
)

// freeze is a time in which the process stands still: what would have woken in it wakes at its end. It may come again.
type freeze struct {
	from, to time.Duration // after the start
	start    int64
	times    int // that it comes; 0 is once
	every    time.Duration
	backlog  bool // the process always has something to do
}

func (f *freeze) thaw(at int64) int64 {
	for i := range max(1, f.times) {
		later := int64(i) * int64(f.every)
		if at >= f.start+int64(f.from)+later && at < f.start+int64(f.to)+later {
			return f.start + int64(f.to) + later
		}
	}
	return at
}

func (f *freeze) sleep(ctx context.Context, until int64) error {
	return clock.Timer(ctx, f.thaw(until))
}

// serves is an iteration whose answer comes at the time that answer gives for the time of its start, both after the scenario's start.
func (f *freeze) serves(answer func(time.Duration) time.Duration) func(context.Context, Arrival) error {
	return func(ctx context.Context, a Arrival) error {
		return f.sleep(ctx, f.start+int64(answer(time.Duration(a.Started-f.start))))
	}
}

// sends is an iteration of some messages, one after the other, whose answers are waited for as a script's are.
func (f *freeze) sends(messages int, answer func(time.Duration) time.Duration) func(context.Context, Arrival) error {
	return func(ctx context.Context, _ Arrival) error {
		for range messages {
			w := Await(ctx)
			if err := f.sleep(ctx, f.start+int64(answer(time.Duration(driver.Now()-f.start)))); err != nil {
				return err
			}
			w.Over(Answer{At: driver.Now(), One: true})
		}
		return nil
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

// What a standstill makes late is the generator's fault, down to the last arrival of the queue behind it.
func TestAStandstillIsTheGeneratorsOwn(t *testing.T) {
	const from, to = 1000500 * time.Microsecond, 1150500 * time.Microsecond
	for name, c := range map[string]struct {
		options string
		answer  func(time.Duration) time.Duration
		delayed int // arrivals, at least
	}{
		"with VUs idle": {
			`{"rate":500,"duration":"3s","preAllocatedVUs":2}`, after(100 * time.Microsecond), 75,
		},
		"with a long queue behind": {
			`{"rate":1000,"duration":"9s","preAllocatedVUs":2}`, after(1900 * time.Microsecond), 2800,
		},
		"with the only VU busy": {
			`{"rate":500,"duration":"3s","preAllocatedVUs":1}`, after(time.Millisecond), 145,
		},
		"with all VUs busy for long": {
			`{"rate":1000,"duration":"3s","preAllocatedVUs":20}`, after(19 * time.Millisecond), 1000,
		},
		"with more VUs than arrivals": {
			`{"rate":1000,"duration":"3s","preAllocatedVUs":500}`, after(19 * time.Millisecond), 150,
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := &freeze{from: from, to: to}
			late, own := scenario{options: c.options, work: f.serves(c.answer), frozen: f}.run(t).parts(t)
			delayed := 0
			for n := range late {
				if own[n] != late[n] {
					t.Fatalf("arrival %d was %v late, of which %v is taken for the generator's own", n, late[n], own[n])
				}
				if late[n] > 0 {
					delayed++
				}
			}
			if delayed < c.delayed {
				t.Errorf("only %d arrivals were late, want %d", delayed, c.delayed)
			}
		})
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

// Nobody can tell when the answers came that a standstill kept from being read: all of it is the generator's, and nothing before it.
func TestAStandstillThatOutlastsTheSilence(t *testing.T) {
	f := &freeze{from: 1800 * time.Millisecond, to: 2100 * time.Millisecond}
	o := scenario{
		options: `{"rate":500,"duration":"5s","preAllocatedVUs":2}`, work: f.serves(silent(time.Second, 2*time.Second)), frozen: f,
	}.run(t)
	late, own := o.parts(t)
	for n, a := range o.byIndex() {
		if a.Started < int64(f.to) {
			continue
		}
		// It was seen to run up to a beat before.
		if want := min(late[n], f.to-f.from); own[n] < want || own[n] > min(late[n], want+beatEvery) {
			t.Fatalf("arrival %d was %v late, of which %v is taken for the generator's own, want %v", n, late[n], own[n], want)
		}
	}
}

// In a queue that is never worked off, a standstill stays what it was: all that comes after it is as much later.
func TestAStandstillUnderOverload(t *testing.T) {
	f := &freeze{from: 1000 * time.Millisecond, to: 1150 * time.Millisecond}
	o := scenario{
		options: `{"rate":1000,"duration":"3s","preAllocatedVUs":2,"gracefulStop":"1h"}`, work: f.serves(after(3 * time.Millisecond)), frozen: f,
	}.run(t)
	_, own := o.parts(t)
	for n, a := range o.byIndex() {
		least, most := time.Duration(0), time.Duration(0)
		if a.Started >= int64(f.to) {
			least, most = 147*time.Millisecond, 150*time.Millisecond+beatEvery
		}
		if own[n] < least || own[n] > most {
			t.Fatalf("arrival %d, which began at %v: %v is taken for the generator's own", n, time.Duration(a.Started), own[n])
		}
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
