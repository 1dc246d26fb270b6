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
		await conn.createTopic('described', { partitions: 6 });
		await conn.createTopic('described');
		await conn.producer('described').send('x');`)
	if said := s.says(); strings.Count(said, "createTopic: ") != 1 || !strings.Contains(said, "createTopic: described exists with 3 partitions, asked for 6") {
		t.Errorf("logged: %s", said)
	}
	const used = `return broker.result().topics[0].options.topic.map(({ partitions, replicas, exists }) => [partitions, replicas, exists].join(' ')).sort()`
	if got := fmt.Sprint(s.mustRun(used)); got != "[3 1  3 1 with 3 partitions, asked for 6]" {
		t.Error(got)
	}
	s = newScript(t).begin()
	s.mustRun(`
		const conn = broker.connect('broken://h', { drainTimeout: 1 });
		await conn.createTopic('no partitions', { partitions: 6 });
		await conn.producer('no partitions').send('x');`)
	if got := fmt.Sprint(s.mustRun(used)); got != "[ 1 ]" {
		t.Error(got)
	}
}
