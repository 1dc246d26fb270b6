package engine

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/memory"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/payload"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason/reasontest"
)

// A group that never settles reads messages that come again, to itself or to another.
func TestWhoSettlesNothingIsTold(t *testing.T) {
	atMostOnce := memory.Full()
	atMostOnce.Deliver = driver.AtMostOnce
	unsettled := memory.Full()
	unsettled.Deliver, unsettled.Settle = driver.AtMostOnce, 0
	for name, c := range map[string]struct {
		broker  memory.Config
		acked   int
		outcome driver.Outcome
		options map[string]any
		note    string
	}{
		"none":                      {acked: 0, note: "topic=orders group=workers settled=0 received=2000"},
		"not all":                   {acked: 1500, note: "topic=orders group=workers settled=1500 received=2000"},
		"a trifle":                  {acked: 1998},
		"given back":                {acked: 1500, outcome: driver.Requeue, note: "settled=1500"},
		"asked for":                 {options: map[string]any{"group": "workers", "ack": "none"}},
		"asked for by others":       {options: map[string]any{"group": "audit", "ack": "none"}, note: "settled=0"},
		"delivered at most once":    {broker: memory.Config{Features: atMostOnce}},
		"nothing can be settled":    {broker: memory.Config{Features: unsettled}},
		"settled with later ones":   {broker: memory.Config{Cumulative: true}, acked: 1},
		"lent, and not told of":     {broker: memory.Config{Untold: true}, acked: 1500},
		"given back, not told of":   {broker: memory.Config{Untold: true}, acked: 1500, outcome: driver.Requeue},
		"settled by the loop's way": {acked: 2000, options: map[string]any{"group": "workers", "ack": "batch"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, c.broker)
				collector := b.run.NewCollector()
				if c.options != nil {
					b.topic.Use("consume", c.options)
				}
				consumer := b.consumer(driver.ConsumerConfig{Group: "workers", Prefetch: 2000})
				b.produce(b.sender(2000), 2000)
				in := b.receive(consumer, 2000)
				if c.acked > 0 {
					b.settle(consumer, in, 0, c.acked, driver.Ack)
				}
				if c.outcome != 0 {
					b.settle(consumer, in, c.acked, 2000, c.outcome)
				}
				b.finish()
				r := collector.Result()
				verdict.Judge(r, verdict.Circumstances{})
				if n := r.Topics[0].Counts["acked"]; n != int64(c.acked) {
					t.Errorf("acked %d", n)
				}
				notes := r.Verdict.Notes()
				if reasontest.Has(notes, "unsettled "+c.note) != (c.note != "") {
					t.Errorf("want %q in %q", c.note, reasontest.Codes(notes))
				}
				if !r.Verdict.Valid {
					t.Errorf("%+v", r.Verdict)
				}
			})
		})
	}
}

// A consumer that is slower than its producers is named wherever the messages wait for it, and others are not.
func TestAConsumerThatFallsBehindIsNamed(t *testing.T) {
	const rate, length = 300, 8 * time.Second
	stall := func(n int64) time.Duration { // of 2 s at the end
		if n < 6*rate {
			return 0
		}
		return 2*time.Second - time.Duration(n-6*rate)*time.Second/rate
	}
	late := func(d time.Duration) func(int64) time.Duration { return func(int64) time.Duration { return d } }
	for name, c := range map[string]struct {
		prefetch int
		work     time.Duration
		transit  func(int64) time.Duration
		says     string
	}{
		"at the broker":             {prefetch: 1, work: 5 * time.Millisecond, says: "why=backlog topic=orders group=workers"},
		"in the client too":         {prefetch: 1000, work: 5 * time.Millisecond, says: "topic=orders"},
		"fast enough":               {prefetch: 1, work: time.Millisecond},
		"a broker that is slow":     {prefetch: 1, work: time.Millisecond, transit: late(2 * time.Second)},
		"a broker that stood still": {prefetch: 1, work: time.Millisecond, transit: stall},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, memory.Config{Transit: c.transit})
				collector := b.run.NewCollector()
				consumer := b.consumer(driver.ConsumerConfig{Group: "workers", Prefetch: c.prefetch})
				total := uint64(rate * length / time.Second)
				loop, err := Consume{Count: total, Work: c.work}.Resolve(b.topic.Address.Driver.Features)
				if err != nil {
					t.Fatal(err)
				}
				var wg sync.WaitGroup
				over := make(chan struct{})
				wg.Go(func() {
					for each := time.NewTicker(time.Second); ; {
						select {
						case <-over:
							return
						case <-each.C:
							collector.Collect()
						}
					}
				})
				wg.Go(func() {
					defer close(over)
					if _, err := loop.Run(t.Context(), []*Consumer{consumer}); err != nil {
						t.Error(err)
					}
				})
				produce := Produce{Schedule: constant(rate, length), Start: driver.Now(), Payload: payload.Spec{Size: payload.Fixed(100)}}
				if _, err := produce.Run(t.Context(), []*Sender{b.sender(1 << 16)}); err != nil {
					t.Fatal(err)
				}
				wg.Wait()
				b.finish()
				r := collector.Result()
				verdict.Judge(r, verdict.Circumstances{})
				said := slices.DeleteFunc(r.Verdict.Notes(), func(r reason.Reason) bool { return r.Code != reason.ConsumersSlower })
				if len(said) != min(1, len(c.says)) || c.says != "" && !reasontest.Has(said, c.says) {
					t.Errorf("%q, want one with %q\n%+v", reasontest.Codes(said), c.says, r.Topics[0].History)
				}
			})
		})
	}
}
