package load

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/memory"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// The result says what each sort of producer could rely on, and counts the topic's confirmations as what the weakest is.
func TestWhatConfirmationsProved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Config{})
		defer b.finish()
		b.run.Created(b.topic, driver.TopicSpec{Name: "orders", Partitions: 1, Replicas: 3})
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
		other.Topics = []result.Topic{topic}
		other.Topics[0].Proofs = []result.Proof{{Confirm: "accepted", How: "acks=leader"}}
		total := (&result.Result{Topics: append(r.Topics, other.Topics...)}).Total()
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
			if got, err := s.Proof(t.Context()); err != nil || got.How != p.How {
				t.Errorf("%+v, %v, want %q", got, err, p.How)
			}
		}
		topic := b.run.NewCollector().Result().Topics[0]
		if want := "accepted: one server; replicated: 1 replica"; topic.Confirm != "accepted" || topic.Meaning() != want {
			t.Errorf("%s: %s, want %s", topic.Confirm, topic.Meaning(), want)
		}
	})
}

// A producer that finds out for itself what it proves is asked again: its server may have been set otherwise.
func TestAProducerThatProvesLessLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Config{})
		defer b.finish()
		says := &driver.Proof{Confirm: driver.Replicated, How: "1 standby"}
		pub, err := b.run.NewPublisher(t.Context(), setOtherwise{finding{b.conn, *says}, says}, b.topic, driver.ProducerConfig{Topic: "orders", Window: 1})
		if err != nil {
			t.Fatal(err)
		}
		b.produce(pub.NewSender(StampInBody, b.series), 1)
		time.Sleep(2 * time.Second)
		synctest.Wait() // it has been asked
		*says = driver.Proof{Confirm: driver.Accepted, How: "one server"}
		b.run.ProveAgain(t.Context())
		synctest.Wait()
		topic := b.run.NewCollector().Result().Topics[0]
		if want := "accepted: one server; replicated: 1 standby"; topic.Confirm != "accepted" || topic.Meaning() != want {
			t.Errorf("%s: %s, want %s", topic.Confirm, topic.Meaning(), want)
		}
	})
}

// setOtherwise makes producers whose proof changes.
type setOtherwise struct {
	finding

	says *driver.Proof
}

func (s setOtherwise) NewProducer(ctx context.Context, c driver.ProducerConfig) (driver.Producer, error) {
	p, err := s.Conn.NewProducer(ctx, c)
	return changing{p, s.says}, err
}

type changing struct {
	driver.Producer

	says *driver.Proof
}

func (c changing) Proof(context.Context, driver.ProducerConfig, *driver.TopicSpec) driver.Proof {
	return *c.says
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

// A topic that the test deletes and makes again as another one proves another thing to those who send on.
func TestATopicThatIsMadeAgainIsAskedOfAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Config{})
		defer b.finish()
		asked := &asked{Conn: b.conn}
		b.conn = asked
		b.run.Created(b.topic, driver.TopicSpec{Name: "orders", Partitions: 1, Replicas: 3})
		pub, err := b.run.NewPublisher(t.Context(), b.conn, b.topic, driver.ProducerConfig{Topic: "orders", Window: 1, Options: driver.Values{"acks": "all"}})
		if err != nil {
			t.Fatal(err)
		}
		s := pub.NewSender(StampInBody, b.series)
		b.produce(s, 1)
		synctest.Wait()
		b.run.Created(b.topic, driver.TopicSpec{Name: "orders", Partitions: 1, Replicas: 3})
		if asked.times != 1 {
			t.Errorf("asked %d times of a topic that is still the same", asked.times)
		}
		b.topic.Deleted()
		b.run.Created(b.topic, driver.TopicSpec{Name: "orders", Partitions: 1, Replicas: 1})
		b.produce(s, 1)
		if got, err := s.Proof(t.Context()); err != nil || got.Confirm != "unconfirmed" {
			t.Errorf("%+v, %v", got, err)
		}
		topic := b.run.NewCollector().Result().Topics[0]
		if want := "unconfirmed: acks=all; replicated: acks=all"; topic.Meaning() != want {
			t.Errorf("%s, want %s", topic.Meaning(), want)
		}
	})
}

// telling is a broker that says what a topic is.
type telling struct {
	asked

	gone bool
}

func (b *telling) DescribeTopic(context.Context, string) (driver.TopicInfo, error) {
	if b.gone {
		return driver.TopicInfo{}, errors.New("no such topic")
	}
	return driver.TopicInfo{}, nil
}

func (b *telling) Proof(context.Context, driver.ProducerConfig, *driver.TopicSpec) driver.Proof {
	b.times++
	return driver.Proof{Confirm: driver.Accepted, How: fmt.Sprint(b.times)}
}

// A topic that others have made otherwise is asked of again: by ready(), once a second at most, and at the test's end, while it is there.
func TestATopicThatOthersMakeOtherwise(t *testing.T) {
	for gone, want := range map[bool]string{false: "accepted: 1; accepted: 2; accepted: 3", true: "accepted: 1; accepted: 2"} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, memory.Config{})
			broker := &telling{asked: asked{Conn: b.conn}}
			var s *Sender
			for range 3 { // sorts of producers: one
				pub, err := b.run.NewPublisher(t.Context(), broker, b.topic, driver.ProducerConfig{Topic: "orders", Window: 1})
				if err != nil {
					t.Fatal(err)
				}
				s = pub.NewSender(StampInBody, b.series)
			}
			b.produce(s, 1)
			for range 4 {
				if _, err := s.Proof(t.Context()); err != nil {
					t.Error(err)
				}
				time.Sleep(400 * time.Millisecond)
			}
			broker.gone = gone
			b.finish()
			if got := b.run.NewCollector().Result().Topics[0].Meaning(); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		})
	}
}

