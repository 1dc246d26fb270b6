package engine

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/memory"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/payload"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/schedule"
)

// What several processes send of a load, each its share and with senders of its own, is message for message what one process sends: at the same times, with
// the same sizes, keys and bodies.
func TestTheSharesOfALoadAreTheWholeLoad(t *testing.T) {
	perSecond := func(n int64) schedule.Rate { return schedule.Rate{Events: n, Per: time.Second} }
	trace, err := schedule.Trace(strings.NewReader("0\n0.1\n0.1\n0.25\n0.7\n0.71\n0.71\n0.9\n"))
	if err != nil {
		t.Fatal(err)
	}
	ramp := func() schedule.Schedule {
		return schedule.Ramp(perSecond(0), schedule.Stage{Target: perSecond(100), Duration: 2 * time.Second}, schedule.Stage{Target: perSecond(3), Duration: time.Second})
	}
	source := rand.New(rand.NewPCG(3, 4))
	for name, load := range map[string]Produce{
		"constant": {Schedule: func() schedule.Schedule { return schedule.Constant(perSecond(97), 2*time.Second) }},
		"counted":  {Schedule: func() schedule.Schedule { return schedule.Constant(perSecond(97), 0) }, Count: 151},
		"limited":  {Schedule: func() schedule.Schedule { return schedule.Constant(perSecond(97), 0) }, Duration: time.Second},
		"poisson":  {Schedule: func() schedule.Schedule { return schedule.Poisson(schedule.Constant(perSecond(97), 2*time.Second), 5) }},
		"ramp":     {Schedule: ramp},
		"trace":    {Schedule: func() schedule.Schedule { return trace }},
		"closed":   {Count: 151},
	} {
		t.Run(name, func(t *testing.T) {
			for _, spec := range []payload.Spec{
				{Size: payload.Uniform(41, 200), Keys: payload.AtRandom(7), Seed: 9},
				{Bodies: [][]byte{[]byte("one"), []byte("two"), []byte("three")}, Shuffled: true, Keys: payload.InTurn(7), Seed: 9},
			} {
				load.Payload = spec
				whole := sentBy(t, load, []schedule.Share{{}}, 1)
				for _, shares := range [][]schedule.Share{
					{{}},
					{schedule.Shard(0, 3), schedule.Shard(1, 3), schedule.Shard(2, 3)},
					{schedule.Stripe(0, []int64{4, 3, 3}), schedule.Stripe(1, []int64{5, 5}), schedule.Stripe(2, []int64{3, 3, 4}), schedule.Stripe(3, []int64{6, 4})},
				} {
					got := sentBy(t, load, shares, 1+source.IntN(4))
					if !slices.Equal(got, whole) {
						t.Errorf("%d processes sent %d messages, one sends %d; or others:\n%v\n%v", len(shares), len(got), len(whole), got, whole)
					}
				}
			}
		})
	}
}

// sentBy is what processes send of a load, in the order in which it was due.
func sentBy(t *testing.T, load Produce, shares []schedule.Share, senders int) (all []string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		load.Start = driver.Now()
		var processes sync.WaitGroup
		benches := make([]*bench, len(shares))
		for i, share := range shares {
			b := newBench(t, memory.Config{})
			own := make([]*Sender, senders)
			for i := range own {
				own[i] = b.sender(100)
			}
			mine := load
			mine.Share, benches[i] = share, b
			processes.Go(func() {
				if _, err := mine.Run(t.Context(), own); err != nil {
					t.Error(err)
				}
			})
		}
		processes.Wait()
		for _, b := range benches {
			for _, m := range b.broker.Stored("orders") {
				var s Stamp
				if s.get(s.Run, m.Body, m.Body[StampSize:]) != stamped {
					t.Fatal("no stamp")
				}
				due := time.Duration(0)
				if !s.Closed {
					due = time.Duration(s.Due - load.Start)
				}
				all = append(all, fmt.Sprintf("%012d %d bytes, key %s, %s", due, len(m.Body), m.Key, bytes.TrimRight(m.Body[StampSize:], "\x00")))
			}
			b.finish()
		}
	})
	slices.Sort(all)
	return all
}
