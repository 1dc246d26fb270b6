package executors

import (
	"context"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// seated is an iteration that begins now.
func seated(t *testing.T) (*seat, context.Context) {
	t.Helper()
	s := &seat{line: &line{}, running: true, Arrival: Arrival{Started: driver.Now()}}
	return s, context.WithValue(t.Context(), seatKey{}, s)
}

// isAlone ends the iteration and checks how long the script was busy with itself.
func (s *seat) isAlone(t *testing.T, want time.Duration) {
	t.Helper()
	s.ended = driver.Now()
	if alone := time.Duration(s.alone()); alone != want {
		t.Errorf("the script was alone for %v, want %v", alone, want)
	}
}

// How long a script waits for answers: from the first that it waits for until the last is there, where it could hear of that.
func TestAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ctx := seated(t)
		time.Sleep(time.Second) // alone
		one := Await(ctx)
		time.Sleep(time.Second)
		two := Await(ctx)
		time.Sleep(time.Second)
		one.Over(Answer{At: driver.Now()})
		time.Sleep(time.Second)
		answered := driver.Now()
		time.Sleep(time.Second) // alone, and the event loop does not run
		two.Over(Answer{At: answered})
		three := Await(ctx)
		time.Sleep(time.Second)
		three.Over(Answer{At: driver.Now()})
		Await(ctx)
		time.Sleep(time.Second)
		s.isAlone(t, 2*time.Second)
	})
}

// What a script waits for that it has chosen itself is its own, but for what the system took before and after, and for answers that it waited for beside.
func TestAwaitedByTheScriptsOwnClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ctx := seated(t)
		part := func() Span { // of 4 s, the second and the third
			now := driver.Now()
			return Span{now - 3*int64(time.Second), now - int64(time.Second)}
		}
		one := Await(ctx)
		time.Sleep(4 * time.Second)
		one.Over(Answer{At: driver.Now(), Own: part()}) // alone for two seconds
		two, three, four := Await(ctx), Await(ctx), Await(ctx)
		time.Sleep(1500 * time.Millisecond)
		four.Over(Answer{At: driver.Now()})
		time.Sleep(2500 * time.Millisecond)
		two.Over(Answer{At: driver.Now(), Own: part()})
		three.Over(Answer{At: driver.Now(), Own: Span{driver.Now() - 4*int64(time.Second), driver.Now()}}) // alone for one and a half
		s.isAlone(t, 3500*time.Millisecond)
	})
}

// Spans are as long together as the times are many that lie in any of them.
func TestSpans(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		var all spans
		var in [200]bool
		for range random.IntN(30) {
			from := random.IntN(len(in))
			to := from + random.IntN(min(20, len(in)-from))
			all.add(int64(from), int64(to))
			for i := from; i < to; i++ {
				in[i] = true
			}
		}
		var want int64
		for _, covered := range in {
			if covered {
				want++
			}
		}
		if got := all.length(); got != want {
			t.Fatalf("%v: %d, want %d", all, got, want)
		}
	}
	var all spans
	for n := range int64(3 * maxSpans) {
		all.add(10*n, 10*n+1)
	}
	if got, want := all.length(), int64(10*2*maxSpans+1+maxSpans-1); len(all) != maxSpans || got != want {
		t.Errorf("%d spans of %d, want %d of %d", len(all), got, maxSpans, want)
	}
}

// An arrival that waits for a VU whose script waits through this module, for a time of its own, waits for the script.
func TestWhatWaitsForATimeOfAScriptsOwn(t *testing.T) {
	const system, script = 3 * time.Millisecond, 500 * time.Millisecond
	o := scenario{
		options: `{"rate":6,"duration":"30s","preAllocatedVUs":2,"gracefulStop":"60s"}`, alone: script,
		work: func(ctx context.Context, a Arrival) error {
			w := Await(ctx)
			err := takes(system+script)(ctx, a)
			now := driver.Now()
			w.Over(Answer{At: now, Own: Span{now - int64(script), now}})
			return err
		},
	}.run(t)
	late, own := o.parts(t)
	for n := range late {
		if late[n] > time.Second && own[n] < 98*late[n]/100 {
			t.Fatalf("arrival %d was %v late, of which %v is taken for the generator's own", n, late[n], own[n])
		}
	}
	if last := late[len(late)-1]; last < 5*time.Second {
		t.Errorf("the last arrival was %v late", last)
	}
}
