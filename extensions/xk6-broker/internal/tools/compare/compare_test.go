package compare

import (
	"bytes"
	"fmt"
	"html"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/measure"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason"
)

// run is a run of 20000 messages whose e2e latency is exponential around the mean.
func run(name string, mean time.Duration, seed uint64, change ...func(*result.Result)) *result.Result {
	random := rand.New(rand.NewPCG(seed, 1)) // the same numbers each time is what it is for
	h := &hist.Histogram{}
	for range 20_000 {
		h.Record(int64(random.ExpFloat64() * float64(mean)))
	}
	t := result.Topic{
		Broker: "nats://127.0.0.1:4222", Driver: "nats", Topic: "orders", Confirm: "accepted", Proofs: []result.Proof{{Confirm: "accepted", How: "one server"}}, OpenLoop: true,
		Options: result.Uses{"producer": {{"linger": "0s"}}}, Errors: []result.ErrorCount{},
		Counts: map[string]int64{"due": 20000, "sent": 20000, "confirmed": 20000, "received": 20000, "bytes_sent": 2_000_000},
		Spans:  map[string]result.Span{"sent": {Last: 10}, "confirmed": {Last: 10}, "received": {Last: 10}},
		Trends: map[string]*hist.Histogram{"e2e_latency": h}, Groups: []result.Group{{Account: account.Account{Group: "workers", Tally: account.Tally{Expected: 20000, Received: 20000}}}},
	}
	for i := range 10 {
		n := int64(2000)
		t.History = append(t.History, result.Point{At: float64(i + 1), Seconds: 1, Counts: map[string]int64{"due": n, "confirmed": n}})
	}
	r := &result.Result{
		Version: result.Version, Name: name, Seconds: 10, Environment: map[string]string{"k6": "v2.2.0"},
		Topics: []result.Topic{t}, Verdict: result.Verdict{Valid: true},
	}
	verdict.Describe(r)
	for _, f := range change {
		f(r)
	}
	return r
}

func side(name string, runs ...*result.Result) Side { return Side{Name: name, Runs: runs} }

func repeat(name string, n int, mean time.Duration, seed uint64) Side {
	s := Side{Name: name}
	for i := range n {
		// Repetitions differ by 1 % from one to the next, more than one run's own sampling error.
		s.Runs = append(s.Runs, run(fmt.Sprintf("%s-%d", name, i), mean+mean*time.Duration(i)/100, seed+uint64(i)))
	}
	return s
}

