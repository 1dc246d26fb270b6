package executors

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// Standstills that follow one another count together for as long as they were, and for no longer than the process takes to recover: short ones that come
// now and then for ever do not make the generator owe what the system took.
func TestStandstillsThatFollowOneAnother(t *testing.T) {
	ms := func(n int64) int64 { return n * int64(time.Millisecond) }
	for _, c := range []struct {
		name          string
		stops, length int64 // of the first standstills, 100 ms apart
		silent        int64 // how long the system was silent after them; there is a standstill of 10 ms each 100 ms
		least, most   int64 // the generator's part
	}{
		{"one", 1, 250, 3600, 0, 20},
		{"four", 4, 250, 3600, 0, 20},
		{"four, and the answer at once", 4, 250, 0, 1000, 1000},
		{"four, and the answer before it has recovered", 4, 250, 500, 1000, 1060},
		{"none but the short ones", 0, 0, 10000, 0, 20},
	} {
		b := &blame{}
		now := int64(time.Hour)
		began := now
		run := func(d int64) {
			for end := now + d; now < end; {
				now = min(end, now+ms(5))
				b.pulse(now)
			}
		}
		run(ms(100))
		for range c.stops {
			run(ms(100))
			now += ms(c.length)
			b.pulse(now)
		}
		for end := now + ms(c.silent); now < end; {
			run(ms(90))
			now += ms(10)
			b.pulse(now)
		}
		if got := b.delayed(began, now, nil); got < ms(c.least) || got > ms(c.most)+ms(5*(c.stops+c.silent/100+1)) {
			t.Errorf("%s: an iteration of %v was delayed by %v, want %v to %v", c.name, time.Duration(now-began), time.Duration(got), time.Duration(ms(c.least)), time.Duration(ms(c.most)))
		}
	}
}

// Short standstills in a silence of the broker's come one after the other, and the process is through with what there is to do after each: what waits for
// the broker waits no longer by them. By each single one it may: nobody sees when in a standstill a message left.
func TestStandstillsInASilenceOfTheBrokers(t *testing.T) {
	for _, backlog := range []bool{false, true} {
		f := &freeze{from: 1000500 * time.Microsecond, to: 1070500 * time.Microsecond, every: 100 * time.Millisecond, times: 17, backlog: backlog}
		late, own := scenario{
			options: `{"rate":100,"duration":"6s","preAllocatedVUs":50}`, work: f.sends(1, silent(time.Second, 3*time.Second)), frozen: f,
		}.run(t).parts(t)
		var longest, most time.Duration
		for n := range late {
			longest, most = max(longest, late[n]), max(most, own[n])
		}
		if longest < 1400*time.Millisecond {
			t.Errorf("nothing was late by more than %v", longest)
		}
		if bound := f.to - f.from + beatSeldom + beatEvery; !backlog && (most < beatSeldom || most > bound) {
			t.Errorf("%v is taken for the generator's own, want no more than %v", most, bound)
		}
		if all := 17 * (f.to - f.from); backlog && (most < time.Second || most > all+17*beatEvery) {
			t.Errorf("of a process that never was through: %v, want no more than the %v that it stood", most, all)
		}
	}
}