// A topic that this test has made, and that somebody else has deleted and created again since, is asked of again at the test's end.
func TestATopicThatHasVanishedAndIsThereAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Config{})
		broker := &telling{asked: asked{Conn: b.conn}}
		b.run.Created(b.topic, driver.TopicSpec{Name: "orders", Partitions: 1, Replicas: 3})
		pub, err := b.run.NewPublisher(t.Context(), broker, b.topic, driver.ProducerConfig{Topic: "orders", Window: 1})
		if err != nil {
			t.Fatal(err)
		}
		b.produce(pub.NewSender(StampInBody, b.series), 1)
		synctest.Wait() // until it is known what the confirmation proves
		b.run.vanished(b.topic)
		b.finish()
		if got, want := b.run.NewCollector().Result().Topics[0].Meaning(), "accepted: 1; accepted: 2"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	})
}

// What another process made of a topic for a while is asked of while the test runs, also where the broker tells nothing but whether the topic is what this test
// made it as.
func TestATopicThatWasAnotherOneForAWhile(t *testing.T) {
	for _, describes := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, memory.Config{})
			defer b.finish()
			broker := &telling{asked: asked{Conn: b.conn}}
			var conn driver.Conn = broker
			if !describes {
				conn = undescribed{b.conn, broker}
				b.run.Created(b.topic, driver.TopicSpec{Name: "orders", Partitions: 1, Replicas: 3})
			}
			pub, err := b.run.NewPublisher(t.Context(), conn, b.topic, driver.ProducerConfig{Topic: "orders", Window: 1})
			if err != nil {
				t.Fatal(err)
			}
			b.produce(pub.NewSender(StampInBody, b.series), 1)
			for range 3 {
				synctest.Wait()
				time.Sleep(time.Second)
				b.run.ProveAgain(t.Context())
			}
			synctest.Wait()
			if got, want := b.run.NewCollector().Result().Topics[0].Meaning(), "accepted: 1; accepted: 2; accepted: 3; accepted: 4"; got != want {
				t.Errorf("%s, want %s", got, want)
			}
		})
	}
}

// undescribed is a broker that does not tell what a topic is.
type undescribed struct {
	driver.Conn
	driver.Prover
}

// Where the broker does not tell, what this test made it as holds until the broker says that there is no such topic.
func TestATopicThatOthersDelete(t *testing.T) {
	for _, found := range []string{"send", "receive"} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, memory.Config{})
			defer b.finish()
			others := b.conn.(driver.Admin)
			b.conn = &asked{Conn: b.conn}
			b.run.Created(b.topic, driver.TopicSpec{Name: "orders", Partitions: 1, Replicas: 3})
			pub, err := b.run.NewPublisher(t.Context(), b.conn, b.topic, driver.ProducerConfig{Topic: "orders", Window: 1, Options: driver.Values{"acks": "all"}})
			if err != nil {
				t.Fatal(err)
			}
			s, c := pub.NewSender(StampInBody, b.series), b.consumer(driver.ConsumerConfig{Group: "workers"})
			b.produce(s, 1)
			synctest.Wait()
			if err := others.DeleteTopic(t.Context(), "orders"); err != nil {
				t.Fatal(err)
			}
			if found == "send" {
				s.Send(t.Context(), driver.Batch{{}}, Timing{}, func([]Receipt) {})
			} else {
				_, _ = c.Receive(t.Context(), NewBuffer(1))
			}
			synctest.Wait()
			if got, want := b.run.NewCollector().Result().Topics[0].Meaning(), "unconfirmed: acks=all; replicated: acks=all"; got != want {
				t.Errorf("%s: %s, want %s", found, got, want)
			}
		})
	}
}

// Nor is what a consumer did not ask for.
func TestWhatAConsumerDidNotSelectIsNotCalledLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Config{})
		collector := b.run.NewCollector()
		broker := b.conn
		b.conn = choosing{b.conn, b.conn.(driver.Backlogger)}
		c := b.consumer(driver.ConsumerConfig{Group: "workers"})
		b.produce(b.sender(100), 10)
		b.receive(c, 10)
		b.produce(b.sender(100), 5)
		if err := broker.(driver.Admin).PurgeTopic(t.Context(), "orders"); err != nil { // as if they had not been selected
			t.Fatal(err)
		}
		b.finish()
		if a := collector.Result().Topics[0].Groups[0]; a.Lost != 0 || a.Uncertain != 5 {
			t.Errorf("%+v", a.Account)
		}
	})
}

// choosing makes consumers that select.
type choosing struct {
	driver.Conn
	driver.Backlogger
}

func (c choosing) NewConsumer(ctx context.Context, config driver.ConsumerConfig) (driver.Consumer, error) {
	r, err := c.Conn.NewConsumer(ctx, config)
	return selecting{r}, err
}

type selecting struct{ driver.Consumer }

func (selecting) Selects() bool { return true }

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
		r.Judge(result.Circumstances{})
		if a := r.Topics[0].Groups[0]; a.Lost != 0 || a.Uncertain != 5 {
			t.Errorf("%+v", a.Account)
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
