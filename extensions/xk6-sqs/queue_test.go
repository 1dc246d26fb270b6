package sqs_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// TestEachEntryHasItsOwnFate sends batches of ten with messages in them that the service refuses: those alone fail, and all others arrive.
func TestEachEntryHasItsOwnFate(t *testing.T) {
	t.Parallel()
	s := standard(t, map[string]any{"inFlight": 1})
	topic := s.topic(t)
	var eleven []driver.Header
	for i := range 11 {
		eleven = append(eleven, driver.Header{Name: fmt.Sprint("h", i), Value: []byte("v")})
	}
	b := make(driver.Batch, 30)
	for i := range b {
		b[i].Body = fmt.Append(nil, i)
	}
	b[3].Headers, b[17].Headers = eleven, eleven
	b[21].Body = bytes.Repeat([]byte("x"), 1<<20+1)
	want := map[string]bool{}
	for i, err := range sendAll(t, s.produce(t, topic), b) {
		refused := i == 3 || i == 17 || i == 21
		if got := kindOf(t, err); refused != (err != nil) || refused && got != driver.Rejected {
			t.Errorf("message %d: %v", i, err)
		}
		if !refused {
			want[string(b[i].Body)] = true
		}
	}
	for _, m := range receive(t, s.consumeUpTo(t, topic, 100), len(want)) {
		delete(want, string(m.Body))
	}
	if len(want) > 0 {
		t.Errorf("confirmed and not received: %v", want)
	}
}

// TestLargeMessagesShareNoRequest sends more than a request may have.
func TestLargeMessagesShareNoRequest(t *testing.T) {
	t.Parallel()
	s := standard(t, map[string]any{"inFlight": 1})
	topic := s.topic(t)
	b := make(driver.Batch, 8)
	for i := range b {
		b[i].Body = bytes.Repeat([]byte{byte('a' + i)}, 400_000)
	}
	for i, err := range sendAll(t, s.produce(t, topic), b) {
		if err != nil {
			t.Errorf("message %d: %v", i, err)
		}
	}
	for _, m := range receive(t, s.consume(t, topic), len(b)) {
		if len(m.Body) != 400_000 {
			t.Errorf("%d bytes came", len(m.Body))
		}
	}
}

// TestVisibilityTimeout leaves a message with a consumer that has room for no other: it gets it again.
func TestVisibilityTimeout(t *testing.T) {
	t.Parallel()
	s := standard(t, map[string]any{"visibilityTimeout": "1s"})
	topic := s.topic(t)
	r := s.consumeUpTo(t, topic, 1)
	begin := time.Now()
	mustSend(t, s.produce(t, topic), "m")
	held := receive(t, r, 1)
	again := receive(t, r, 1)
	if held[0].Attempt != 1 || again[0].Attempt != 2 {
		t.Errorf("attempts %d and %d, want 1 and 2", held[0].Attempt, again[0].Attempt)
	}
	if took := time.Since(begin); took < time.Second {
		t.Errorf("delivered again after %v, and the time-out is 1s", took)
	}
}

func TestRequeueDelay(t *testing.T) {
	t.Parallel()
	s := standard(t, map[string]any{"requeueDelay": "1s", "visibilityTimeout": "1h"})
	topic := s.topic(t)
	r := s.consume(t, topic)
	mustSend(t, s.produce(t, topic), "m")
	held := receive(t, r, 1)
	begin := time.Now()
	settle(t, r, held, driver.Requeue)
	again := receive(t, r, 1)
	if took := time.Since(begin); took < 900*time.Millisecond {
		t.Errorf("delivered again after %v, and the delay is 1s", took)
	}
	settle(t, r, again, driver.Ack)
}

// TestDeadLetterQueue gives a message back until the service moves it.
func TestDeadLetterQueue(t *testing.T) {
	t.Parallel()
	for name, connect := range map[string]func(*testing.T, map[string]any) server{"standard": standard, "fifo": fifo} {
		t.Run(name, func(t *testing.T) {
			dead := "dead" + fmt.Sprint(time.Now().UnixNano())
			s := connect(t, map[string]any{"deadLetterQueue": dead, "maxReceiveCount": 2})
			topic := s.topic(t)
			t.Cleanup(func() { s.remove(t, dead) })
			r, undertaker := s.consume(t, topic), s.consume(t, dead)
			mustSend(t, s.produce(t, topic), "m")
			for attempt := range int32(2) {
				b := receive(t, r, 1)
				if b[0].Attempt != attempt+1 {
					t.Errorf("attempt %d, want %d", b[0].Attempt, attempt+1)
				}
				settle(t, r, b, driver.Requeue)
			}
			if got := receive(t, undertaker, 1); string(got[0].Body) != "m" {
				t.Errorf("dead letter %q", got[0].Body)
			}
			s.create(t, topic) // again, with the same policy
			if b := s.backlog(t, topic); b.Messages != 0 {
				t.Errorf("a backlog of %d", b.Messages)
			}
		})
	}
}

// TestDelay sends one message with the delay of its producer, which is longer than the test, and two with their own.
func TestDelay(t *testing.T) {
	t.Parallel()
	s := standard(t, map[string]any{"delay": "15m"})
	topic := s.topic(t)
	r, p := s.consume(t, topic), s.produce(t, topic)
	begin := time.Now()
	if err := errors.Join(sendAll(t, p, driver.Batch{
		{Body: []byte("kept back")},
		{Body: []byte("late"), Properties: driver.Values{"delay": time.Second}},
		{Body: []byte("soon"), Properties: driver.Values{"delay": time.Duration(0)}},
	})...); err != nil {
		t.Fatal(err)
	}
	got := receive(t, r, 2)
	if took := time.Since(begin); took < time.Second {
		t.Errorf("%q came after %v, and one was to come after 1s", got[1].Body, took)
	}
	settle(t, r, got, driver.Ack)
	for _, m := range got {
		if string(m.Body) == "kept back" {
			t.Error("a message came that was to come after 15m")
		}
	}
	if b := s.backlog(t, topic); b.Messages != 1 {
		t.Errorf("a backlog of %d, want 1: the message that is kept back", b.Messages)
	}
}

