package report_test

import (
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict"
)

// The results of a day, and of any other length, are small: as many intervals as there may be, of every trend, with distributions as wide
// as they come.
func TestResultsOfADayAreSmall(t *testing.T) {
	if testing.Short() {
		t.Skip("part of make test-full")
	}
	r := stalled()
	r.Topics = r.Topics[:1]
	topic := &r.Topics[0]
	random := rand.New(rand.NewPCG(1, 2)) // the same numbers each time is what it is for
	wide := func() *hist.Histogram {
		h := &hist.Histogram{}
		for range 100_000 {
			h.RecordN(int64(1e6*math.Exp(2*random.NormFloat64())), 4320) // a day at 5,000 a second
		}
		return h
	}
	topic.History, topic.OverTime, topic.Trends = nil, map[string][]result.Summary{}, map[string]*hist.Histogram{}
	measured := []recording.Trend{
		recording.PublishLatency, recording.PublishTime, recording.E2ELatency, recording.E2ETime, recording.DeliveryWait, recording.ScheduleLag, recording.GeneratorLag, recording.SettleTime,
	}
	const length = 256.0
	for n := range 640 {
		p := result.Point{
			At: length * float64(n+1) * 1.0000001, Seconds: length * 1.0000001, Counts: map[string]int64{}, Errors: 7, ErrorKinds: map[string]int64{"timeout": 7},
			InFlight: random.Int64N(1e4), Outstanding: random.Uint64N(1e5), CPU: random.Float64(), Busiest: random.Float64(),
			Backlog: map[string]int64{"audit": random.Int64N(1e5), "orders": random.Int64N(1e5)},
		}
		for _, name := range []string{"due", "sent", "confirmed", "received", "acked", "bytes_sent", "bytes_received"} {
			p.Counts[name] = 1e6 + random.Int64N(1e6)
		}
		topic.History = append(topic.History, p)
	}
	for _, trend := range measured {
		name := trend.String()
		topic.Trends[name] = wide()
		for _, p := range topic.History {
			topic.OverTime[name] = append(topic.OverTime[name], result.Summary{
				At: p.At, Seconds: p.Seconds, Count: 1_280_000, P50: random.Int64N(1e7), P90: random.Int64N(1e8), P99: random.Int64N(1e9),
				P999: random.Int64N(1e9), Max: random.Int64N(1e10),
			})
		}
	}
	group := topic.Groups[0]
	topic.Groups = nil
	for _, name := range []string{"audit", "orders"} {
		group.Group, group.Trends = name, map[string]*hist.Histogram{}
		for _, trend := range []recording.Trend{recording.E2ELatency, recording.E2ETime, recording.DeliveryWait, recording.SettleTime} {
			group.Trends[trend.String()] = wide()
		}
		topic.Groups = append(topic.Groups, group)
	}
	verdict.Describe(r)
	folder := report.Folder{Dir: t.TempDir(), Name: "day"}
	if err := folder.Write(r, nil); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{report.SummaryFile, report.PageFile} {
		info, err := os.Stat(filepath.Join(folder.Path(), name))
		if err != nil {
			t.Fatal(err)
		}
		if t.Logf("%s: %d KiB", name, info.Size()>>10); info.Size() >= 2<<20 {
			t.Errorf("%s has %d KiB", name, info.Size()>>10)
		}
	}
}
