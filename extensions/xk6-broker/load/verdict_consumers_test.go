package load

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/faulty"
)

// A group that never settles reads messages that come again, to itself or to another.
func TestWhoSettlesNothingIsTold(t *testing.T) {
	atMostOnce := faulty.Full()
	atMostOnce.Deliver = driver.AtMostOnce
	unsettled := faulty.Full()
	unsettled.Deliver, unsettled.Settle = driver.AtMostOnce, 0
	for name, c := range map[string]struct {
		broker  faulty.Config
		acked   int
		outcome driver.Outcome
		options map[string]any
		counted bool // how many were acked is told
		note    string
	}{
		"none":                      {acked: 0, counted: true, note: "orders, workers: received 2000 messages and settled none"},
		"not all":                   {acked: 1500, counted: true, note: "orders, workers: settled 1500 of 2000 messages that it received"},
		"a trifle":                  {acked: 1998, counted: true},
		"given back":                {acked: 1500, outcome: driver.Requeue, counted: true},
		"asked for":                 {options: map[string]any{"group": "workers", "ack": "none"}, counted: true},
		"asked for by others":       {options: map[string]any{"group": "audit", "ack": "none"}, counted: true, note: "settled none"},
		"delivered at most once":    {broker: faulty.Config{Features: atMostOnce}, counted: true},
		"nothing can be settled":    {broker: faulty.Config{Features: unsettled}},
		"settled with later ones":   {broker: faulty.Config{Cumulative: true}, acked: 1, counted: true},
		"settled by the loop's way": {acked: 2000, options: map[string]any{"group": "workers", "ack": "batch"}, counted: true},
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
				r.Judge(Circumstances{})
				if n, there := r.Topics[0].Counts["acked"]; there != c.counted || n != int64(c.acked) {
					t.Errorf("acked %d, told %v", n, there)
				}
				all := strings.Join(r.Verdict.Notes, "\n")
				if told := strings.Contains(all, "settled"); told != (c.note != "") || !strings.Contains(all, c.note) {
					t.Errorf("want %q in\n%s", c.note, all)
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
	const slower = "the consumers were slower than what came in"
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
		"at the broker":             {prefetch: 1, work: 5 * time.Millisecond, says: "orders, workers: what was outstanding grew under load, to "},
		"in the client too":         {prefetch: 1000, work: 5 * time.Millisecond, says: slower},
		"fast enough":               {prefetch: 1, work: time.Millisecond},
		"a broker that is slow":     {prefetch: 1, work: time.Millisecond, transit: late(2 * time.Second)},
		"a broker that stood still": {prefetch: 1, work: time.Millisecond, transit: stall},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, faulty.Config{Transit: c.transit})
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
				produce := Produce{Schedule: constant(rate, length), Start: driver.Now(), Payload: Payload{Size: 100}}
				if _, err := produce.Run(t.Context(), []*Sender{b.sender(1 << 16)}); err != nil {
					t.Fatal(err)
				}
				wg.Wait()
				b.finish()
				r := collector.Result()
				r.Judge(Circumstances{})
				said := slices.DeleteFunc(r.Verdict.Notes, func(s string) bool { return !strings.Contains(s, slower) })
				if c.says == "" && len(said) > 0 || c.says != "" && (len(said) != 1 || !strings.Contains(said[0], c.says)) {
					t.Errorf("%q, want one with %q\n%+v", said, c.says, r.Topics[0].History)
				}
			})
		})
	}
}

// What is outstanding says nothing of consumers that were not there, had it lost, or are of another process.
func TestOutstandingThatNoConsumerIsToBlameFor(t *testing.T) {
	history := func(outstanding []uint64, received func(i int) int64) (all []Point) {
		for i, n := range outstanding {
			all = append(all, Point{At: float64(i + 1), Seconds: 1, Outstanding: n, Counts: counted(map[Counter]int64{Sent: 100, Received: received(i)})})
		}
		return append(all, Point{At: float64(len(all) + 1), Seconds: 1, Counts: map[string]int64{}})
	}
	always := func(int) int64 { return 50 }
	growing := []uint64{50, 100, 150, 200, 250, 300, 350, 400}
	for name, c := range map[string]struct {
		history []Point
		shared  bool
		lost    uint64
		want    uint64
	}{
		"behind":             {history: history(growing, always), want: 400},
		"a straggler":        {history: history(slices.Concat(growing, []uint64{350}), always), want: 400},
		"another process":    {history: history(growing, always), shared: true},
		"lost":               {history: history(growing, always), lost: 100},
		"nobody received":    {history: history(growing, func(int) int64 { return 0 })},
		"they left":          {history: history(growing, func(i int) int64 { return int64(max(0, 5-i)) })},
		"they came and read": {history: history([]uint64{100, 200, 300, 400, 350, 300, 250, 200}, always)},
		"a stall at the end": {history: history([]uint64{0, 0, 0, 0, 0, 0, 100, 200}, always)},
		"always as many":     {history: history([]uint64{300, 300, 300, 300, 300, 300, 310, 320}, always)},
		"few":                {history: history([]uint64{5, 10, 15, 20, 25, 30, 35, 40}, always)},
		"too short to tell":  {history: history([]uint64{100, 200, 300}, always)},
		"nothing":            {},
	} {
		topic := TopicResult{History: c.history, alone: !c.shared, Groups: only(Accounting{Lost: c.lost})}
		if n, length := topic.fellBehind(); n != c.want || length != float64(c.want)/100 {
			t.Errorf("%s: %d, %v s, want %d", name, n, length, c.want)
		}
	}
}
