package engine

import (
	"bytes"
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/memory"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/payload"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
)

func (b *bench) produce(s *Sender, n uint64) Produced {
	b.t.Helper()
	made, err := Produce{Count: n, Payload: payload.Spec{Size: payload.Fixed(64)}}.Run(b.t.Context(), []*Sender{s})
	if err != nil {
		b.t.Fatal(err)
	}
	return made
}

// accounts are those of the only topic, as one process of the test computes them.
func (b *bench) accounts() []account.Account {
	b.t.Helper()
	whole := account.Compute([]*account.Ledger{b.run.Ledger()}, account.Options{Complete: !b.run.shared})
	if len(whole.Topics) != 1 {
		b.t.Fatalf("%d topics, want 1", len(whole.Topics))
	}
	return whole.Topics[0].Groups
}

func (b *bench) only() account.Account {
	b.t.Helper()
	accounts := b.accounts()
	if len(accounts) != 1 {
		b.t.Fatalf("%d groups, want 1: %v", len(accounts), accounts)
	}
	return accounts[0]
}

func TestTheEndDrainsWhatNobodyRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Config{})
		b.consumer(driver.ConsumerConfig{Group: "workers"})
		b.produce(b.sender(100), 5000)
		b.finish()
		if a := b.only(); a.Expected != 5000 || a.Received != 0 || a.Drained != 5000 || a.Lost != 0 || a.Undelivered != 0 {
			t.Errorf("%+v", a)
		}
	})
}

func TestWithoutAConsumerLossIsNotObserved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Config{})
		b.produce(b.sender(100), 500)
		b.finish()
		if groups := b.run.NewCollector().Result().Topics[0].Groups; len(groups) != 0 {
			t.Errorf("%+v", groups)
		}
	})
}

func TestOnlyWhatWasSentAfterReadyIsExpected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Config{Features: memory.Subject()})
		s := b.sender(100)
		b.produce(s, 300)
		b.consumer(driver.ConsumerConfig{})
		b.produce(s, 200)
		b.finish()
		if a := b.only(); a.Expected != 200 || a.Drained != 200 || a.Lost != 0 {
			t.Errorf("%+v", a)
		}
	})
}

func TestWhatTheBrokerStillHasIsNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Config{})
		c := b.consumer(driver.ConsumerConfig{Group: "workers"})
		b.produce(b.sender(100), 500)
		if err := c.Close(t.Context()); err != nil { // nobody of the group is left to drain
			t.Fatal(err)
		}
		b.finish()
		if a := b.only(); a.Missing != 500 || a.Undelivered != 500 || a.Lost != 0 {
			t.Errorf("%+v", a)
		}
	})
}

func TestEachSubscriberOfAFanOutExpectsEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Config{Features: memory.Subject()})
		for range 3 {
			b.consumer(driver.ConsumerConfig{})
		}
		b.produce(b.sender(100), 400)
		b.finish()
		if a := b.only(); a.Subscribers != 3 || a.Expected != 1200 || a.Drained != 1200 || a.Lost != 0 {
			t.Errorf("%+v", a)
		}
	})
}

// receive takes n messages, however many calls that needs.
func (b *bench) receive(c *Consumer, n int) *Buffer {
	b.t.Helper()
	all := NewBuffer(n)
	for got := 0; got < n; {
		part := NewBuffer(n - got)
		more, err := c.Receive(b.t.Context(), part)
		if err != nil {
			b.t.Fatal(err)
		}
		c.HandOver(part, more)
		copy(all.Messages[got:], part.Messages[:more])
		copy(all.Stamps[got:], part.Stamps[:more])
		copy(all.Stamped[got:], part.Stamped[:more])
		got += more
	}
	return all
}

// tardy is a consumer whose settling returns when others may go on.
type tardy struct {
	driver.Consumer

	after func()
}

func (c tardy) Settle(ctx context.Context, b driver.Batch, o driver.Outcome) error {
	err := c.Consumer.Settle(ctx, b, o)
	c.after()
	return err
}

