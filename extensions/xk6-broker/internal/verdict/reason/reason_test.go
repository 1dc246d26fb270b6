package reason

import (
	"encoding/json"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestTable_AtMostThirtyCodes_EachWithItsRow(t *testing.T) {
	if len(table) > 30 {
		t.Errorf("%d codes; the limit is 30", len(table))
	}
	kebab := regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`)
	for code, e := range table {
		if e.Level == "" || len(e.Variants) == 0 || e.Cause == "" || !kebab.MatchString(string(code)) {
			t.Errorf("%s: %+v", code, e)
		}
		for _, v := range e.Variants {
			for _, remedy := range []string{v.Remedy, e.Remedy} {
				if remedy != "" && !strings.HasSuffix(remedy, ".") {
					t.Errorf("%s %s: the remedy %q is no sentence", code, v.Why, remedy)
				}
			}
			if strings.HasSuffix(v.Text, ".") {
				t.Errorf("%s %s: the text %q ends with a full stop", code, v.Why, v.Text)
			}
		}
	}
}

func failed(process string, count, of int) Reason {
	r := New(SendsFailed, Invalid, Values{"count": count, "total": of, "sends": "sends", "share": float64(count) / float64(of)})
	r.Topic, r.Process = "orders", process
	return r
}

// The worst of two processes is the one with the greater share, not the one with the greater numbers.
func TestWorst_300Of100000And200Of1000_TheSecond(t *testing.T) {
	worst := Worst([]Reason{failed("process 1", 300, 100_000), failed("process 2", 200, 1000), failed("process 3", 900, 100_000)})
	if len(worst) != 1 || worst[0].Process != "process 2" || worst[0].Processes != 3 {
		t.Fatalf("%+v", worst)
	}
	const want = "3 processes, worst in process 2: orders: 200 of 1000 sends failed (20 %), and the latencies lack them. See the topic's errors."
	if got := Text(worst[0]); got != want {
		t.Errorf("%s\n, want\n%s", got, want)
	}
}

func TestWorst_OtherTopicGroupPhaseVariantOrWhat_Kept(t *testing.T) {
	base := failed("a", 1, 2)
	all := []Reason{base}
	for _, change := range []func(*Reason){
		func(r *Reason) { r.Topic = "other" },
		func(r *Reason) { r.Group = "g" },
		func(r *Reason) { r.Phase = "peak" },
		func(r *Reason) { r.Level = Note },
		func(r *Reason) { r.Values = Values{"sends": "requests"} },
		func(r *Reason) { r.Values = Values{"sends": "sends", "why": "slow"} },
		func(r *Reason) { r.Code = Clocks },
	} {
		r := base
		change(&r)
		all = append(all, r)
	}
	if worst := Worst(all); len(worst) != len(all) {
		t.Errorf("%+v", worst)
	}
}

func TestWorst_SmallerIsWorse_TheSmallest(t *testing.T) {
	upTo := func(process string, q float64) Reason {
		r := New(PercentileNotReliable, Note, Values{"why": "machine", "latency": "publish latency", "upTo": q})
		r.Process = process
		return r
	}
	if worst := Worst([]Reason{upTo("a", 0.99), upTo("b", 0.5), upTo("c", 0.95)}); len(worst) != 1 || worst[0].Process != "b" {
		t.Errorf("%+v", worst)
	}
}

func TestGrouped_ThreeTopics_OneWithTheirNumber(t *testing.T) {
	var all []Reason
	for i, topic := range []string{"a", "b", "c"} {
		r := failed("", 100*(i+1), 1000)
		r.Topic = topic
		all = append(all, r)
		all = append(all, New(EndedEarly, Invalid, Values{"why": "no-iteration"}))
	}
	if two := Grouped(all[:3]); len(two) != 3 {
		t.Errorf("two topics: %+v", two)
	}
	shown := Grouped(all)
	if i := slices.IndexFunc(shown, func(r Reason) bool { return r.Topics == 3 && r.Topic == "c" }); len(shown) != 4 || i != 0 {
		t.Fatalf("%+v", shown)
	}
	all[0].Process, all[4].Process = "process 1", "process 2"
	if apart := Grouped(all); apart[0].Topics != 3 || apart[0].Process != "" {
		t.Errorf("topics of two processes: %+v", apart[0])
	}
	if got := Text(shown[0]); !strings.HasPrefix(got, "3 topics, worst in c: 300 of 1000 sends failed (30 %)") {
		t.Error(got)
	}
}

func TestText_PlacesNumbersAndOptionalParts(t *testing.T) {
	on := func(r Reason, topic, group, phase string) Reason {
		r.Topic, r.Group, r.Phase = topic, group, phase
		return r
	}
	for want, r := range map[string]Reason{
		"orders, group g: 1 message went out while the group had no consumer: no account counts them. Let the consumers be ready first (ready()), and outlive the producers (the executor consumers does).": on(New(NoConsumer, Note,
			Values{"why": "away", "count": 1}), "orders", "g", ""),
		"orders, group subscribers: 12 messages (0.60 %) of dead letters were read only at the end of the test: the latencies lack these messages, the slowest. Use the executor consumers, raise drainTimeout (an option of connect), or add consumers.": on(New(Drained, Note,
			Values{"count": 12, "share": 0.006, "from": "dead letters"}), "orders", "subscribers", ""),
		"phase peak: nothing was measured or confirmed in it. Send and receive in the phase that counts, and see the errors.": on(New(NoMeasuredWindow, Invalid, Values{"why": "empty"}), "", "", "peak"),
		"the test was interrupted or aborted 4.2s after its start. Let it run to its end.":                                    New(EndedEarly, Invalid, Values{"why": "interrupted", "after": 4200 * time.Millisecond}),
		"unheard-of": New("unheard-of", Note, nil),
		"? had no stamp: neither end-to-end latency nor the account counts them": New(NotStamped, Note, nil),
	} {
		if got := Text(r); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestReason_JSON_TextIsWrittenAndIgnored(t *testing.T) {
	r := failed("", 2, 1000)
	text, err := json.Marshal(r)
	if err != nil || !strings.Contains(string(text), `"text":"orders: 2 of 1000 sends failed (0.20 %)`) {
		t.Fatal(string(text), err)
	}
	var back Reason
	if err := json.Unmarshal([]byte(strings.Replace(string(text), "2 of 1000", "no", 1)), &back); err != nil || !reflect.DeepEqual(back, r) {
		t.Errorf("%+v, %v", back, err)
	}
}

func TestMarkdown_RowForEachCode(t *testing.T) {
	page := Markdown()
	if rows := strings.Count(page, "\n"); rows != len(table)+2 {
		t.Errorf("%d lines of %d codes", rows, len(table))
	}
	if placeholder.MatchString(page) || strings.ContainsAny(page, "[]") {
		t.Error("a placeholder is left")
	}
}
