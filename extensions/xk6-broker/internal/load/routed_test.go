package load

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/memory"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/metric"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/reason"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/reason/reasontest"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// elsewhere opens a consumer of a topic that the broker knows as another: for a wildcard, what was sent to that.
func (b *bench) elsewhere(topic, broker, group string) *Consumer {
	b.t.Helper()
	at := b.run.Topic(b.topic.Address, topic)
	series := b.run.Series(Labels{Broker: at.Address.String(), Driver: "memory", Topic: topic, Group: GroupOf(at.Address.Driver.Features, group)})
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
	r := resultOf(b.t, c)
	r.Judge(result.Circumstances{})
	for i := range r.Topics {
		for _, g := range r.Topics[i].Groups {
			if r.Topics[i].Topic != topic || g.Group != group {
				continue
			}
			decide := func(source string) bool {
				h := g.Trends[metric.E2ELatency.String()]
				return r.Latency(limit(b.t, source), metric.E2ELatency.String(), []result.Portion{{Broker: b.topic.Address.String(), Topic: topic, Group: group, Loop: metric.Closed, Histogram: h}}).Held
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
			between(t, name+": nobody waits for more", b.arrived(10*time.Second, Consume{Ack: AckBatch}, workers, letters), 0, 5*time.Second)
			if got := b.judged(collector, "dead", "letters"); !got.median || !got.max || reasontest.Has(got.notes, "routed why=missing") {
				t.Errorf("%s: %+v", name, got)
			}
		})
	}
}

// Those that the topic's own consumers rejected must come in, at one of the topics that dead letters go to: what is handed on from there is
// not missed.
func TestDeadLettersThatAreLost(t *testing.T) {
	for name, c := range map[string]struct {
		lost, further int // of 200
		note          string
	}{
		"none":               {0, 0, ""},
		"some":               {50, 0, "topic=dead group=letters count=50 total=200 share=0.25 from=orders whose=rejected_by_the_consumers_of"},
		"none, and rejected": {0, 100, ""},
		"all are rejected":   {0, 200, ""},
		"some, and rejected": {50, 100, "topic=dead group=letters count=50 total=200 share=0.25 from=orders whose=rejected_by_the_consumers_of"},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, memory.Config{})
			collector := b.run.NewCollector()
			b.create("dead")
			b.create("deader")
			workers, letters, further := b.consumer(driver.ConsumerConfig{Group: "workers"}), b.elsewhere("dead", "dead", "letters"), b.elsewhere("deader", "deader", "last")
			broker := b.outside("orders", "broker")
			b.produce(b.sender(100), 1000)
			in, all := b.receive(workers, 1000), broker.take(1000)
			var dead driver.Batch
			for i := range all {
				if i%5 > 0 {
					b.settle(workers, in, i, i+1, driver.Ack)
					continue
				}
				b.settle(workers, in, i, i+1, driver.Reject)
				dead = append(dead, all[i])
			}
			dead = dead[:len(dead)-c.lost]
			broker.send(dead, "dead")
			letter := b.receive(letters, len(dead))
			b.settle(letters, letter, 0, c.further, driver.Reject)
			b.settle(letters, letter, c.further, len(dead), driver.Ack)
			broker.send(dead[:c.further], "deader")
			b.read(further, c.further)
			if got := b.judged(collector, "dead", "letters"); got.median != (c.lost == 0) || got.max != (c.lost == 0) || reasontest.Has(got.notes, "routed why=missing "+c.note) != (c.note != "") {
				t.Errorf("%s: %+v", name, got)
			}
		})
	}
}

// Where messages go by their keys, those who get some of them by way of another topic were not meant to get the others, perhaps: a note says
// how many these are.
func TestWhatGoesElsewhereByItsKeyIsNotMissed(t *testing.T) {
	for _, owned := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, memory.Config{})
			collector := b.run.NewCollector()
			b.create("some")
			b.create("rest")
			some, rest, exchange := b.elsewhere("some", "some", "s"), b.elsewhere("rest", "rest", "r"), b.outside("orders", "exchange")
			var workers *Consumer
			if owned {
				workers = b.consumer(driver.ConsumerConfig{Group: "workers"})
			}
			b.conn = byKey{b.conn, b.conn.(driver.Backlogger)}
			b.produce(b.sender(100), 1000)
			b.conn = b.conn.(byKey).Conn
			all := exchange.take(1000)
			exchange.send(all[:300], "some")
			exchange.send(all, "rest")
			if owned {
				b.read(workers, 1000)
			}
			b.read(some, 300)
			b.read(rest, 1000)
			got := b.judged(collector, "some", "s")
			if !got.valid || !got.median || !got.max || !reasontest.Has(got.notes, "routed why=missing count=700 share=0.7") {
				t.Errorf("owned %v: %+v", owned, got)
			}
		})
	}
}

// What a service passes on is awaited however seldom it does, and beside consumers that have it already: that a group's queue is empty does not
// say that no more comes.
func TestArrivedWaitsForWhatIsForwarded(t *testing.T) {
	for _, own := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, memory.Config{})
			b.create("copies")
			copies, service := b.elsewhere("copies", "copies", "c"), b.outside("orders", "service")
			working := []*Consumer{copies}
			if own {
				working = append(working, b.consumer(driver.ConsumerConfig{Group: "own"}))
			}
			b.produce(b.sender(100), 100)
			service.send(service.take(20), "copies")
			lots := make(chan struct{})
			go func() {
				defer close(lots)
				for range 4 {
					time.Sleep(5 * time.Second)
					service.send(service.take(20), "copies")
				}
			}()
			between(t, fmt.Sprintf("own %v", own), b.arrived(10*time.Second, Consume{Ack: AckBatch}, working...), 20*time.Second, 22*time.Second)
			<-lots
			b.finish()
			if n := b.run.came.Load(); n != int64(100*len(working)) {
				t.Errorf("own %v: %d were received", own, n)
			}
		})
	}
}

// limit is a threshold's condition.
func limit(t *testing.T, source string) result.Condition {
	t.Helper()
	c, err := result.ParseCondition(source)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