// A message that comes again before the broker has said that it took it back has a redelivery time, too.
func TestARedeliveryBeforeTheAnswerIsTimed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Config{})
		c, other := b.consumer(driver.ConsumerConfig{Group: "workers"}), b.consumer(driver.ConsumerConfig{Group: "workers"})
		b.produce(b.sender(1), 1)
		in := b.receive(c, 1)
		c.consumer = tardy{c.consumer, func() {
			time.Sleep(time.Second)
			b.settle(other, b.receive(other, 1), 0, 1, driver.Ack)
		}}
		b.settle(c, in, 0, 1, driver.Requeue)
		b.finish()
		if h := b.series.Trend(recording.Open, recording.RedeliveryTime); h.Count() != 1 {
			t.Errorf("redelivery time: %d values", h.Count())
		}
	})
}

func TestRequeuedMessagesComeBackAndAreTimed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Config{})
		c := b.consumer(driver.ConsumerConfig{Group: "workers"})
		b.produce(b.sender(100), 10)
		in := b.receive(c, 10)
		if err := c.Settle(t.Context(), in, 0, 10, driver.Requeue); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		in = b.receive(c, 10)
		if err := c.Settle(t.Context(), in, 0, 10, driver.Ack); err != nil {
			t.Fatal(err)
		}
		b.finish()
		if a := b.only(); a.Redelivered != 10 || a.Duplicated != 0 || a.Lost != 0 || a.Received != 10 {
			t.Errorf("%+v", a)
		}
		if h := b.series.Trend(recording.Open, recording.RedeliveryTime); h.Count() != 10 || h.Max() > int64(2*time.Second) {
			t.Errorf("redelivery time: %d values, max %v", h.Count(), time.Duration(h.Max()))
		}
		if b.series.Trend(recording.Closed, recording.E2ELatency).Count() != 10 {
			t.Error("a second copy has no end-to-end latency of its own")
		}
	})
}

func TestAConsumerThatDiesMidBatchLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Config{})
		dying := b.consumer(driver.ConsumerConfig{Group: "workers"})
		b.produce(b.sender(1000), 100)
		b.receive(dying, 40)
		living := b.consumer(driver.ConsumerConfig{Group: "workers"})
		if err := dying.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.receive(living, 100)
		b.finish()
		if a := b.only(); a.Redelivered < 40 || a.Lost != 0 || a.Received != 100 {
			t.Errorf("%+v", a)
		}
	})
}

func TestSendsThatFailAreMeasuredApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Config{Service: func(int64) time.Duration { return time.Hour }})
		s := b.sender(10)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		failed := make(chan []Receipt, 2)
		body := func() driver.Batch { return driver.Batch{{Body: make([]byte, 1)}} }
		s.Send(ctx, body(), Timing{}, func(r []Receipt) { failed <- r })
		closing, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		_ = s.pub.producer.Close(closing) // it fails the message that is outstanding
		if r := <-failed; r[0].Err == nil {
			t.Fatal("no error")
		}
		h := b.series.Trend(recording.Closed, recording.FailedLatency)
		if h.Count() != 1 || b.series.Trend(recording.Closed, recording.PublishLatency).Count() != 0 || b.series.Count(recording.Confirmed) != 0 {
			t.Errorf("failed %d, confirmed %d", h.Count(), b.series.Count(recording.Confirmed))
		}
		for labels, n := range b.series.measured(everyPhase).Errors {
			if labels.Op != "send" || n != 1 {
				t.Errorf("%v: %d", labels, n)
			}
		}
	})
}

func TestForeignAndDamagedMessagesAreToldApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Config{}).process("test")
		c := b.consumer(driver.ConsumerConfig{Group: "workers"})
		raw, err := b.conn.NewProducer(t.Context(), driver.ProducerConfig{Topic: "orders", Window: 10})
		if err != nil {
			t.Fatal(err)
		}
		stamped := func(run uint32, damage bool) []byte {
			body := make([]byte, StampSize+10)
			stamp := Stamp{Run: run, Producer: 1, Due: driver.Now(), Sent: driver.Now()}
			stamp.put(body, body[StampSize:])
			if damage {
				body[StampSize+3]++
			}
			return body
		}
		looksLike := []driver.Message{
			{Body: []byte("x"), Headers: []driver.Header{{Name: StampHeader, Value: []byte("hello")}}},
			{Body: []byte("x"), Headers: []driver.Header{{Name: StampHeader, Value: bytes.Repeat([]byte{'?'}, stampTextLen)}}},
			{Body: []byte("x"), Headers: []driver.Header{{Name: StampHeader, Value: bytes.Repeat([]byte{'A'}, stampTextLen)}}},
		}
		for _, damage := range []string{"x", ""} { // another test's, and this one's
			m := driver.Message{Body: []byte("payload")}
			attachStamp(&m, StampInHeader)
			stamp := Stamp{Run: b.run.ID + uint32(len(damage)), Producer: 1, Due: driver.Now(), Sent: driver.Now()}
			writeStamp(&stamp, &m, StampInHeader, new([StampSize]byte))
			m.Body = []byte("damaged")
			looksLike = append(looksLike, m)
		}
		bodies := [][]byte{[]byte("hello"), stamped(b.run.ID, true), stamped(b.run.ID+1, false), stamped(b.run.ID, false)}
		for _, body := range bodies {
			raw.Send(t.Context(), driver.Batch{{Body: body}}, func(_ int, err error) {
				if err != nil {
					t.Error(err)
				}
			})
		}
		for _, m := range looksLike {
			raw.Send(t.Context(), driver.Batch{m}, func(int, error) {})
		}
		b.receive(c, len(bodies)+len(looksLike))
		if err := raw.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.finish()
		for counter, want := range map[recording.Counter]int64{recording.Unstamped: 5, recording.Corrupted: 2, recording.Foreign: 1, recording.Sibling: 1, recording.Received: 9} {
			if got := b.series.Count(counter); got != want {
				t.Errorf("%v: %d, want %d", counter, got, want)
			}
		}
		// The message of another process of this test is measured; one left over from another test is not.
		if n := b.series.Trend(recording.Open, recording.E2ELatency).Count(); n != 1 {
			t.Errorf("%d end-to-end latencies, want 1", n)
		}
	})
}

func TestStampSurvivesTheWayThereAndBack(t *testing.T) {
	for _, mode := range []StampMode{StampInHeader, StampInBody} {
		m := driver.Message{Body: []byte("payload"), Headers: []driver.Header{{Name: "a", Value: []byte("b")}}}
		attachStamp(&m, mode)
		sent := Stamp{Run: 7, Producer: 1<<63 | 5, Sequence: maxSequence - 1, Due: 123456789, Sent: 987654321}
		writeStamp(&sent, &m, mode, new([StampSize]byte))
		var got Stamp
		is := got.take(&m, 7)
		if got.front != mode.Front() {
			t.Errorf("%s: %d bytes of the body", mode, got.front)
		}
		if got.front = 0; is != stamped || got != sent {
			t.Errorf("%s: %+v, %v", mode, got, is)
		}
		if string(m.Body) != "payload" || len(m.Headers) != 1 || m.Headers[0].Name != "a" {
			t.Errorf("%s: the message is not as it was: %q %v", mode, m.Body, m.Headers)
		}
	}
}

func TestPayloadTooSmallForItsStamp(t *testing.T) {
	small := payload.Spec{Size: payload.Fixed(10)}
	if err := small.Check(StampInBody.Front()); err == nil {
		t.Error("no error")
	}
	if err := small.Check(StampOff.Front()); err != nil {
		t.Error(err)
	}
}

func FuzzStamp(f *testing.F) {
	body := make([]byte, StampSize+5)
	(&Stamp{Run: 1, Producer: 2, Sequence: 3, Due: 4, Sent: 5}).put(body, body[StampSize:])
	f.Add(body, []byte("x"))
	f.Add([]byte("kx"), make([]byte, stampTextLen))
	f.Fuzz(func(t *testing.T, body, header []byte) {
		m := driver.Message{Body: body, Headers: []driver.Header{{Name: StampHeader, Value: header}}}
		before := len(body)
		var s Stamp
		is := s.take(&m, 1)
		if is != stamped && (len(m.Body) != before || len(m.Headers) != 1) {
			t.Error("a message without a sound stamp was changed")
		}
	})
}

func BenchmarkStamp(b *testing.B) {
	body := make([]byte, 100)
	s := Stamp{Run: 1, Producer: 2, Due: 4, Sent: 5}
	b.ReportAllocs()
	for b.Loop() {
		s.Sequence++
		s.put(body, body[StampSize:])
		var got Stamp
		if got.get(0, body[:StampSize], body[StampSize:]) != stamped {
			b.Fatal("damaged")
		}
	}
}
