package verdict

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason/reasontest"
)

// windowed is a run of 20 s of warm-up and 60 s that are measured, at 1,000 messages a second or what rate says; level is that of the median in
// each second, which is noisy.
func windowed(seed uint64, level func(second int) float64, rate func(second int) int64) *result.Result {
	random := rand.New(rand.NewPCG(seed, 3))
	t := result.Topic{
		Topic: "orders", OpenLoop: true, Confirm: "accepted", Counts: map[string]int64{"sent": 80000, "confirmed": 80000}, Trends: map[string]*hist.Histogram{}, OverTime: map[string][]result.Summary{},
		Phases: map[string]result.Window{result.WarmUp: {}, result.Measure: {Counts: map[string]int64{"sent": 60000, "confirmed": 60000}}},
	}
	for s := range 80 {
		n := rate(s)
		t.History = append(t.History, result.Point{At: float64(s + 1), Seconds: 1, Counts: map[string]int64{"due": n, "confirmed": n}})
		p50 := int64(1e6 * level(s) * (1 + 0.03*random.NormFloat64()))
		t.OverTime["publish_latency"] = append(t.OverTime["publish_latency"], result.Summary{
			At: float64(s + 1), Seconds: 1, Count: uint64(n), P50: p50, P90: 2 * p50, P99: int64(5e6 * (1 + 0.1*random.NormFloat64())), Max: 1e7,
		})
	}
	r := &result.Result{
		Topics: []result.Topic{t}, Leading: result.Measure,
		Phases: []result.Phase{{Name: result.WarmUp, Stretches: []result.Stretch{{From: 0, To: 20}}, Seconds: 20}, {Name: result.Measure, Stretches: []result.Stretch{{From: 20, To: 80}}, Seconds: 60}},
	}
	Judge(r, Circumstances{})
	return r
}

func unsteadyNotes(r *result.Result) (all []reason.Reason) {
	for _, n := range r.Verdict.Notes() {
		if n.Code == reason.NotStationary {
			all = append(all, n)
		}
	}
	return all
}

func steady(int) float64    { return 1 }
func thousand(int) int64    { return 1000 }
func warming(s int) float64 { return 1 + 9*math.Exp(-float64(s)/4) }

// A window in which a latency or the rate changed has a note of what changed, and by how much; its numbers are no less valid.
func TestAWindowThatIsNotStationaryIsNoted(t *testing.T) {
	for name, c := range map[string]struct {
		level func(int) float64
		rate  func(int) int64
		want  string // of the note
	}{
		"steady":           {steady, thousand, ""},
		"only the warm-up": {warming, thousand, ""},
		"a trend":          {func(s int) float64 { return 1 + float64(s-20)/120 }, thousand, "topic=orders course=the_p50_of_publish_latency way=grew"},
		"a change":         {func(s int) float64 { return 1 + 0.5*float64(s/60) }, thousand, "course=the_p50_of_publish_latency way=grew"},
		"better":           {func(s int) float64 { return 1 - 0.3*float64(s/50) }, thousand, "course=the_p50_of_publish_latency way=fell"},
		"the rate": {
			steady, func(s int) int64 { return 2000 - 500*int64(s/50) }, "", // the rate that was due fell
		},
	} {
		r := windowed(1, c.level, c.rate)
		notes := unsteadyNotes(r)
		if len(notes) != min(1, len(c.want)) || c.want != "" && !reasontest.Has(notes, c.want) || reasontest.Has(r.Verdict.Invalid(), "not-stationary") {
			t.Errorf("%s: %q, want %q", name, reasontest.Codes(notes), c.want)
		}
	}
}

// Of a thousand windows in which nothing changes, no more than one in a hundred is said to have, however much is looked at in each; of those that
// have a trend nearly all.
func TestFewStationaryWindowsAreNoted(t *testing.T) {
	if testing.Short() {
		t.Skip("part of make test-full")
	}
	steadyOnes, trends := 0, 0
	for seed := range uint64(1000) {
		steadyOnes += min(1, len(unsteadyNotes(windowed(seed, steady, thousand))))
		trends += min(1, len(unsteadyNotes(windowed(seed, func(s int) float64 { return 1 + float64(s-20)/400 }, thousand))))
	}
	if steadyOnes > 15 || trends < 950 {
		t.Errorf("%d of 1000 steady ones, and %d of 1000 that grew by 15 %%", steadyOnes, trends)
	}
}

// Without a phase that leads, with too few intervals, or with medians that their samples do not support, nothing is said.
func TestNothingIsSaidOfWhatCannotBeTold(t *testing.T) {
	growing := func(s int) float64 { return 1 + float64(s) }
	whole := windowed(1, growing, thousand)
	whole.Leading = ""
	Judge(whole, Circumstances{})
	short := windowed(1, growing, thousand)
	short.Phases[1].Stretches[0].To = 33
	Judge(short, Circumstances{})
	for name, r := range map[string]*result.Result{"the whole": whole, "13 intervals, of which two are not whole": short, "ten messages a second": windowed(1, growing, func(int) int64 { return 10 })} {
		if notes := unsteadyNotes(r); len(notes) != 0 {
			t.Errorf("%s: %q", name, reasontest.Codes(notes))
		}
	}
}
