package engine

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/memory"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
)

// ready is a consumer whose messages are there, as many as are asked for.
type ready struct {
	driver.Consumer
	messages driver.Batch
}

func (r ready) Receive(_ context.Context, b driver.Batch) (int, error) {
	return copy(b, r.messages), nil
}
func (ready) Settle(context.Context, driver.Batch, driver.Outcome) error { return nil }

// What the accounting of a message takes from the driver's Receive to its settlement.
func BenchmarkReceiveHandOverSettle(b *testing.B) {
	const size = 100
	broker := memory.New(memory.Config{Name: fmt.Sprintf("memory%d", addresses.Add(1))})
	driver.Register(broker.Driver())
	address, err := driver.ParseURL(broker.URL(), nil)
	if err != nil {
		b.Fatal(err)
	}
	conn, err := address.Open(b.Context(), "test")
	if err != nil {
		b.Fatal(err)
	}
	if err := conn.(driver.Admin).CreateTopic(b.Context(), driver.TopicSpec{Name: "orders", Partitions: 1, Replicas: 1}); err != nil {
		b.Fatal(err)
	}
	run := NewRun("", 0)
	topic := run.Topic(address, "orders")
	series := run.Series(Labels{Broker: address.String(), Driver: address.Driver.Name, Topic: "orders"})
	pub, err := run.NewPublisher(b.Context(), conn, topic, driver.ProducerConfig{Topic: "orders", Window: size})
	if err != nil {
		b.Fatal(err)
	}
	s := pub.NewSender(StampInBody, series)
	c, err := run.NewConsumer(b.Context(), conn, topic, driver.ConsumerConfig{Topic: "orders", Group: "workers", Prefetch: size, Start: driver.StartNew}, series)
	if err != nil {
		b.Fatal(err)
	}
	messages := make(driver.Batch, size)
	for i := range messages {
		messages[i] = driver.Message{Body: make([]byte, StampSize), Attempt: 1}
	}
	c.consumer = ready{c.consumer, messages}
	in := NewBuffer(size)
	b.ReportAllocs()
	for b.Loop() {
		for i := range messages {
			seq := s.track.Next()
			s.track.Expect(seq)
			stamp := Stamp{Run: run.ID, Producer: s.track.ID(), Sequence: seq, Due: 1, Sent: 1}
			stamp.put(messages[i].Body, nil)
		}
		got, err := c.Receive(b.Context(), in)
		if err != nil {
			b.Fatal(err)
		}
		c.HandOver(in, got)
		if err := c.Settle(b.Context(), in, 0, got, driver.Ack); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/size, "ns/message")
}

// reporter is a consumer whose broker answers settlements later, when the test says so.
type reporter struct {
	driver.Consumer
	report func(o driver.Outcome, n int, err error)
}

func (r *reporter) OnSettled(report func(o driver.Outcome, n int, err error)) { r.report = report }

type reporting struct {
	driver.Conn
	last *reporter
}

func (c *reporting) NewConsumer(ctx context.Context, config driver.ConsumerConfig) (driver.Consumer, error) {
	opened, err := c.Conn.NewConsumer(ctx, config)
	c.last = &reporter{Consumer: opened}
	return c.last, err
}

func TestSettle_AnsweredLater_CountsWhatTheBrokerConfirmed(t *testing.T) {
	b := newBench(t, memory.Config{})
	conn := &reporting{Conn: b.conn}
	b.conn = conn
	c := b.consumer(driver.ConsumerConfig{Group: "workers"})
	b.produce(b.sender(10), 10)
	b.settle(c, b.receive(c, 10), 0, 10, driver.Ack)
	if n := b.series.Count(recording.Acked); n != 0 {
		t.Errorf("%d acked before the broker answered, want 0", n)
	}
	conn.last.report(driver.Ack, 6, nil)
	conn.last.report(driver.Ack, 4, &driver.Error{Kind: driver.Rejected, Op: "ack", Err: errors.New("invalid record state")})
	failed := int64(0)
	for of, n := range b.series.measured(everyPhase).Errors {
		if of.Op == "ack" && of.Kind == string(driver.Rejected) {
			failed += n
		}
	}
	if n := b.series.Count(recording.Acked); n != 6 || failed != 4 {
		t.Errorf("%d acked and %d failed, want 6 and 4", n, failed)
	}
	if g := b.run.Ledger().Topics[0].Groups[0]; !g.Doubtful || g.Held != 4 {
		t.Errorf("%d held, doubtful %v, want 4 that are doubtful", g.Held, g.Doubtful)
	}
}

// partly is a consumer whose broker settles one message less than it is asked to.
type partly struct{ driver.Consumer }

func (partly) Settle(_ context.Context, b driver.Batch, _ driver.Outcome) error {
	return &driver.PartError{Settled: len(b) - 1, Err: errors.New("the lease is over")}
}

func TestSettle_PartRefused_CountsTheOthers(t *testing.T) {
	b := newBench(t, memory.Config{})
	c := b.consumer(driver.ConsumerConfig{Group: "workers"})
	c.consumer = partly{c.consumer}
	b.produce(b.sender(10), 10)
	if err := c.Settle(t.Context(), b.receive(c, 10), 0, 10, driver.Ack); err == nil {
		t.Error("no error, although one message is not settled")
	}
	if n := b.series.Count(recording.Acked); n != 9 {
		t.Errorf("%d acked, want 9", n)
	}
}
