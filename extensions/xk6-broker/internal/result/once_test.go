package result

import (
	"fmt"
	"slices"
	"testing"
)

// What is said of several topics is said once, where it is first said and as it is where it is worst; of two topics each is named.
func TestSeveralTopicsSayTheSameOnce(t *testing.T) {
	r := &Result{Topics: []Topic{{Topic: "a"}, {Topic: "b"}, {Topic: "c"}, {Topic: "d"}}}
	embedded := func(topic string) string { return topic + ": the embedded broker shares this process" }
	lost := func(topic string, n int) string { return fmt.Sprintf("%s, workers: %d messages were lost", topic, n) }
	owes := func(topic string, percent int) string {
		return fmt.Sprintf("%s: %s2ms, is %d %% of the p50 of publish latency", topic, owesLittle, percent)
	}
	late := Doubts([]Belief{{"a", "publish latency", 0.5, "10 % of it is late"}, {"b", "publish latency", 0.5, "20 % of it is late"}, {"c", "publish latency", 0.9, "30 % of it is late"}})
	got := r.Once(append(late,
		"a: closed loop", lost("a", 3), owes("a", 20), embedded("a"), "b: closed loop", lost("b", 70), owes("b", 30)+", 9.0 % of the p99", embedded("b"),
		"k6 dropped 5 iterations", lost("c", 5), owes("c", 25), embedded("c"), lost("unknown", 90), "c, others: 9 messages were lost", lost("c", 6), "d, workers: 1 messages were lost"))
	want := append(late,
		"a: closed loop", "4 topics, worst in b, workers: 70 messages were lost", "3 of 4 topics, worst in b: "+owesLittle+"2ms, is 30 % of the p50 of publish latency, 9.0 % of the p99",
		"3 of 4 topics: the embedded broker shares this process", "b: closed loop", "k6 dropped 5 iterations", lost("unknown", 90), "c, others: 9 messages were lost")
	if !slices.Equal(got, want) {
		t.Errorf("%q, want\n%q", got, want)
	}
}
