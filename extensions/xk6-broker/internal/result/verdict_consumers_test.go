package result

import (
	"slices"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/metric"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/track"
)

// What is outstanding says nothing of consumers that were not there, had it lost, or are of another process.
func TestOutstandingThatNoConsumerIsToBlameFor(t *testing.T) {
	history := func(outstanding []uint64, received func(i int) int64) (all []Point) {
		for i, n := range outstanding {
			all = append(all, Point{At: float64(i + 1), Seconds: 1, Outstanding: n, Counts: counted(map[metric.Counter]int64{metric.Sent: 100, metric.Received: received(i)})})
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
		topic := Topic{History: c.history, Alone: !c.shared, Groups: only(Account{Lost: c.lost})}
		if n, length := topic.fellBehind(); n != c.want || length != float64(c.want)/100 {
			t.Errorf("%s: %d, %v s, want %d", name, n, length, c.want)
		}
	}
}

// What comes again unasked, while messages wait in the client, is told of: the broker lends them for less than that.
func TestLentForTooShort(t *testing.T) {
	for name, c := range map[string]struct {
		wait     int64
		requeued int64
		again    uint64
		noted    bool
	}{
		"lent for too short":   {3e9, 0, 400, true},
		"given back":           {3e9, 390, 400, false},
		"a few":                {3e9, 0, 50, false},
		"nothing waited for":   {1e6, 0, 400, false},
		"more back than again": {3e9, 500, 400, false},
	} {
		wait := &hist.Histogram{}
		for range 1000 {
			wait.Record(c.wait)
		}
		topic := Topic{Topic: "t", Counts: counted(map[metric.Counter]int64{metric.Requeued: c.requeued}), Groups: []Group{{
			Account: Account{Tally: track.Tally{Received: 1000, Redelivered: c.again}}, Trends: map[string]*hist.Histogram{metric.DeliveryWait.String(): wait},
		}}}
		var v Verdict
		topic.judgeRepeats(&v, &topic.Groups[0])
		if noted := len(v.Notes) == 1; noted != c.noted {
			t.Errorf("%s: %v", name, v.Notes)
		}
	}
}
