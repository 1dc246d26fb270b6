package sweep

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/measure"
)

func columnsOf(t *testing.T, names ...string) (all []measure.Measure) {
	t.Helper()
	for _, name := range names {
		m, err := measure.Parse(name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
	}
	return all
}

// measured is the result of a run that had such a rate and such a latency.
func measured(rate, latency float64) *result.Result {
	h := &hist.Histogram{}
	h.RecordN(int64(latency), 1000)
	topic := result.Topic{
		Topic: "orders", OpenLoop: true, Counts: map[string]int64{"sent": 30_000, "confirmed": 30_000}, Trends: map[string]*hist.Histogram{"publish_latency": h},
		Options: result.Uses{}, Errors: []result.ErrorCount{}, Groups: []result.Group{},
	}
	topic.Proves(result.Proof{Confirm: "accepted"})
	topic.Spans = map[string]result.Span{"confirmed": {Last: 30_000 / rate}}
	r := &result.Result{Version: result.Version, Seconds: 5, Topics: []result.Topic{topic}}
	r.Verdict.Valid = true
	r.Describe()
	return r
}

// rowsOf are the rows of cells of which the n-th, from 0, gives such a result.
func rowsOf(cells []Cell, columns []measure.Measure, run func(n int, c Cell) *result.Result) (rows []Row) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for n, c := range cells {
		at := start.Add(time.Duration(n) * time.Minute)
		rows = append(rows, NewRow(Outcome{Cell: c, Result: run(n, c), Started: at, Ended: at.Add(time.Minute)}, columns))
	}
	return rows
}

// slower is a broker that is one percent slower in each cell, whatever its settings.
func slower(n int, _ Cell) *result.Result {
	return measured(10_000/math.Pow(1.01, float64(n)), 1e6*math.Pow(1.01, float64(n)))
}

// lastAgainstOthers is how much slower the last combination looks than the others do.
func lastAgainstOthers(p Plan, columns []measure.Measure, rows []Row) float64 {
	groups, _ := GroupsOf(p.Combinations(), columns, rows)
	entries := groups[0].Entries
	sum := 0.0
	for _, e := range entries[:len(entries)-1] {
		sum += e.Columns[0].Median
	}
	return entries[len(entries)-1].Columns[0].Median / (sum / float64(len(entries)-1))
}

// A broker that gets slower all the time does not make the last setting look slow, and the study says that something drifted. The same cells in the order
// of their settings do make it look slow: that is what the order of the plan is for.
func TestDriftIsNoEffect(t *testing.T) {
	columns := columnsOf(t, "publish_latency p50", "confirmed rate")
	for seed := range uint64(200) {
		p := planOf(t, 8, seed, "SIZE=1,2,3,4,5,6")
		rows := rowsOf(p.Cells(), columns, slower)
		if by := lastAgainstOthers(p, columns, rows); by > 1.06 || by < 0.94 {
			t.Errorf("seed %d: the last setting looks %.3g times as slow as the others", seed, by)
		}
		d := DriftOf(columns, rows)
		if len(d.Findings) != 2 || !strings.Contains(d.Findings[1], "publish_latency p50 grew by") || !strings.Contains(d.Findings[0], "confirmed rate fell by") {
			t.Errorf("seed %d: %+v", seed, d)
		}
	}
	p := planOf(t, 8, 1, "SIZE=1,2,3,4,5,6")
	cells := p.Cells()
	slices.SortStableFunc(cells, func(a, b Cell) int { return strings.Compare(a.Settings.String(), b.Settings.String()) })
	if by := lastAgainstOthers(p, columns, rowsOf(cells, columns, slower)); by < 1.2 {
		t.Errorf("in the order of their settings the last looks %.3g times as slow: this test would not notice", by)
	}
}

// Where only settings matter, and noise, nothing is said to have drifted; of a hundred studies, at most one.
func TestNoiseIsNoDrift(t *testing.T) {
	columns := columnsOf(t, "publish_latency p50", "confirmed rate")
	found := 0
	const studies = 300
	for seed := range uint64(studies) {
		random := rand.New(rand.NewPCG(seed, 7))
		p := planOf(t, 5, seed, "SIZE=1,10,100")
		rows := rowsOf(p.Cells(), columns, func(_ int, c Cell) *result.Result {
			effect := float64(len(c.Settings.Of("SIZE")))
			return measured(5000/effect*(1+0.1*random.Float64()), 1e6*effect*(1+0.3*random.Float64()))
		})
		found += len(DriftOf(columns, rows).Findings)
	}
	if found > studies/100 {
		t.Errorf("%d findings in %d studies in which nothing drifts", found, studies)
	}
	p := planOf(t, 10, 3, "SIZE=1,10,100")
	rows := rowsOf(p.Cells(), columns, func(n int, _ Cell) *result.Result {
		latency := 1e6 * (1 + float64(n%4)/100)
		if n >= 12 {
			latency *= 2
		}
		return measured(1000, latency)
	})
	d := DriftOf(columns, rows)
	if len(d.Findings) != 1 || !strings.Contains(d.Findings[0], "publish_latency p50 grew by") {
		t.Errorf("%+v", d)
	}
	for _, repeat := range []int{1, 3} {
		p := planOf(t, repeat, 1, "SIZE=1,2,3")
		if d := DriftOf(columns, rowsOf(p.Cells(), columns, slower)); d.Unknown == "" || len(d.Findings) > 0 {
			t.Errorf("%d repetitions: %+v", repeat, d)
		}
	}
}
