package load

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/memory"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/metric"
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
	notes       string
	valid       bool
}

func (b *bench) judged(c *Collector, topic, group string) judgedGroup {
	b.t.Helper()
	b.finish()
	r := c.Result()
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
			return judgedGroup{decide("med<60000"), decide("max<60000"), strings.Join(r.Verdict.Notes, "\n"), r.Verdict.Valid}
		}
	}
	b.t.Fatalf("no group %s of %s", group, topic)
	return judgedGroup{}
}

// Whoever gets messages of a topic by way of another is watched for those that did not come, whether or not others got them: the topic's own
// consumers, or further ones at other topics.
func TestWhatDidNotComeByWayOfAnotherTopic(t *testing.T) {
	const sent = 1000
	for _, own := range []string{"nobody", "an audit", "one that received nothing", "one that left before"} {
		for _, further := range []bool{false, true} {
			for _, lost := range []int{0, 1, 250} {
				t.Run(fmt.Sprintf("%s, further %v, %d lost", own, further, lost), inBubble(func(t *testing.T) {
					b := newBench(t, memory.Config{})
					collector := b.run.NewCollector()
					s := b.sender(100)
					complete := own != "one that received nothing" // else its own account speaks against all latencies
					if own == "one that left before" {
						early := b.consumer(driver.ConsumerConfig{Group: "early"})
						b.produce(s, 50)
						b.read(early, 50)
						b.close(early)
						early.group.kept = false // as of a broker that keeps nothing
						early.group.track.Close()
					}
					bad, thief := b.elsewhere("ord*", "orders", "bad"), b.outside("orders", "bad")
					var audit, good *Consumer
					if own == "an audit" || !complete {
						audit = b.consumer(driver.ConsumerConfig{Group: "audit"})
					}
					if further {
						good = b.elsewhere("*ers", "orders", "good")
					}
					b.produce(s, sent)
					b.read(bad, 500)
					thief.take(lost)
					b.read(bad, sent-500-lost)
					if own == "an audit" {
						b.read(audit, sent)
					}
					if further {
						b.read(good, sent)
					}
					got := b.judged(collector, "ord*", "bad")
					if got.median != (lost < 250 && complete) || got.max != (lost == 0 && complete) || got.valid != (lost < 250 && complete) {
						t.Errorf("%+v", got)
					}
					if lost > 0 != strings.Contains(got.notes, fmt.Sprintf("ord*, bad: of 1000 messages sent to orders since the first of them came in here, %d (", lost)) {
						t.Errorf("%+v", got)
					}
				}))
			}
		}
	}
}

// Nothing in common is no sign of dead letters where the one broke before the other came.
func TestAnAuditThatComesLateHidesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Config{})
		collector := b.run.NewCollector()
		s, bad, thief := b.sender(100), b.elsewhere("ord*", "orders", "bad"), b.outside("orders", "bad")
		b.produce(s, 500)
		b.read(bad, 500)
		audit := b.consumer(driver.ConsumerConfig{Group: "audit"})
		b.produce(s, 250)
		thief.take(250)
		b.read(audit, 250)
		if got := b.judged(collector, "ord*", "bad"); got.median || got.max {
			t.Errorf("%+v", got)
		}
	})
}

// Nor is it a sign of sharing out: of two who get everything by way of a topic of their own the one breaks before the other comes.
func TestAnotherThatComesLateHidesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Config{})
		collector := b.run.NewCollector()
		s, bad := b.sender(100), b.elsewhere("ord*", "orders", "bad")
		b.produce(s, 500)
		b.read(bad, 500)
		late := b.elsewhere("*ers", "orders", "late")
		b.produce(s, 500)
		b.outside("orders", "bad").take(500)
		b.read(late, 500)
		if got := b.judged(collector, "ord*", "bad"); got.median || got.max || !strings.Contains(got.notes, "ord*, bad: of 1000 messages sent to orders since the first of them came in here, 500 (") {
			t.Errorf("%+v", got)
		}
	})
}

// Consumers of a topic that reject everything make no dead letters of the copies that others get.
func TestOwnConsumersThatRejectEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Config{})
		collector := b.run.NewCollector()
		own, copies := b.consumer(driver.ConsumerConfig{Group: "own"}), b.elsewhere("ord*", "orders", "copies")
		b.produce(b.sender(100), 1000)
		b.read(copies, 700)
		b.outside("orders", "copies").take(300)
		b.settle(own, b.receive(own, 1000), 0, 1000, driver.Reject)
		if got := b.judged(collector, "ord*", "copies"); got.max || !strings.Contains(got.notes, "300 (30 %) never did") {
			t.Errorf("%+v", got)
		}
	})
}

