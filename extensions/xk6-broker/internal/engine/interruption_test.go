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
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/schedule"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict"
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
		reason  string // "" for a valid run
	}{
		"a rate":       {loop: Produce{Schedule: constant(200, 5*time.Second)}, reason: "why=due count=600"},
		"five senders": {loop: Produce{Schedule: constant(200, 5*time.Second)}, senders: 5, reason: "why=due count=600"},
		"two loops":    {loop: Produce{Schedule: constant(200, 5*time.Second)}, times: 2, reason: "why=due count=1600"}, // the first of the second
		"stages": {
			loop: Produce{Schedule: func() schedule.Schedule {
				return schedule.Ramp(perSecond, schedule.Stage{Duration: 5 * time.Second, Target: perSecond})
			}},
			reason: "why=due count=601", // the first is due when the integral reaches 1
		},
		"a trace":           {loop: Produce{Schedule: func() schedule.Schedule { return list }}, reason: "why=due count=80"},
		"a part of a trace": {loop: Produce{Schedule: func() schedule.Schedule { return list }, Duration: 5 * time.Second}, reason: "why=due count=30"},
		"a count":           {loop: Produce{Schedule: constant(200, 0), Count: 500}, reason: "why=due count=100"},
		"at random":         {loop: Produce{Schedule: poisson}, reason: fmt.Sprintf("why=due count=%d", 1000-drawn)},
		"not at all":        {loop: Produce{Schedule: constant(200, 5*time.Second), Count: 400}},
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
				verdict.Judge(r, verdict.Circumstances{})
				const of = "load-incomplete "
				v := r.Verdict
				if v.Valid != (c.reason == "") || reasontest.Has(v.Invalid(), of+c.reason) != (c.reason != "") {
					t.Errorf("%q", reasontest.Codes(v.Reasons))
				}
			})
		})
	}
}