// Whatever iterations are like, the generator's part is no less than the standstills made them begin later than they would have. (The silences begin before
// the standstills: what a standstill makes so late that a silence comes upon it takes longer, and is taken to have been as long as it was.)
func TestWhatStandstillsMadeLateIsTheGenerators(t *testing.T) {
	for _, c := range []struct {
		name     string
		rate     int
		vus      int
		messages int // of an iteration
		answer   func(time.Duration) time.Duration
	}{
		{"one message", 400, 2, 1, after(4 * time.Millisecond)},
		{"two messages", 200, 2, 2, after(4 * time.Millisecond)},
		{"many quick messages", 20, 3, 40, after(3 * time.Millisecond)},
		{"many slow messages", 10, 9, 20, after(40 * time.Millisecond)},
		{"slower than between two standstills", 20, 3, 3, after(45 * time.Millisecond)},
		{"overload", 300, 2, 2, after(4 * time.Millisecond)},
		{"a silence", 100, 50, 1, silent(time.Second, 3*time.Second)},
		{"a silence in the middle of an iteration", 50, 20, 4, silent(900*time.Millisecond, 2200*time.Millisecond)},
	} {
		for _, stop := range []time.Duration{70, 150, 400} { // shorter ones may pass unseen while VUs rest
			t.Run(fmt.Sprintf("%s, %d ms", c.name, stop), func(t *testing.T) {
				const first = 1000500 * time.Microsecond
				options := fmt.Sprintf(`{"rate":%d,"duration":"4s","preAllocatedVUs":%d,"gracefulStop":"1h"}`, c.rate, c.vus)
				never := &freeze{from: -1, to: -1}
				punctual := scenario{options: options, work: never.sends(c.messages, c.answer), frozen: never}.run(t).byIndex()
				f := &freeze{from: first, to: first + stop*time.Millisecond, every: stop*time.Millisecond + 30*time.Millisecond, times: 8}
				o := scenario{options: options, work: f.sends(c.messages, c.answer), frozen: f}.run(t)
				late, own := o.parts(t)
				delayed := 0
				for n, a := range o.byIndex() {
					by := time.Duration(a.Started - punctual[n].Started)
					if own[n] < by {
						t.Fatalf("arrival %d was %v late, %v later than without standstills, of which %v is taken for the generator's own", n, late[n], by, own[n])
					}
					if by > 0 {
						delayed++
					}
				}
				if delayed == 0 {
					t.Error("nothing began later")
				}
			})
		}
	}
}

// A client that waits for more to go out together sends when the standstill is over that came upon it: the answer is as much later.
func TestAMessageThatAStandstillKeptFromLeaving(t *testing.T) {
	const lingers, takes = 8 * time.Millisecond, 30 * time.Millisecond
	f := &freeze{from: 1005 * time.Millisecond, to: 1105 * time.Millisecond}
	late, own := scenario{
		options: `{"rate":20,"duration":"3s","preAllocatedVUs":1}`, frozen: f,
		work: func(ctx context.Context, _ Arrival) error {
			w := Await(ctx)
			if err := f.sleep(ctx, driver.Now()+int64(lingers)); err != nil {
				return err
			}
			if err := f.sleep(ctx, driver.Now()+int64(takes)); err != nil {
				return err
			}
			w.Over(Answer{At: driver.Now(), One: true})
			return nil
		},
	}.run(t).parts(t)
	delayed := 0
	for n := range late {
		if own[n] < late[n] {
			t.Errorf("arrival %d was %v late, of which %v is taken for the generator's own", n, late[n], own[n])
		}
		if late[n] > 0 {
			delayed++
		}
	}
	if delayed == 0 {
		t.Error("nothing was late")
	}
}

func TestAProcessThatIdlesIsSeenTo(t *testing.T) {
	idle := newIdle()
	if runtime.GOMAXPROCS(0) > 1 {
		var over atomic.Bool
		var runs sync.WaitGroup
		runs.Go(func() {
			for !over.Load() {
				runtime.Gosched()
			}
		})
		for range 20 {
			if idle() {
				t.Error("a goroutine runs, and the process is said to idle")
			}
		}
		over.Store(true)
		runs.Wait()
	}
	for begin := time.Now(); !idle(); time.Sleep(time.Millisecond) {
		if time.Since(begin) > time.Minute {
			t.Fatal("it never idles")
		}
	}
}

// What comes due when the last VU has begun what was due before waits for the system, be it that both began when a standstill was over.
func TestTheLastVUsOfAStandstillAreNotThoseOfWhatComesAfter(t *testing.T) {
	f := &freeze{from: 1150500 * time.Microsecond, to: 1220500 * time.Microsecond}
	o := scenario{
		options: `{"rate":100,"duration":"5s","preAllocatedVUs":20}`, work: f.sends(1, silent(time.Second, 3*time.Second)), frozen: f,
	}.run(t)
	late, own := o.parts(t)
	for n := range late {
		if own[n] > f.to-f.from+beatSeldom+beatEvery {
			t.Fatalf("arrival %d was %v late, of which %v is taken for the generator's own", n, late[n], own[n])
		}
	}
	if late[122] < time.Second {
		t.Errorf("%v", late[122])
	}
}