// TestOrderOfAll has one group for all messages without a key, and reads them by batches that must be settled before the next can come.
func TestOrderOfAll(t *testing.T) {
	t.Parallel()
	s := fifo(t, map[string]any{"messageGroups": 1})
	topic := s.topic(t)
	p, r := s.produce(t, topic), s.consume(t, topic)
	for i := range 5 {
		var bodies []string
		for j := range 9 {
			bodies = append(bodies, fmt.Sprintf("%02d", i*9+j))
		}
		mustSend(t, p, bodies...)
	}
	for n := 0; n < 45; {
		b := make(driver.Batch, 10)
		some, err := r.Receive(t.Context(), b)
		if err != nil {
			t.Fatal(err)
		}
		for i := range b[:some] {
			if want := fmt.Sprintf("%02d", n+i); string(b[i].Body) != want || b[i].Key != nil || b[i].Partition != 0 {
				t.Fatalf("received %q of key %q and partition %d, want %s", b[i].Body, b[i].Key, b[i].Partition, want)
			}
		}
		settle(t, r, b[:some], driver.Ack)
		n += some
	}
}

// TestDeduplicationID sends two messages that are one for the service: both are confirmed, and the first one comes.
func TestDeduplicationID(t *testing.T) {
	t.Parallel()
	s := fifo(t, nil)
	topic := s.topic(t)
	same := driver.Values{"deduplicationId": "same"}
	p := s.produce(t, topic)
	for i, err := range sendAll(t, p, driver.Batch{
		{Key: []byte("k"), Body: []byte("first"), Properties: same}, {Key: []byte("k"), Body: []byte("second"), Properties: same}, {Key: []byte("k"), Body: []byte("third")},
	}) {
		if err != nil {
			t.Fatalf("message %d: %v", i, err)
		}
	}
	got := receive(t, s.consume(t, topic), 2)
	if string(got[0].Body) != "first" || string(got[1].Body) != "third" {
		t.Errorf("received %q and %q", got[0].Body, got[1].Body)
	}
}

func TestKeysThatMakeNoGroup(t *testing.T) {
	t.Parallel()
	s := fifo(t, nil)
	p := s.produce(t, s.topic(t))
	err := sendAll(t, p, driver.Batch{{Key: bytes.Repeat([]byte("k"), 129)}})[0]
	if kindOf(t, err) != driver.Rejected || !strings.Contains(err.Error(), "129") {
		t.Errorf("a key of 129 bytes: %v", err)
	}
}

// TestRecreated has another program delete the queue and create it again. ElasticMQ does not answer the polls that waited at a queue that is deleted.
func TestRecreated(t *testing.T) {
	t.Parallel()
	s := standard(t, map[string]any{"timeout": "3s"})
	topic := s.topic(t)
	p, r := s.produce(t, topic), s.consume(t, topic)
	mustSend(t, p, "before")
	settle(t, r, receive(t, r, 1), driver.Ack)
	other := standard(t, nil)
	other.remove(t, topic)
	await(t, "what is sent to a queue that was deleted is of kind not_found", func() bool { return kindOf(t, send(t, p, "nowhere")[0]) == driver.NotFound })
	other.create(t, topic)
	await(t, "the producer goes on", func() bool { return send(t, p, "after")[0] == nil })
	await(t, "the consumer goes on", func() bool {
		b := make(driver.Batch, 1)
		n, err := r.Receive(t.Context(), b)
		return err == nil && n == 1 && string(b[0].Body) == "after"
	})
}

// TestCreateTopic meets queues that exist.
func TestCreateTopic(t *testing.T) {
	t.Parallel()
	s := standard(t, map[string]any{"attributes": "VisibilityTimeout=7"})
	topic := s.topic(t)
	s.create(t, topic)
	create := func(options map[string]any, name string) error {
		other := standard(t, options)
		return other.Conn.(driver.Admin).CreateTopic(t.Context(), driver.TopicSpec{Name: name, Options: values(t, other.a, driver.OnTopic)})
	}
	for _, c := range []struct {
		options map[string]any
		name    string
		says    string
	}{
		{map[string]any{"attributes": "VisibilityTimeout=8"}, topic, `VisibilityTimeout is "7", not "8"`},
		{map[string]any{"retention": "30s"}, topic, `option "retention": 30s is not 0 or from 1m to 336h`},
		{nil, topic + ".fifo", `option "topic": it ends in .fifo`},
		{nil, "a.b", "alphanumeric"},
	} {
		if err := create(c.options, c.name); err == nil || !strings.Contains(err.Error(), c.says) || kindOf(t, err) != driver.Rejected {
			t.Errorf("%v %s: %v", c.options, c.name, err)
		}
	}
	if err := create(nil, topic); err != nil {
		t.Errorf("a queue that is otherwise than nobody asked for: %v", err)
	}
}

// TestSettleTwice is refused by the driver: the service may well confirm it.
func TestSettleTwice(t *testing.T) {
	t.Parallel()
	s := standard(t, nil)
	topic := s.topic(t)
	r := s.consume(t, topic)
	mustSend(t, s.produce(t, topic), "m")
	b := receive(t, r, 1)
	settle(t, r, b, driver.Ack)
	if err := r.Settle(t.Context(), b, driver.Ack); kindOf(t, err) != driver.Rejected {
		t.Errorf("settled again: %v", err)
	}
}
