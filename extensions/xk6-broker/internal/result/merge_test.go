package result

import (
	"slices"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/metric"
)

// Processes whose intervals are of different lengths have those of the longest together, and nothing is counted twice.
func TestTheHistoriesOfProcessesAddUp(t *testing.T) {
	started := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	part := func(instance uint32, begins time.Duration, length, points int) Part {
		topic := Topic{
			Driver: "memory", Topic: "orders", OpenLoop: true, Counts: counted(map[metric.Counter]int64{metric.Sent: int64(10 * length * points)}),
			Trends: map[string]*hist.Histogram{"publish_latency": {}}, OverTime: map[string][]Summary{},
		}
		for n := range points {
			end := float64(length * (n + 1))
			topic.History = append(topic.History, Point{
				At: end, Seconds: float64(length), Counts: map[string]int64{"sent": int64(10 * length)}, InFlight: 5, Outstanding: 7, Busiest: 0.1 * float64(instance),
			})
			topic.OverTime["publish_latency"] = append(topic.OverTime["publish_latency"], Summary{
				At: end, Seconds: float64(length), Count: uint64(10 * length), P50: int64(instance), Max: int64(100 - instance),
			})
			topic.Trends["publish_latency"].RecordN(1, uint64(10*length))
		}
		r := &Result{Name: "p", Run: 1, Instance: instance, Started: started.Add(begins), Seconds: float64(length * points), Topics: []Topic{topic}}
		return Part{Result: r, Ledger: &account.Ledger{Run: 1, Instance: instance}}
	}
	merged, err := Merge([]Part{part(1, 0, 1, 12), part(2, 2*time.Second, 4, 3)}, Siblings{})
	if err != nil {
		t.Fatal(err)
	}
	topic := merged.Topics[0]
	var ends []float64
	var sent int64
	var values uint64
	for _, p := range topic.History {
		ends = append(ends, p.At)
		sent += p.Counts["sent"]
	}
	for _, s := range topic.OverTime["publish_latency"] {
		values += s.Count
	}
	if !slices.Equal(ends, []float64{4, 8, 12, 16}) || sent != 240 || values != 240 {
		t.Errorf("intervals to %v, sent %d, %d latencies", ends, sent, values)
	}
	if p := topic.History[1]; p.Seconds != 4 || p.InFlight != 10 || p.Outstanding != 14 || p.Busiest != 0.2 {
		t.Errorf("%+v", p)
	}
	if s := topic.OverTime["publish_latency"][1]; s.Seconds != 4 || s.Count != 80 || s.P50 != 2 || s.Max != 99 {
		t.Errorf("%+v", s)
	}
}

// What the processes have read back of a store adds up, though no ledger knows of it.
func TestWhatIsReadBackAddsUp(t *testing.T) {
	started := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	part := func(instance uint32, confirmed, lost uint64) Part {
		g := Group{Account: account.Account{Group: account.ReadBack, Tally: account.Tally{Expected: confirmed, Drained: confirmed - lost, Missing: lost}, Lost: lost}}
		topic := Topic{
			Driver: "memory", Topic: "metrics", OnlySends: true, ClosedLoop: true, Groups: []Group{g}, Trends: map[string]*hist.Histogram{},
			Counts: counted(map[metric.Counter]int64{metric.Sent: int64(confirmed), metric.Confirmed: int64(confirmed), metric.Unaccounted: int64(confirmed)}),
		}
		r := &Result{Name: "p", Run: 1, Instance: instance, Started: started, Seconds: 1, Topics: []Topic{topic}}
		return Part{Result: r, Ledger: &account.Ledger{Run: 1, Instance: instance}}
	}
	merged, err := Merge([]Part{part(1, 100, 3), part(2, 50, 4)}, Siblings{})
	if err != nil {
		t.Fatal(err)
	}
	topic := merged.Topics[0]
	if !topic.OnlySends || len(topic.Groups) != 1 {
		t.Fatalf("%+v", topic)
	}
	if g := topic.Groups[0]; g.Group != account.ReadBack || g.Expected != 150 || g.Drained != 143 || g.Lost != 7 {
		t.Errorf("%+v", g.Account)
	}
	if total := merged.Total(); !total.OnlySends || total.Groups[0].Group != account.ReadBack || total.Groups[0].Lost != 7 {
		t.Errorf("%+v", total.Groups)
	}
}
