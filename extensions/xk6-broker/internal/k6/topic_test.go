package k6

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/memory"
)

// What a result says of a topic is what the broker has, and not what was asked for.
func TestATopicIsWhatTheBrokerHas(t *testing.T) {
	features := memory.Log()
	features.Order = driver.PerPartition
	parts := memory.New(memory.Config{Name: "parts", Features: features}).Driver()
	parts.Options = append(parts.Options, driver.Option{Name: "copies", Scope: driver.OnTopic, Type: driver.Int, Doc: "What this broker never tells of a topic."})
	driver.Register(parts)
	s := newScript(t).begin()
	s.mustRun(`
		const conn = broker.connect('parts://127.0.0.1:7', { drainTimeout: 1 });
		await conn.createTopic('described', { partitions: 3, copies: 5 });
		await conn.createTopic('described');
		await conn.producer('described').send('x');`)
	_, err := s.run(`const conn = broker.connect('parts://127.0.0.1:7', { drainTimeout: 1 }); await conn.createTopic('described', { partitions: 6, replicas: 1 })`)
	if err == nil || !strings.Contains(err.Error(), `option "partitions": described exists with 3, asked for 6 (rejected)`) || strings.Contains(err.Error(), "replicas") {
		t.Errorf("another number of partitions: %v", err)
	}
	const used = `return broker.result().topics[0].options.topic.map(({ partitions, replicas }) => [partitions, replicas].join(' ')).sort()`
	if got := fmt.Sprint(s.mustRun(used)); got != "[3 1]" {
		t.Error(got)
	}
	if got := fmt.Sprint(s.mustRun(`return broker.result().topics[0].options.topic.map((o) => 'copies' in o)`)); got != "[false]" {
		t.Errorf("what the broker does not tell is in the result: %s", got)
	}
	s = newScript(t).begin()
	s.mustRun(`
		const conn = broker.connect('broken://h', { drainTimeout: 1 });
		await conn.createTopic('no partitions', { partitions: 6, replicas: 3 });
		await conn.producer('no partitions').send('x');`)
	if got := fmt.Sprint(s.mustRun(used)); got != "[ ]" { // who does not say what a topic is may have made another number of copies
		t.Error(got)
	}
}

func TestTopicOptionOfTheBroker_Compared(t *testing.T) {
	for _, c := range []struct {
		has, asked any
		want       string
	}{
		{has: "file", asked: "file"},
		{has: "file", asked: "memory", want: "with file, asked for memory"},
		{has: "file", asked: ""},
		{has: true, asked: false, want: "with true, asked for false"},
		{has: []string{"a"}, asked: []string{"b"}},
		{has: int64(8), asked: int64(8)},
		{has: int64(8), asked: int64(4), want: "with 8, asked for 4"},
		{has: int64(0), asked: int64(4), want: "with 0, asked for 4"},
		{has: int64(8), asked: int64(0)},
		{has: time.Hour, asked: time.Minute, want: "with 1h0m0s, asked for 1m0s"},
	} {
		topic := newTopic{asked: driver.Values{"o": c.asked}}
		err := topic.differs(driver.Values{"o": c.has})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("it has %v, asked %v: %v, want %q", c.has, c.asked, err, c.want)
		}
	}
}

// A topic's name is a string that comes before the options.
func TestATopicHasAName(t *testing.T) {
	s := newScript(t).begin()
	for call, want := range map[string]string{
		"producer()":                  "producer: the topic's name is missing",
		"consumer(null)":              "consumer: the topic's name is missing",
		"producer({ topic: 'jobs' })": "producer: the topic's name must be a string, not an object",
		"createTopic({})":             "createTopic: the topic's name must be a string, not an object",
		"deleteTopic(7)":              "deleteTopic: the topic's name must be a string, not 7",
		"purge(true)":                 "purge: the topic's name must be a string, not true",
		"producer(['a', 'b'])":        "producer: the topic's name must be a string, not a list",
		"consumer(['a', 'b'], {})":    "consumer: the topic's name must be a string, not a list",
		"createTopic(['a'])":          "createTopic: the topic's name must be a string, not a list",
		"backlog(['a'], 'g')":         "backlog: the topic's name must be a string, not a list",
		"backlog('a', ['g', 'h'])":    "backlog: the group must be a string, not a list",
		"backlog()":                   "backlog: the topic's name is missing",
	} {
		if _, err := s.run(`broker.connect('memory://127.0.0.1:7').` + call); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", call, err)
		}
	}
}

func TestArgumentsThatAreNoText_Refused(t *testing.T) {
	s := newScript(t)
	for call, want := range map[string]string{
		"mark({ at: 1 })": "mark: the text must be a string, not an object",
		"phase(1)":        "phase: the name must be a string, not 1",
	} {
		if _, err := s.run("broker." + call); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", call, err, want)
		}
	}
}
