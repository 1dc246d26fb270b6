package engine

import (
	"testing"
	"testing/synctest"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/memory"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason"
)

// elsewhere opens a consumer of a topic that the broker knows as another: for a wildcard, what was sent to that.
func (b *bench) elsewhere(topic, broker, group string) *Consumer {
	b.t.Helper()
	at := b.run.Topic(b.topic.Address, topic)
	series := b.run.Series(Labels{Broker: at.Address.String(), Driver: b.topic.Address.Driver.Name, Topic: topic, Group: GroupLabel(at.Address.Driver.Features, group)})
	c, err := b.run.NewConsumer(b.t.Context(), b.conn, at,
		driver.ConsumerConfig{Topic: broker, Group: group, Prefetch: 1000, Start: driver.StartNew}, series)
	if err != nil {
		b.t.Fatal(err)
	}
	return c
}

// outside is a client that is none of the test's.
type outside struct {
	*bench
	consumer driver.Consumer
}

func (b *bench) outside(topic, group string) outside {
	b.t.Helper()
	c, err := b.conn.NewConsumer(b.t.Context(), driver.ConsumerConfig{Topic: topic, Group: group, Prefetch: 1000, Start: driver.StartNew})
	if err != nil {
		b.t.Fatal(err)
	}
	return outside{b, c}
}

// take takes messages away.
func (o outside) take(n int) driver.Batch {
	o.t.Helper()
	batch := make(driver.Batch, n)
	for got := 0; got < n; {
		more, err := o.consumer.Receive(o.t.Context(), batch[got:])
		if err != nil {
			o.t.Fatal(err)
		}
		got += more
	}
	if o.topic.Address.Driver.Features.Settle.Has(driver.Ack) {
		if err := o.consumer.Settle(o.t.Context(), batch, driver.Ack); err != nil {
			o.t.Fatal(err)
		}
	}
	return batch
}

// send passes messages on to another topic, as they are.
func (o outside) send(batch driver.Batch, topic string) {
	o.t.Helper()
	p, err := o.conn.NewProducer(o.t.Context(), driver.ProducerConfig{Topic: topic, Window: max(1, len(batch))})
	if err != nil {
		o.t.Fatal(err)
	}
	p.Send(o.t.Context(), batch, func(_ int, err error) {
		if err != nil {
			o.t.Error(err)
		}
	})
	if err := p.Close(o.t.Context()); err != nil {
		o.t.Error(err)
	}
}

func (b *bench) create(topic string) {
	b.t.Helper()
	if err := b.conn.(driver.Admin).CreateTopic(b.t.Context(), driver.TopicSpec{Name: topic, Partitions: 1, Replicas: 1}); err != nil {
		b.t.Fatal(err)
	}
}

// read receives and acks.
func (b *bench) read(c *Consumer, n int) {
	b.t.Helper()
	b.settle(c, b.receive(c, n), 0, n, driver.Ack)
}

// judgedGroup is what a result says of one group.
type judgedGroup struct {
	median, max bool // what they are compared with can be judged
	notes       []reason.Reason
	valid       bool
}

func (b *bench) judged(c *Collector, topic, group string) judgedGroup {
	b.t.Helper()
	b.finish()
	r := c.Result()
	verdict.Judge(r, verdict.Circumstances{})
	for i := range r.Topics {
		for _, g := range r.Topics[i].Groups {
			if r.Topics[i].Topic != topic || g.Group != group {
				continue
			}
			decide := func(source string) bool {
				h := g.Trends[recording.E2ELatency.String()]
				return verdict.Latency(r, limit(b.t, source), recording.E2ELatency.String(), []verdict.Portion{{Broker: b.topic.Address.String(), Topic: topic, Group: group, Loop: recording.Closed, Histogram: h}}).Held
			}
			return judgedGroup{decide("med<60000"), decide("max<60000"), r.Verdict.Notes(), r.Verdict.Valid}
		}
	}
	b.t.Fatalf("no group %s of %s", group, topic)
	return judgedGroup{}
}

// Dead letters are what the topic's own consumers did not take: nobody misses the others. Of those who are given copies it does not matter
// that they are rejected too.
func TestDeadLettersAreNotMissedByTheirConsumers(t *testing.T) {
	for name, dead := range map[string]func(i int) driver.Outcome{
		"rejected":             func(int) driver.Outcome { return driver.Reject },
		"given back too often": func(int) driver.Outcome { return driver.Requeue },
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, memory.Config{Deliveries: 1})
			collector := b.run.NewCollector()
			b.create("dead")
			workers, letters, broker := b.consumer(driver.ConsumerConfig{Group: "workers"}), b.elsewhere("dead", "dead", "letters"), b.outside("orders", "broker")
			b.produce(b.sender(100), 1000)
			in, all := b.receive(workers, 1000), broker.take(1000)
			for i := range all {
				if i%50 > 0 {
					b.settle(workers, in, i, i+1, driver.Ack)
					continue
				}
				b.settle(workers, in, i, i+1, dead(i))
				broker.send(all[i:i+1], "dead")
			}
			b.read(letters, 20)
			if got := b.judged(collector, "dead", "letters"); !got.median || !got.max {
				t.Errorf("%s: %+v", name, got)
			}
		})
	}
}

// A forwarder takes messages from a group and sends them on to a topic where the test consumes. They are routed, and neither lost nor in that topic's account.
func TestAccount_ReceivedOnAnotherTopic_Routed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Config{})
		collector := b.run.NewCollector()
		b.create("copies")
		copies, workers := b.elsewhere("copies", "copies", "c"), b.consumer(driver.ConsumerConfig{Group: "workers"})
		forwarder := b.outside("orders", "workers")
		b.produce(b.sender(100), 20)
		taken := forwarder.take(5)
		forwarder.send(taken[:4], "copies")
		b.read(copies, 4)
		b.read(workers, 15)
		b.finish()
		r := collector.Result()
		for _, topic := range r.Topics {
			switch a := topic.Groups[0].Account; topic.Topic {
			case "orders":
				if a.Expected != 20 || a.Received != 15 || a.Routed != 4 || a.Lost != 1 || a.Uncertain != 0 {
					t.Errorf("%+v", a)
				}
			case "copies":
				if a.Expected != 0 || a.Missing != 0 || topic.Counts[recording.Routed.String()] != 4 {
					t.Errorf("%+v, %v", a, topic.Counts)
				}
			}
		}
	})
}

// limit is a threshold's condition.
func limit(t *testing.T, source string) verdict.Condition {
	t.Helper()
	c, err := verdict.ParseCondition(source)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