func compared(t *testing.T, sides ...Side) *Comparison {
	t.Helper()
	c, err := Compare(sides)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// measured is a measure of the only topic on one side.
func measured(t *testing.T, c *Comparison, name string, side int) cell {
	t.Helper()
	m, err := measure.Parse(name)
	if err != nil {
		t.Fatal(err)
	}
	return c.Topics[0].cells(m)[side]
}

func TestCompare_Differences_MoreThanNoise(t *testing.T) {
	for _, c := range []struct {
		name    string
		a, b    Side
		noise   bool
		tooFew  bool
		p       float64 // of the exact test if every value of one side is above every value of the other: 2/C(n+m, n)
		atLeast float64
		atMost  float64
	}{
		{"a real difference", repeat("a", 4, time.Millisecond, 1), repeat("b", 4, 1200*time.Microsecond, 11), false, false, 2.0 / 70, 1.15, 1.25},
		{"the same", repeat("a", 5, time.Millisecond, 1), repeat("b", 5, time.Millisecond, 21), true, false, 0, 0.97, 1.03},
		{"too few", repeat("a", 3, time.Millisecond, 1), repeat("b", 9, 2*time.Millisecond, 11), false, true, 0, 1.9, 2.2},
		{"the very same", repeat("a", 4, time.Millisecond, 1), repeat("b", 4, time.Millisecond, 1), true, false, 1, 1, 1},
	} {
		cell := measured(t, compared(t, c.a, c.b), "e2e_latency p90", 1)
		if cell.noise() != c.noise || cell.tooFew != c.tooFew || cell.ratio < c.atLeast || cell.ratio > c.atMost {
			t.Errorf("%s: %+v", c.name, cell)
		}
		if c.p != 0 && (cell.p < c.p-1e-9 || cell.p > c.p+1e-9) {
			t.Errorf("%s: p = %v, want %v", c.name, cell.p, c.p)
		}
	}
}

func TestConditions(t *testing.T) {
	lossy := func(r *result.Result) { r.Topics[0].Groups[0].Lost = 3 }
	unread := func(r *result.Result) { r.Topics[0].Groups = nil }
	single := compared(t, side("a", run("a", time.Millisecond, 1)), side("b", run("b", 2*time.Millisecond, 2, lossy)))
	same := compared(t, repeat("a", 4, time.Millisecond, 1), repeat("b", 4, 1001*time.Microsecond, 30))
	unseen := compared(t, side("a", run("a", time.Millisecond, 1)), side("b", run("b", time.Millisecond, 2, unread)))
	for _, c := range []struct {
		comparison *Comparison
		text       string
		failed     bool
		why        string
	}{
		{single, "e2e_latency p99 > 1.1x", true, "cannot be known"},
		{single, "broker_e2e_latency p99 > 3x", false, "x ("},
		{single, "e2e_latency p50 > 1ms", true, "ms"},
		{single, "e2e_latency p50 > 1s", false, ""},
		{single, "e2e_latency max >= 1h", false, ""},
		{single, "e2e_latency mean < 1ms", false, ""},
		{single, "e2e_latency p99.99 > 1s", true, "do not support p99.99"},
		{single, "publish_latency p50 > 1s", true, "no publish_latency was measured"},
		{single, "lost > 0", true, "3"},
		{single, "lost > 1x", true, "cannot be decided"},
		{single, "duplicated > 0", false, "0"},
		{single, "confirmed rate < 0.9x", false, "1x"},
		{single, "confirmed rate < 1999", false, "2000/s"},
		{single, "confirmed rate <= 2000", true, "2000/s"},
		{same, "e2e_latency p50 > 0.5x", false, "within noise"},
		{unseen, "lost > 0", true, "nothing was received"},
	} {
		cond, err := ParseCondition(c.text)
		if err != nil {
			t.Error(err)
			continue
		}
		findings := c.comparison.Decide(cond)
		if len(findings) != 1 || findings[0].Failed != c.failed || !strings.Contains(findings[0].Text, c.why) {
			t.Errorf("%s: %+v, want failed %v and %q", c.text, findings, c.failed, c.why)
		}
	}
}

func parsed(t *testing.T, text string) Condition {
	t.Helper()
	c, err := ParseCondition(text)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A 0 that nobody saw passes no condition, be it in one repetition of many.
func TestLossThatWasNotObservedDecidesNothing(t *testing.T) {
	group := func(change func(*result.Group)) func(*result.Result) {
		return func(r *result.Result) { change(&r.Topics[0].Groups[0]) }
	}
	counts := func(c recording.Counter) func(*result.Result) {
		return func(r *result.Result) { r.Topics[0].Counts[c.String()] = 5 }
	}
	for want, change := range map[string]func(*result.Result){
		"nothing was received":                       func(r *result.Result) { r.Topics[0].Groups = nil },
		"5 messages are uncertain":                   group(func(g *result.Group) { g.Uncertain = 5 }),
		"no message was expected":                    group(func(g *result.Group) { g.Expected = 0 }),
		"5 messages are in no account (aliased)":     counts(recording.Aliased),
		"5 messages are in no account (unaccounted)": counts(recording.Unaccounted),
		": 3": group(func(g *result.Group) { g.Lost = 3 }),
	} {
		unlike := run("b", time.Millisecond, 3, change)
		for _, b := range []Side{side("b", unlike), side("b", run("b", time.Millisecond, 2), unlike, run("b", time.Millisecond, 4))} {
			found := compared(t, side("a", run("a", time.Millisecond, 1)), b).Decide(parsed(t, "lost > 0"))
			if len(found) != 1 || !found[0].Failed || !strings.Contains(found[0].Text, want) {
				t.Errorf("%d runs: %+v, want %q", len(b.Runs), found, want)
			}
		}
	}
}

// What speaks against a percentile has a direction: a limit that it keeps decides nothing where the truth may be beyond it.
func TestAPercentileThatIsNotBelievedPassesNoCondition(t *testing.T) {
	failing := func(r *result.Result) {
		topic := &r.Topics[0]
		topic.Errors = []result.ErrorCount{{Op: "send", Kind: "timeout", Count: 20}}
		topic.Counts["confirmed"] -= 20
		verdict.Describe(r)
	}
	late := func(r *result.Result) {
		lag := &hist.Histogram{}
		lag.RecordN(int64(20*time.Millisecond), 20_000)
		r.Topics[0].Trends["generator_lag"] = lag
		verdict.Describe(r)
	}
	sound := side("a", run("a", 40*time.Millisecond, 1))
	for _, c := range []struct {
		first, other Side
		text         string
		failed       bool
		why          string
	}{
		{sound, side("b", run("b", 40*time.Millisecond, 2, failing)), "e2e_latency p99.9 > 5s", true, "cannot be decided: 2"},
		{sound, side("b", run("b", 40*time.Millisecond, 2, failing)), "e2e_latency p99.9 > 5s", true, "0.100 % of the values, the greatest, are missing"},
		{sound, side("b", run("b", 40*time.Millisecond, 2, failing)), "e2e_latency max > 5s", true, "are missing"},
		{sound, side("b", run("b", 40*time.Millisecond, 2), run("c", 40*time.Millisecond, 3, failing)), "e2e_latency max > 5s", true, "are missing"},
		{sound, side("b", run("b", 40*time.Millisecond, 2, failing)), "e2e_latency p90 > 5s", false, ""},
		{sound, side("b", run("b", 40*time.Millisecond, 2, failing)), "e2e_latency mean > 5s", false, ""},
		{sound, side("b", run("b", 40*time.Millisecond, 2, failing)), "e2e_latency p99.9 < 1ms", false, ""},
		{sound, side("b", run("b", 40*time.Millisecond, 2, failing)), "e2e_latency p99.9 > 5x", true, "are missing"},
		{side("a", run("a", 40*time.Millisecond, 1, failing)), side("b", run("b", 40*time.Millisecond, 2)), "e2e_latency p99.9 > 5x", false, ""},
		{side("a", run("a", 40*time.Millisecond, 1, failing)), side("b", run("b", 40*time.Millisecond, 2)), "e2e_latency p99.9 < 0.1x", true, "on the first side 0.100 %"},
		{sound, side("b", run("b", 40*time.Millisecond, 2, late)), "e2e_latency p90 > 5s", false, ""},
		{sound, side("b", run("b", 40*time.Millisecond, 2, late)), "e2e_latency p90 < 1ms", true, "is delay"},
		{side("a", run("a", 40*time.Millisecond, 1, late)), side("b", run("b", 40*time.Millisecond, 2)), "e2e_latency p90 > 5x", true, "on the first side up to"},
		{sound, side("b", run("b", 40*time.Millisecond, 2, func(r *result.Result) { r.Topics[0].Counts["received"] = 0 })), "corrupted > 0", true, "nothing was received"},
		{sound, side("b", run("b", 40*time.Millisecond, 2)), "corrupted > 0", false, "0"},
	} {
		found := compared(t, c.first, c.other).Decide(parsed(t, c.text))
		if len(found) != 1 || found[0].Failed != c.failed || !strings.Contains(found[0].Text, c.why) {
			t.Errorf("%s: %+v, want failed %v and %q", c.text, found, c.failed, c.why)
		}
	}
	if found := parsed(t, "e2e_latency max > 5s").Judge(run("whole", 40*time.Millisecond, 1, failing)); len(found) != 1 || !found[0].Failed {
		t.Errorf("of one result: %+v", found)
	}
}

// A topic that not all runs have stands in no table, and a condition is tried on it all the same.
func TestConditionsOnATopicThatNotAllRunsHave(t *testing.T) {
	also := func(name string, lost uint64) func(*result.Result) {
		return func(r *result.Result) {
			other := run("", time.Millisecond, 9).Topics[0]
			other.Topic = name
			other.Groups[0].Lost = lost
			r.Topics = append(r.Topics, other)
		}
	}
	one := func(name string, change ...func(*result.Result)) *result.Result {
		return run(name, time.Millisecond, 1, change...)
	}
	for name, c := range map[string]struct {
		sides []Side
		text  string
		want  []string // of the findings on that topic, all of which fail but those that begin with "passes "
	}{
		"new, and bad":          {[]Side{side("a", one("a")), side("b", one("b", also("new", 3)))}, "lost > 0", []string{"new, b: 3"}},
		"new, and fine":         {[]Side{side("a", one("a")), side("b", one("b", also("new", 0)))}, "lost > 0", []string{"passes new, b: 0"}},
		"new, and a multiple":   {[]Side{side("a", one("a")), side("b", one("b", also("new", 0)))}, "e2e_latency p50 > 9x", []string{"new, b: cannot be decided: on the first side the topic is not in all of its runs"}},
		"vanished":              {[]Side{side("a", one("a", also("old", 0))), side("b", one("b"))}, "lost > 0", []string{"old, b: cannot be decided: the topic is not in all of its runs"}},
		"in one of two runs":    {[]Side{side("a", one("a")), side("b", one("b", also("new", 0)), one("c"))}, "lost > 0", []string{"new, b: cannot be decided: the topic is not in all of its runs"}},
		"new on one other side": {[]Side{side("a", one("a")), side("b", one("b")), side("c", one("c", also("new", 3)))}, "lost > 0", []string{"new, b: cannot be decided", "new, c: 3"}},
	} {
		comparison := compared(t, c.sides...)
		var got []string
		for _, f := range comparison.Decide(parsed(t, c.text)) {
			if strings.HasPrefix(f.Text, "orders") {
				continue
			}
			if !f.Failed {
				f.Text = "passes " + f.Text
			}
			got = append(got, f.Text)
		}
		if len(got) != len(c.want) || !strings.HasPrefix(got[0], c.want[0]) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		if len(comparison.Topics) != 2 || len(comparison.Topics[1].Table.Rows) != 0 || len(comparison.Warnings) == 0 {
			t.Errorf("%s: %d topics, %q", name, len(comparison.Topics), comparison.Warnings)
		}
	}
}

func TestConditionsOnOneResult(t *testing.T) {
	lossy := run("a", time.Millisecond, 1, func(r *result.Result) { r.Topics[0].Groups[0].Lost = 3 })
	for text, want := range map[string]Finding{
		"lost > 0":               {Failed: true, Text: "orders: 3"},
		"lost > 3":               {Text: "orders: 3"},
		"duplicated > 0":         {Text: "orders: 0"},
		"e2e_latency p50 > 50ms": {Text: "µs"},
		"e2e_latency p50 > 1us":  {Failed: true, Text: "orders: "},
		"settle_time p50 > 50ms": {Failed: true, Text: "cannot be decided: no settle_time was measured"},
	} {
		found := parsed(t, text).Judge(lossy)
		if len(found) != 1 || found[0].Failed != want.Failed || !strings.Contains(found[0].Text, want.Text) {
			t.Errorf("%s: %+v, want %+v", text, found, want)
		}
	}
	if found := parsed(t, "lost > 0").Judge(&result.Result{}); len(found) != 1 || !found[0].Failed {
		t.Errorf("of nothing: %+v", found)
	}
	if parsed(t, "lost > 3").Relative() || !parsed(t, "lost > 3x").Relative() {
		t.Error("only a multiple is relative")
	}
}

func TestRunsThatAreNotValidAreNamed(t *testing.T) {
	bad := run("b-2", time.Millisecond, 2, func(r *result.Result) {
		r.Verdict = result.Verdict{Reasons: []reason.Reason{reason.New(reason.NothingReceived, reason.Invalid, nil), reason.New(reason.ClosedLoop, reason.Note, nil), reason.New(reason.Drained, reason.Invalid, nil)}}
	})
	found := compared(t, side("a", run("a", time.Millisecond, 1)), side("b", run("b-1", time.Millisecond, 3), bad)).Invalid()
	if len(found) != 1 || !found[0].Failed || !strings.Contains(found[0].Text, "b, run 2 (b-2): nothing-received, drained (--allow") {
		t.Errorf("%+v", found)
	}
}

func TestConditionsThatAreNotUnderstoodSayWhy(t *testing.T) {
	for text, want := range map[string]string{
		"":                        "not understood",
		"e2e_latency p99":         "not understood",
		"e2e_latency p99 > 1 y":   "not understood",
		"e2e_latency p99 = 1x":    "not understood",
		"latency p99 > 1x":        `no "latency p99"`,
		"e2e_latency p0 > 1x":     "another percentile",
		"e2e_latency p999 > 1x":   "another percentile",
		"e2e_latency q99 > 1x":    `"q99" is not`,
		"e2e_latency > 1x":        `"" is not`,
		"e2e_latency p99 > 1.1":   "no duration",
		"e2e_latency p99 > -1s":   "no duration",
		"e2e_latency p99 > -1x":   "no multiple",
		"e2e_latency p99 > NaNx":  "no multiple",
		"lost p99 > 0":            `no "lost p99"`,
		"lost > 1s":               "no number",
		"confirmed p99 > 5":       `no "confirmed p99"`,
		"confirmed rate > 5s":     "no number",
		"lost > 0 and errors > 0": "not understood",
		"confirmed rate < NaN":    "no number",
	} {
		if _, err := ParseCondition(text); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "condition") {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
}

func FuzzCondition(f *testing.F) {
	for _, text := range []string{"e2e_latency p99 > 1.1x", "lost > 0", "confirmed rate <= 2000", "e2e_latency p99.9 < 5ms"} {
		f.Add(text)
	}
	c, err := Compare([]Side{side("a", run("a", time.Millisecond, 1)), side("b", run("b", time.Millisecond, 2))})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if cond, err := ParseCondition(text); err == nil && len(c.Decide(cond)) != 1 {
			t.Error("not decided")
		}
	})
}

func TestWhatDiffersBesidesTheResultsIsSaid(t *testing.T) {
	scenario := func(r *result.Result, s ...result.Scenario) { r.Test = result.Test{Script: "orders.js", Scenarios: s} }
	produce := result.Scenario{Name: "produce", Executor: "open-arrival-rate", VUs: 50, MaxVUs: 50, Options: map[string]any{"rate": 500.0, "duration": "10s"}}
	first := run("a", time.Millisecond, 1, func(r *result.Result) { scenario(r, produce) })
	other := run("b", time.Millisecond, 2, func(r *result.Result) {
		r.Environment["k6"] = "v2.3.0"
		r.Topics[0].Options["producer"][0]["linger"] = "10ms"
		r.Topics[0].Counts["bytes_sent"] = 20_000_000
		r.Verdict = result.Verdict{Reasons: []reason.Reason{reason.New(reason.NothingReceived, reason.Invalid, nil)}}
		faster := produce
		faster.MaxVUs, faster.Options = 200, map[string]any{"rate": 1000.0, "duration": "10s"}
		scenario(r, faster, result.Scenario{Name: "probe", Executor: "constant-vus", Exec: "ask", VUs: 1, MaxVUs: 1, Options: map[string]any{"duration": "5s"}})
	})
	c := compared(t, side("a", first), side("b", other, run("b", time.Millisecond, 3, func(r *result.Result) { scenario(r, produce) })))
	want := map[string]string{
		"k6": "v2.2.0, v2.3.0 / v2.2.0", "producer linger": "0s, 10ms / 0s",
		"scenario produce rate": "500, 1000 / 500", "scenario produce VUs": "50 to 50, 50 to 200 / 50 to 50",
		"scenario probe VUs": "–, 1 to 1 / –", "scenario probe duration": "–, 5s / –",
		"scenario probe executor": "–, constant-vus / –", "scenario probe function": "–, ask / –",
	}
	for _, table := range []report.Table{c.Tested, c.Circumstances} {
		for _, row := range table.Rows {
			if got := row.Cells[0].Text + ", " + row.Cells[1].Text; got != want[row.Name] {
				t.Errorf("%s: %q, want %q", row.Name, got, want[row.Name])
			}
			delete(want, row.Name)
		}
	}
	if len(want) > 0 || len(c.Circumstances.Rows) != 1 {
		t.Errorf("not noticed: %v", want)
	}
	if all := strings.Join(c.Warnings, "\n"); !strings.Contains(all, "b, run 1 (b) is not valid: nothing-received") || !strings.Contains(all, "not the same tests") {
		t.Error(all)
	}
}

// A significant change between equal tests is better or worse.
func TestTable_Change_BetterOrWorseBetweenEqualTests(t *testing.T) {
	linger := func(s Side) Side {
		for _, r := range s.Runs {
			r.Topics[0].Options["producer"][0]["linger"] = "10ms"
		}
		return s
	}
	fast, slow := repeat("a", 4, time.Millisecond, 1), repeat("b", 4, 2*time.Millisecond, 9)
	for name, c := range map[string]struct {
		a, b        Side
		text, class string
	}{
		"slower":          {fast, slow, " % p=0.029", "bad"},
		"faster":          {slow, fast, " % p=0.029", "good"},
		"noise":           {fast, repeat("b", 4, time.Millisecond, 21), " ~", ""},
		"too few to tell": {side("a", fast.Runs[0]), side("b", slow.Runs[0]), " % ?", ""},
		"of another test": {fast, linger(repeat("b", 4, 2*time.Millisecond, 9)), " % p=0.029", ""},
		"equal in all":    {fast, fast, "=", ""},
	} {
		table := compared(t, c.a, c.b).Topics[0].Table
		i := slices.IndexFunc(table.Rows, func(r report.Row) bool { return r.Name == "e2e_latency p90" })
		if cell := table.Rows[i].Cells[2]; !strings.Contains(cell.String(), c.text) || cell.Class != c.class {
			t.Errorf("%s: %+v", name, cell)
		}
	}
}

// First what a run is about, last what was asked for.
func TestTheOrderOfTheTable(t *testing.T) {
	var names []string
	for _, m := range measures() {
		if len(names) == 0 || names[len(names)-1] != m.Name {
			names = append(names, m.Name)
		}
	}
	first, last := names[:5], names[len(names)-1]
	if strings.Join(first, " ") != "e2e_latency publish_latency request_latency confirmed received" || last != "generator_lag" {
		t.Error(names)
	}
}

func TestLoad_NamedFolders_AreRepetitions(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"old-1", "old-2", "new-20260301T120000Z", "new-20260301T120100Z-2", "x"} {
		if err := (report.Folder{Dir: dir, Name: name}).Write(run(name, time.Millisecond, 1), nil); err != nil {
			t.Fatal(err)
		}
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{at("old-1"), at("old-2") + "/"}, "old-1:1 old-2:1"},
		{[]string{"old=" + at("old-1") + "," + at("old-2"), at("x")}, "old:2 x:1"},
		{[]string{"a=" + at("old-1") + "," + at("x"), "b=" + at("old-2")}, "a:2 b:1"},
	} {
		sides, err := Load(c.args, "")
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range sides {
			got = append(got, fmt.Sprintf("%s:%d", s.Name, len(s.Runs)))
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%v: %v, want %s", c.args, got, c.want)
		}
	}
	for _, args := range [][]string{{at("x")}, {at("x"), at("nothing")}, {"=", at("x")}} {
		if _, err := Load(args, ""); err == nil {
			t.Errorf("%v was accepted", args)
		}
	}
}