// What was read when a group left, by none of its consumers, is missing from its latencies, and not lost.
func TestWhatIsDrainedElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Config{Features: memory.Subject()})
		collector := b.run.NewCollector()
		c := b.elsewhere("ord*", "orders", "")
		b.produce(b.sender(100), 1000)
		b.receive(c, 700)
		if err := c.Leave(t.Context()); err != nil {
			t.Fatal(err)
		}
		got := b.judged(collector, "ord*", result.Subscribers)
		if got.median || got.max || got.valid || strings.Contains(got.notes, "never did") {
			t.Errorf("%+v", got)
		}
	})
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
			if got := b.judged(collector, "dead", "letters"); !got.median || !got.max || strings.Contains(got.notes, "never did") {
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
		"some":               {50, 0, "dead, letters: of 200 messages rejected by the consumers of orders since the first of them came in here, 50 (25 %) never did"},
		"none, and rejected": {0, 100, ""},
		"all are rejected":   {0, 200, ""},
		"some, and rejected": {50, 100, "dead, letters: of 200 messages rejected by the consumers of orders since the first of them came in here, 50 (25 %) never did"},
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
			if got := b.judged(collector, "dead", "letters"); got.median != (c.lost == 0) || got.max != (c.lost == 0) || !strings.Contains(got.notes, c.note) ||
				c.note == "" && strings.Contains(got.notes, "never did") {
				t.Errorf("%s: %+v", name, got)
			}
		})
	}
}

// What the topic's own consumers lack is in their account, and no dead letter: also where they took nothing for good since the first dead letter. What the
// test may have removed where dead letters wait is not called lost.
func TestWhatTheTestRemovedIsNoLostDeadLetter(t *testing.T) {
	for _, emptied := range []string{"orders", "dead"} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, memory.Config{})
			collector := b.run.NewCollector()
			b.create("dead")
			workers, letters := b.consumer(driver.ConsumerConfig{Group: "workers", Prefetch: 80}), b.elsewhere("dead", "dead", "letters")
			broker := b.outside("orders", "broker")
			b.produce(b.sender(100), 100)
			b.settle(workers, b.receive(workers, 40), 0, 40, driver.Ack)
			in, all := b.receive(workers, 40), broker.take(100)
			b.settle(workers, in, 0, 40, driver.Reject)
			arrive, want := all[40:80], ""
			if emptied == "dead" {
				arrive, want = all[40:70], "10 (25 %) never did: they are lost, still at the broker, or dead letters elsewhere, or were removed by the test itself;"
			}
			broker.send(arrive[:10], "dead")
			b.read(letters, 10)
			at := b.run.Topic(b.topic.Address, emptied)
			if err := b.run.Settle(t.Context(), at, Drain{Limit: time.Second}, true, func() error {
				return b.conn.(driver.Admin).PurgeTopic(t.Context(), emptied)
			}); err != nil {
				t.Fatal(err)
			}
			broker.send(arrive[10:], "dead")
			b.read(letters, len(arrive)-10)
			if got := b.judged(collector, "dead", "letters"); !strings.Contains(got.notes, want) || want == "" && strings.Contains(got.notes, "never did") {
				t.Errorf("%s: %+v", emptied, got)
			}
		})
	}
}

// What is handed on from one topic for dead letters to the next is missed at none of them, whatever its consumers do with it.
func TestDeadLettersOfDeadLetters(t *testing.T) {
	for _, outcome := range []driver.Outcome{driver.Ack, driver.Reject} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, memory.Config{})
			collector := b.run.NewCollector()
			b.create("dead")
			b.create("deader")
			workers, letters, last := b.consumer(driver.ConsumerConfig{Group: "workers"}), b.elsewhere("dead", "dead", "letters"), b.elsewhere("deader", "deader", "last")
			broker := b.outside("orders", "broker")
			b.produce(b.sender(100), 1000)
			b.settle(workers, b.receive(workers, 1000), 0, 1000, driver.Reject)
			all := broker.take(1000)
			broker.send(all, "dead")
			in := b.receive(letters, 1000)
			var dead driver.Batch
			for i := range all {
				if i%2 == 0 {
					b.settle(letters, in, i, i+1, driver.Ack)
					continue
				}
				b.settle(letters, in, i, i+1, driver.Reject)
				dead = append(dead, all[i])
			}
			broker.send(dead, "deader")
			b.settle(last, b.receive(last, 500), 0, 500, outcome)
			for topic, group := range map[string]string{"dead": "letters", "deader": "last"} {
				if got := b.judged(collector, topic, group); !got.median || !got.max || strings.Contains(got.notes, "never did") {
					t.Errorf("%v: %s: %+v", outcome, group, got)
				}
			}
		})
	}
}

