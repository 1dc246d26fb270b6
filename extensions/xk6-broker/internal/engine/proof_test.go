package engine

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/memory"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason/reasontest"
)

// The result says what each sort of producer could rely on, and counts the topic's confirmations as what the weakest is.
func TestWhatConfirmationsProved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Config{})
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
			if got := s.Proof(); got.How != "acks="+acks {
				t.Errorf("acks=%s: %+v", acks, got)
			}
		}
		if n := asked.times.Load(); n != 2 {
			t.Errorf("asked %d times for two sorts of producers", n)
		}
		r := b.run.NewCollector().Result()
		topic := r.Topics[0]
		if topic.Confirm != "unconfirmed" || topic.Meaning() != "unconfirmed: acks=none; replicated: acks=all" {
			t.Errorf("%s: %s", topic.Confirm, topic.Meaning())
		}
		other := *r
		other.Topics = []result.Topic{topic}
		other.Topics[0].Proofs = []result.Proof{{Confirm: "accepted", How: "acks=leader"}}
		total := verdict.Total(&result.Result{Topics: append(r.Topics, other.Topics...)})
		if want := "unconfirmed: acks=none; accepted: acks=leader; replicated: acks=all"; total.Meaning() != want {
			t.Errorf("together %s, want %s", total.Meaning(), want)
		}
	})
}

// asked counts how often it is asked.
type asked struct {
	driver.Conn

	times atomic.Int32
}

func (a *asked) Proof(_ context.Context, c driver.ProducerConfig, created *driver.TopicSpec) driver.Proof {
	a.times.Add(1)
	acks := c.Options.String("acks")
	if acks == "all" && created != nil && created.Replicas == 3 {
		return driver.Proof{Confirm: driver.Replicated, How: "acks=all"}
	}
	return driver.Proof{How: "acks=" + acks}
}

// Producers of the same options may prove different things: the weakest is what holds for the topic.
func TestAProducerThatProvesLess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Config{})
		defer b.finish()
		for _, p := range []driver.Proof{{Confirm: driver.Replicated, How: "1 replica"}, {Confirm: driver.Accepted, How: "one server"}} {
			pub, err := b.run.NewPublisher(t.Context(), finding{b.conn, p}, b.topic, driver.ProducerConfig{Topic: "orders", Window: 1})
			if err != nil {
				t.Fatal(err)
			}
			s := pub.NewSender(StampInBody, b.series)
			b.produce(s, 1)
			if got := s.Proof(); got.How != p.How {
				t.Errorf("%+v, want %q", got, p.How)
			}
		}
		topic := b.run.NewCollector().Result().Topics[0]
		if want := "accepted: one server; replicated: 1 replica"; topic.Confirm != "accepted" || topic.Meaning() != want {
			t.Errorf("%s: %s, want %s", topic.Confirm, topic.Meaning(), want)
		}
	})
}

// finding makes producers that find for themselves what they prove.
type finding struct {
	driver.Conn

	proof driver.Proof
}

func (f finding) NewProducer(ctx context.Context, c driver.ProducerConfig) (driver.Producer, error) {
	p, err := f.Conn.NewProducer(ctx, c)
	return found{p, f.proof}, err
}

type found struct {
	driver.Producer

	proof driver.Proof
}

func (f found) Proof(context.Context, driver.ProducerConfig, *driver.TopicSpec) driver.Proof {
	return f.proof
}

// Nor is what a consumer did not ask for.
func TestWhatAConsumerDidNotSelectIsNotCalledLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Config{})
		collector := b.run.NewCollector()
		d := b.topic.Address.Driver
		d.Options = append(d.Options, driver.Option{Name: "filter", Scope: driver.OnConsumer, Type: driver.String, Selects: true})
		c := b.consumer(driver.ConsumerConfig{Group: "workers", Options: driver.Values{"filter": "a"}})
		b.produce(b.sender(100), 10)
		b.receive(c, 10)
		b.produce(b.sender(100), 5)
		if err := b.conn.(driver.Admin).PurgeTopic(t.Context(), "orders"); err != nil { // as if they had not been selected
			t.Fatal(err)
		}
		b.finish()
		if a := collector.Result().Topics[0].Groups[0]; a.Lost != 0 || a.Why[account.OtherReader] != 5 {
			t.Errorf("%+v", a.Account)
		}
	})
}

// What goes where its key says may have been meant for others: nobody but the broker knows whether what a group lacks is lost.
func TestWhatIsRoutedByItsKeyIsNotCalledLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Config{})
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
		verdict.Judge(r, verdict.Circumstances{})
		if a := r.Topics[0].Groups[0]; a.Lost != 0 || a.Uncertain != 5 {
			t.Errorf("%+v", a.Account)
		}
		if !reasontest.Has(r.Verdict.Invalid(), "uncertain why=other-reader count=5") {
			t.Errorf("%q", reasontest.Codes(r.Verdict.Reasons))
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
