package load

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/faulty"
)

// The result says what each sort of producer could rely on, and counts the topic's confirmations as what the weakest is.
func TestWhatConfirmationsProved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, faulty.Config{})
		defer b.finish()
		b.topic.Created(driver.TopicSpec{Name: "orders", Partitions: 1, Replicas: 3})
		asked := &asked{Conn: b.conn}
		b.conn = asked
		for _, acks := range []string{"all", "none", "all"} {
			config := driver.ProducerConfig{Topic: "orders", Window: 1, Options: driver.Values{"acks": acks}}
			pub, err := b.run.NewPublisher(t.Context(), b.conn, b.topic, config)
			if err != nil {
				t.Fatal(err)
			}
			s := pub.NewSender(StampInBody, b.series)
			b.produce(s, 1)
			if got, err := s.Proof(t.Context()); err != nil || got.How != "acks="+acks {
				t.Errorf("acks=%s: %+v, %v", acks, got, err)
			}
		}
		if asked.times != 2 {
			t.Errorf("asked %d times for two sorts of producers", asked.times)
		}
		r := b.run.NewCollector().Result()
		topic := r.Topics[0]
		if topic.Confirm != "unconfirmed" || topic.Meaning() != "unconfirmed: acks=none; replicated: acks=all" {
			t.Errorf("%s: %s", topic.Confirm, topic.Meaning())
		}
		other := *r
		other.Topics = []TopicResult{topic}
		other.Topics[0].Proofs = []Proof{{Confirm: "accepted", How: "acks=leader"}}
		total := (&Result{Topics: append(r.Topics, other.Topics...)}).Total()
		if want := "unconfirmed: acks=none; accepted: acks=leader; replicated: acks=all"; total.Meaning() != want {
			t.Errorf("together %s, want %s", total.Meaning(), want)
		}
	})
}

// asked counts how often it is asked.
type asked struct {
	driver.Conn

	times int
}

func (a *asked) Proof(_ context.Context, c driver.ProducerConfig, created *driver.TopicSpec) driver.Proof {
	a.times++
	acks := c.Options.String("acks")
	if acks == "all" && created != nil && created.Replicas == 3 {
		return driver.Proof{Confirm: driver.Replicated, How: "acks=all"}
	}
	return driver.Proof{How: "acks=" + acks}
}

// What goes where its key says may have been meant for others: nobody but the broker knows whether what a group lacks is lost.
func TestWhatIsRoutedByItsKeyIsNotCalledLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, faulty.Config{})
		collector := b.run.NewCollector()
		b.conn = byKey{b.conn, b.conn.(driver.Backlogger)}
		c := b.consumer(driver.ConsumerConfig{Group: "workers"})
		b.produce(b.sender(100), 10)
		b.receive(c, 10)
		b.produce(b.sender(100), 5)
		if err := b.conn.(byKey).Conn.(driver.Admin).PurgeTopic(t.Context(), "orders"); err != nil { // as if it had gone elsewhere
			t.Fatal(err)
		}
		b.finish()
		r := collector.Result()
		r.Judge(Circumstances{})
		if a := r.Topics[0].Groups[0]; a.Lost != 0 || a.Uncertain != 5 {
			t.Errorf("%+v", a.Accounting)
		}
		if reasons := strings.Join(r.Verdict.Reasons, "\n"); !strings.Contains(reasons, "5 messages were never received: where messages go by their keys") {
			t.Errorf("%s", reasons)
		}
	})
}

// byKey routes.
type byKey struct {
	driver.Conn
	driver.Backlogger
}

func (byKey) Proof(context.Context, driver.ProducerConfig, *driver.TopicSpec) driver.Proof {
	return driver.Proof{Confirm: driver.Accepted, Routed: true}
}