// What a service shares out among several topics is missed where none of them has it.
func TestWhatIsSharedOutIsMissedByAllTogether(t *testing.T) {
	for _, lost := range []int{0, 200} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, memory.Config{})
			collector := b.run.NewCollector()
			b.create("left")
			b.create("right")
			left, right, service := b.elsewhere("left", "left", "l"), b.elsewhere("right", "right", "r"), b.outside("orders", "service")
			b.produce(b.sender(100), 1000)
			for range 100 {
				service.send(service.take(4), "left")
				service.send(service.take(6)[:6-lost/100], "right")
			}
			b.read(left, 400)
			b.read(right, 600-lost)
			if got := b.judged(collector, "left", "l"); got.median != (lost == 0) || got.max != (lost == 0) {
				t.Errorf("%d lost: %+v", lost, got)
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
			if !got.valid || !got.median || !got.max || !strings.Contains(got.notes, "700 (70 %) never did: where messages go by their keys, it cannot be told") {
				t.Errorf("owned %v: %+v", owned, got)
			}
		})
	}
}

// A send that failed came in nowhere.
func TestFailedSendsAreMissedElsewhereToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Config{})
		collector := b.run.NewCollector()
		bad, own := b.elsewhere("ord*", "orders", "bad"), b.consumer(driver.ConsumerConfig{Group: "own"})
		b.produce(b.sender(100), 1000)
		b.series.fail("send", driver.Timeout)
		b.read(bad, 1000)
		b.read(own, 1000)
		if got := b.judged(collector, "ord*", "bad"); !got.median || got.max {
			t.Errorf("%+v", got)
		}
	})
}

// Who has left, where the broker keeps nothing, misses nothing that was sent afterwards; its successor misses what it lacks itself.
func TestASubscriberElsewhereMissesWhatItWasThereFor(t *testing.T) {
	for _, lost := range []int{0, 250} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, memory.Config{Features: memory.Subject()})
			collector := b.run.NewCollector()
			own := b.elsewhere("orders", "orders", "")
			s := b.sender(100)
			b.create("copies")
			service := b.outside("orders", "")
			for round := range 2 {
				c := b.elsewhere("copies", "copies", "")
				b.produce(s, 500)
				all := service.take(500)
				service.send(all[:500-lost*round], "copies")
				b.receive(c, 500-lost*round)
				if err := c.Leave(t.Context()); err != nil {
					t.Fatal(err)
				}
				b.produce(s, 300)
				service.take(300)
			}
			b.receive(own, 1600)
			if got := b.judged(collector, "copies", result.Subscribers); got.median != (lost == 0) || got.max != (lost == 0) {
				t.Errorf("%d lost: %+v", lost, got)
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

func inBubble(test func(*testing.T)) func(*testing.T) {
	return func(t *testing.T) { synctest.Test(t, test) }
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

// A server that knows groups by their names alone shares out what is sent to a subject with those of that name on a wildcard: what they got is
// not lost.
func TestWhatANamesakeOnAWildcardGot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		features := memory.Subject()
		features.Groups = true
		b := newBench(t, memory.Config{Features: features})
		collector := b.run.NewCollector()
		own, wild := b.consumer(driver.ConsumerConfig{Group: "g"}), b.elsewhere("ord*", "orders", "g")
		b.produce(b.sender(100), 100)
		b.receive(own, 60)
		b.receive(wild, 40)
		b.finish()
		r := collector.Result()
		r.Judge(result.Circumstances{})
		for _, of := range r.Topics {
			if of.Topic != "orders" {
				continue
			}
			if a := of.Groups[0].Account; a.Lost != 0 || a.Elsewhere != 40 || a.Missing != 40 {
				t.Errorf("%+v; want 40 elsewhere", a)
			}
		}
		if reasons := strings.Join(r.Verdict.Reasons, "\n"); r.Verdict.Valid || !strings.Contains(reasons, "received at another topic by a group of the same name") {
			t.Error(reasons)
		}
	})
}
