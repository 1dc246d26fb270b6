package js

import (
	"fmt"
	"strings"
	"testing"

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
