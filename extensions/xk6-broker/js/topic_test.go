package js

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/faulty"
)

// What a result says of a topic is what the broker has, and not what was asked for.
func TestATopicIsWhatTheBrokerHas(t *testing.T) {
	features := faulty.Log()
	features.Order = driver.PerPartition
	driver.Register(faulty.New(faulty.Config{Name: "parts", Features: features}).Driver())
	s := newScript(t).begin()
	s.mustRun(`
		const conn = broker.connect('parts://127.0.0.1:7', { drainTimeout: 1 });
		await conn.createTopic('described', { partitions: 3 });
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
	s = newScript(t).begin()
	s.mustRun(`
		const conn = broker.connect('broken://h', { drainTimeout: 1 });
		await conn.createTopic('no partitions', { partitions: 6 });
		await conn.producer('no partitions').send('x');`)
	if got := fmt.Sprint(s.mustRun(used)); got != "[ 1]" {
		t.Error(got)
	}
}

func TestAnOptionThatTheBrokerHas(t *testing.T) {
	brokers := []string{"a", "b"}
	for _, c := range []struct {
		has, asked any
		want       bool
	}{
		{"file", "file", true},
		{"file", "memory", false},
		{nil, "memory", false},
		{true, false, false},
		{brokers, []string{"b"}, true},
		{brokers, []string{"b", "c"}, false},
		{nil, []string{"a"}, false},
		{brokers, []string{}, true},
		{int64(8), int64(8), true},
		{int64(8), int64(4), false},
		{int64(8), int64(0), true}, // zero: as the broker has it
		{time.Hour, time.Minute, false},
		{time.Hour, time.Duration(0), true},
	} {
		if got := covers(c.has, c.asked); got != c.want {
			t.Errorf("it has %v, asked %v: %v", c.has, c.asked, got)
		}
	}
}
