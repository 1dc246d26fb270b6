package engine

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/memory"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/payload"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/schedule"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason/reasontest"
)

// A loop that its scenario's end cuts short has not put the system under the load that it was asked for, though all that was due was sent.
func TestWhatIsSaidOfLoopsThatWereInterrupted(t *testing.T) {
	const cutAt = 2*time.Second - time.Nanosecond
	perSecond := schedule.Rate{Events: 200, Per: time.Second}
	trace := &strings.Builder{}
	for n := range 100 {
		fmt.Fprintln(trace, float64(n)/10)
	}
	list, err := schedule.Trace(strings.NewReader(trace.String()))
	if err != nil {
		t.Fatal(err)
	}
	poisson := func() schedule.Schedule { return schedule.Poisson(schedule.Constant(perSecond, 5*time.Second), 1) }
	drawn := schedule.Until(poisson(), cutAt)
	for name, c := range map[string]struct {
		loop    Produce
		senders int
		times   int
		ended   string
		reason  string // "" for a valid run
		note    string
	}{
		"a rate":       {loop: Produce{Schedule: constant(200, 5*time.Second)}, reason: "why=schedule done=400 total=1000"},
		"five senders": {loop: Produce{Schedule: constant(200, 5*time.Second)}, senders: 5, reason: "why=schedule done=400 total=1000"},
		"two loops":    {loop: Produce{Schedule: constant(200, 5*time.Second)}, times: 2, reason: "why=schedule done=401 total=2000"}, // the first of the second
		"stages": {
			loop: Produce{Schedule: func() schedule.Schedule {
				return schedule.Ramp(perSecond, schedule.Stage{Duration: 5 * time.Second, Target: perSecond})
			}},
			reason: "why=schedule done=399 total=1000", // the first is due when the integral reaches 1
		},
		"a trace":             {loop: Produce{Schedule: func() schedule.Schedule { return list }}, reason: "why=schedule done=20 total=100"},
		"a part of a trace":   {loop: Produce{Schedule: func() schedule.Schedule { return list }, Duration: 5 * time.Second}, reason: "why=schedule done=20 total=50"},
		"a count":             {loop: Produce{Schedule: constant(200, 0), Count: 500}, reason: "why=schedule done=400 total=500"},
		"at random":           {loop: Produce{Schedule: poisson}, reason: fmt.Sprintf("why=schedule done=%d total=1000", drawn)},
		"hardly":              {loop: Produce{Schedule: constant(1000, 2001*time.Millisecond)}, note: "why=schedule done=2000 total=2001"},
		"not at all":          {loop: Produce{Schedule: constant(200, 5*time.Second), Count: 400}},
		"with the whole test": {loop: Produce{Schedule: constant(200, 5*time.Second)}, ended: "interrupted"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, memory.Config{})
				var senders []*Sender
				for range max(1, c.senders) {
					senders = append(senders, b.sender(1000))
				}
				c.loop.Payload = payload.Spec{Size: payload.Fixed(100)}
				ctx, cancel := context.WithTimeout(t.Context(), cutAt)
				defer cancel()
				for range max(1, c.times) {
					if _, err := c.loop.Run(ctx, senders); err != nil {
						t.Fatal(err)
					}
				}
				b.finish()
				r := b.run.NewCollector().Result()
				r.Judge(result.Circumstances{Ended: c.ended})
				const of = "load-incomplete "
				v := r.Verdict
				if v.Valid != (c.reason == "" && c.ended == "") || reasontest.Has(v.Invalid(), of+c.reason) != (c.reason != "") || reasontest.Has(v.Notes(), of+c.note) != (c.note != "") {
					t.Errorf("%q", reasontest.Codes(v.Reasons))
				}
			})
		})
	}
}
