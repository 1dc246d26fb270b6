package load

import (
	"fmt"
	"reflect"
	"testing"
	"testing/synctest"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/faulty"
)

// However often consumers come and go, a group has as many members as were there at a time.
func TestMembersAreThoseAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, faulty.Config{Features: faulty.Subject()})
		defer b.finish()
		for range 3 {
			var all []*Consumer
			for range 2 {
				all = append(all, b.consumer(driver.ConsumerConfig{}))
			}
			for _, c := range all {
				if err := c.Leave(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
		if members := b.topic.members(); !reflect.DeepEqual(members, map[string]int{Subscribers: 2}) {
			t.Errorf("subscribers: %v", members)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, faulty.Config{})
		defer b.finish()
		for range 3 {
			one, two := b.consumer(driver.ConsumerConfig{Group: "workers"}), b.consumer(driver.ConsumerConfig{Group: "workers"})
			for _, c := range []*Consumer{one, two} {
				if err := c.Leave(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
		if members := b.topic.members(); !reflect.DeepEqual(members, map[string]int{"workers": 2}) {
			t.Errorf("group: %v", members)
		}
	})
}

func TestUsersOfATopicAreKeptOnceAndInOrder(t *testing.T) {
	topic := &Topic{uses: Uses{}}
	for range 2 {
		topic.Use("producer", map[string]any{"linger": "5ms"})
		topic.Use("producer", map[string]any{"linger": "0s"})
	}
	want := Uses{"producer": {{"linger": "0s"}, {"linger": "5ms"}}}
	if got := topic.uses.sorted(); !reflect.DeepEqual(got, want) {
		t.Errorf("%v", got)
	}
	for i := range 10 * mostUses {
		topic.Use("produce", map[string]any{"seed": i})
	}
	if n := len(topic.uses["produce"]); n != mostUses {
		t.Errorf("%d users are kept", n)
	}
}

func TestWhatWasAskedOfSeveralProcesses(t *testing.T) {
	produce := Scenario{Name: "produce", Executor: "open-arrival-rate", Options: map[string]any{"rate": 100.0}}
	consume := Scenario{Name: "consume", Executor: "constant-vus"}
	var test Test
	for _, other := range []Test{{"a.js", []Scenario{produce}}, {"a.js", []Scenario{produce, consume}}} {
		test.merge(other)
	}
	if got := fmt.Sprint(test); got != fmt.Sprint(Test{"a.js", []Scenario{produce, consume}}) {
		t.Error(got)
	}
	checks := mergeChecks(mergeChecks(nil, []Check{{"a", 1, 2}, {"b", 3, 0}}), []Check{{"b", 4, 1}, {"c", 1, 1}})
	if got := fmt.Sprint(checks); got != "[{a 1 2} {b 7 1} {c 1 1}]" {
		t.Error(got)
	}
	m := merger{result: &Result{}}
	later := &Result{Started: m.result.Started.Add(2e9), Marks: []Annotation{{At: 1, What: "later"}}}
	m.marks(later)
	m.marks(&Result{Marks: []Annotation{{At: 2.5, What: "earlier"}}})
	if got := fmt.Sprint(m.result.Marks); got != "[{2.5 earlier} {3 later}]" {
		t.Error(got)
	}
}