func TestTheTableAndThePageSayTheSame(t *testing.T) {
	c := compared(t, repeat("old", 4, time.Millisecond, 1), repeat("new</h1>", 4, 2*time.Millisecond, 9))
	cond, err := ParseCondition("e2e_latency p99 > 1.1x")
	if err != nil {
		t.Fatal(err)
	}
	var text, page bytes.Buffer
	if err := c.Text(&text); err != nil {
		t.Fatal(err)
	}
	if err := c.HTML(&page, c.Decide(cond)); err != nil {
		t.Fatal(err)
	}
	for _, row := range c.Topics[0].Table.Rows {
		for _, cell := range row.Cells {
			if shown := cell.String(); !strings.Contains(text.String(), shown) || !strings.Contains(html.UnescapeString(page.String()), ">"+shown+"<") {
				t.Errorf("%s: no %q", row.Label, shown)
			}
		}
	}
	for _, want := range []string{"✗ Failed", "p=0.029", "new&lt;/h1&gt;", `"label":"old (4 runs)"`} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("no %q in the page", want)
		}
	}
	if strings.Contains(page.String(), "new</h1>") {
		t.Error("a name became markup")
	}
}

// Where a phase is named the runs are compared as they were in it; one that has no such phase is refused, with those that it has.
func TestRunsAreComparedInAPhase(t *testing.T) {
	dir := t.TempDir()
	phased := func(mean time.Duration) func(*result.Result) {
		return func(r *result.Result) {
			h := &hist.Histogram{}
			h.RecordN(int64(mean), 5000)
			r.Phases = []result.Phase{{Name: "measured", Stretches: []result.Stretch{{From: 5, To: 10}}, Seconds: 5}}
			r.Topics[0].Phases = map[string]result.Window{"measured": {
				Counts: map[string]int64{"due": 10000, "confirmed": 10000}, Trends: map[string]*hist.Histogram{"e2e_latency": h},
				Groups: []result.WindowGroup{{Group: "workers", Received: 5000, Trends: map[string]*hist.Histogram{"e2e_latency": h}}},
			}}
		}
	}
	var folders []string
	for name, mean := range map[string]time.Duration{"before": 2 * time.Millisecond, "later": 4 * time.Millisecond} {
		f := report.Folder{Dir: dir, Name: name}
		if err := f.Write(run(name, time.Millisecond, 1, phased(mean)), nil); err != nil {
			t.Fatal(err)
		}
		folders = append(folders, name+"="+f.Path())
	}
	slices.Sort(folders)
	for phase, crossed := range map[string]bool{"": false, "measured": true} {
		sides, err := Load(folders, phase)
		if err != nil {
			t.Fatal(err)
		}
		c, err := Compare(sides)
		if err != nil {
			t.Fatal(err)
		}
		cond, err := ParseCondition("e2e_latency p99 > 1.5x")
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range c.Decide(cond) {
			if f.Failed != crossed {
				t.Errorf("phase %q: %+v", phase, f)
			}
		}
	}
	if _, err := Load(folders, "peak"); err == nil || !strings.Contains(err.Error(), `has no phase "peak": it has measured`) {
		t.Errorf("a phase that was not: %v", err)
	}
}
