package amqp1_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	amqp "github.com/Azure/go-amqp"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// What a delivery that was given back is counted as, and who gets it, is what the option requeue says.
func TestRequeue(t *testing.T) {
	t.Parallel()
	for requeue, attempt := range map[string]int32{"modify": 2, "release": 1} {
		t.Run(requeue, func(t *testing.T) {
			r := newRig(t, "BROKER_URL_AMQP1")
			topic := r.topic()
			c := r.consumer(topic, "", map[string]any{"requeue": requeue})
			r.send(r.producer(topic, nil), text("again"))
			r.settle(c, r.take(c, 1), driver.Requeue)
			b := r.take(c, 1)
			if b[0].Attempt != attempt {
				t.Errorf("attempt %d, want %d", b[0].Attempt, attempt)
			}
			r.settle(c, b, driver.Ack)
		})
	}
	t.Run("elsewhere", func(t *testing.T) {
		r := newRig(t, "BROKER_URL_AMQP1")
		topic := r.topic()
		c := r.consumer(topic, "", map[string]any{"requeue": "elsewhere"})
		r.send(r.producer(topic, nil), text("elsewhere"))
		r.settle(c, r.take(c, 1), driver.Requeue)
		r.nothing(c)
		other := r.consumer(topic, "", nil)
		b := r.take(other, 1)
		r.same(b, "elsewhere")
		r.settle(other, b, driver.Ack)
	})
}

func TestWhatIsRejectedIsADeadLetter(t *testing.T) {
	t.Parallel()
	r := newRig(t, "BROKER_URL_AMQP1")
	topic := r.topic()
	m := text("dead")
	m.Headers = []driver.Header{{Name: "source", Value: []byte(topic)}}
	c := r.consumer(topic, "", nil)
	r.send(r.producer(topic, nil), m)
	r.settle(c, r.take(c, 1), driver.Reject)
	// Other tests have dead letters in this queue too.
	dead := r.consumer("DLQ", "", map[string]any{"selector": "source = '" + topic + "'"})
	b := r.take(dead, 1)
	r.same(b, "dead")
	r.settle(dead, b, driver.Ack)
}

// A message that is delayed comes no sooner, one whose time is over comes no more, and a greater priority goes before a lesser one.
func TestProperties(t *testing.T) {
	t.Parallel()
	r := newRig(t, "BROKER_URL_AMQP1")
	topic := r.topic()
	p := r.producer(topic, nil)
	with := func(body string, properties driver.Values) driver.Message {
		m := text(body)
		m.Properties = properties
		return m
	}
	r.send(p,
		with("over", driver.Values{"ttl": time.Millisecond}),
		with("low", driver.Values{"priority": int64(1)}), text("usual"), with("high", driver.Values{"priority": int64(9)}))
	time.Sleep(20 * time.Millisecond) // what is over must be so when the first consumer comes
	c := r.consumer(topic, "", nil)
	b := r.take(c, 3)
	r.same(b, "high", "usual", "low")
	if b[0].Properties.Int("priority") != 9 || len(b[1].Properties) != 0 {
		t.Errorf("properties %v and %v", b[0].Properties, b[1].Properties)
	}
	const delay = 500 * time.Millisecond
	begin := time.Now()
	r.send(p, with("late", driver.Values{"delay": delay}))
	late := r.take(c, 1)
	r.same(late, "late")
	if took := time.Since(begin); took < delay {
		t.Errorf("it came after %v, and was to be kept back for %v", took, delay)
	}
	r.settle(c, append(b, late...), driver.Ack)
	r.nothing(c)
}

// A selector compares numbers with numbers only.
func TestTypedHeaders_Selector_ComparesNumbers(t *testing.T) {
	t.Parallel()
	r := newRig(t, "BROKER_URL_AMQP1")
	topic := r.topic()
	priced := func(n int64) driver.Message {
		return driver.Message{Body: fmt.Append(nil, n), Properties: driver.Values{"typedHeaders": map[string]any{"price": n}}}
	}
	r.send(r.producer(topic, nil), text("0"), priced(1), priced(9))
	if got := r.take(r.consumer(topic, "", map[string]any{"selector": "price > 5"}), 1)[0]; string(got.Body) != "9" {
		t.Errorf("%s", got.Body)
	}
}

func TestSelector(t *testing.T) {
	t.Parallel()
	r := newRig(t, "BROKER_URL_AMQP1")
	topic := r.topic()
	c := r.consumer(topic, "", map[string]any{"selector": "color = 'red'"})
	red, blue := text("red"), text("blue")
	red.Headers = []driver.Header{{Name: "color", Value: []byte("red")}}
	blue.Headers = []driver.Header{{Name: "color", Value: []byte("blue")}}
	r.send(r.producer(topic, nil), blue, red)
	b := r.take(c, 1)
	r.same(b, "red")
	r.settle(c, b, driver.Ack)
	r.nothing(c)
	_, err := r.tryConsumer(topic, "", 1, map[string]any{"selector": "color ="})
	r.kind(err, driver.Rejected)
}

// createTopic that meets another sort of topic says what is different.
func TestTopicsThatDiffer(t *testing.T) {
	t.Parallel()
	queues, topics := newRig(t, "BROKER_URL_AMQP1"), newRig(t, "BROKER_URL_AMQP1_PUBSUB")
	q, multicast := queues.topic(), topics.topic()
	for what, c := range map[string]struct {
		err  error
		says string
	}{
		"durable":   {queues.create(q, map[string]any{"durable": false}), "durable is true, not false"},
		"anycast":   {topics.create(q, nil), "routing type is [ANYCAST], not MULTICAST"},
		"multicast": {queues.create(multicast, nil), ""},
	} {
		queues.kind(c.err, driver.Rejected)
		if c.err != nil && !strings.Contains(c.err.Error(), c.says) {
			t.Errorf("%s: %v", what, c.err)
		}
	}
	queues.must(queues.create(q, nil))
	topics.must(topics.create(multicast, nil))
}

// What a confirmation proves follows the queue: one that is not durable is gone after a restart, with the durable messages in it.
func TestProofFollowsTheQueue(t *testing.T) {
	t.Parallel()
	r := newRig(t, "BROKER_URL_AMQP1")
	for durable, want := range map[bool]string{
		true:  "the broker accepted it, as a durable message in a durable queue",
		false: "the broker accepted it, and loses it in a restart: the queue is not durable (durable=false)",
	} {
		topic := r.topic()
		r.must(r.admin().DeleteTopic(r.context(), topic))
		r.must(r.create(topic, map[string]any{"durable": durable}))
		config := driver.ProducerConfig{Topic: topic, Options: r.values(driver.OnProducer, nil)}
		if got := r.conn.(driver.Prover).Proof(r.context(), config, nil); got.Confirm != driver.Accepted || got.How != want {
			t.Errorf("durable=%v: %+v", durable, got)
		}
	}
}

func TestATopicThatIsNotThere(t *testing.T) {
	t.Parallel()
	for _, variable := range []string{"BROKER_URL_AMQP1", "BROKER_URL_AMQP1_PUBSUB"} {
		r := newRig(t, variable)
		_, err := r.conn.NewProducer(r.context(), driver.ProducerConfig{Topic: "nowhere", Window: 1, Options: r.values(driver.OnProducer, nil)})
		r.kind(err, driver.NotFound)
		_, err = r.tryConsumer("nowhere", "", 1, nil)
		r.kind(err, driver.NotFound)
	}
}

// A topic that is deleted and created again reaches the consumer and the producer that it had.
func TestATopicThatIsCreatedAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t, "BROKER_URL_AMQP1")
	topic := r.topic()
	p, c := r.producer(topic, nil), r.consumer(topic, "", nil)
	r.send(p, text("first"))
	r.settle(c, r.take(c, 1), driver.Ack)
	r.must(r.admin().DeleteTopic(r.context(), topic))
	r.kind(r.try(p, text("nowhere"))[0], driver.NotFound)
	r.must(r.create(topic, nil))
	ctx := r.context()
	for ctx.Err() == nil && r.try(p, text("second"))[0] != nil {
		time.Sleep(5 * time.Millisecond)
	}
	b := make(driver.Batch, 1)
	n, err := 0, error(nil)
	for n == 0 && ctx.Err() == nil {
		n, err = c.Receive(ctx, b)
	}
	if string(b[0].Body) != "second" {
		t.Fatalf("%q came: %v", b[0].Body, err)
	}
	r.settle(c, b, driver.Ack)
}

// Messages of other programs have bodies of several parts and of values, and headers that are no text.
func TestMessagesOfOtherPrograms(t *testing.T) {
	t.Parallel()
	r := newRig(t, "BROKER_URL_AMQP1")
	topic := r.topic()
	var client *amqp.Conn
	if u, ok := r.conn.(driver.Unwrapper); !ok || !u.As(&client) {
		t.Fatal("no client")
	}
	session, err := client.NewSession(r.context(), nil)
	r.must(err)
	sender, err := session.NewSender(r.context(), topic, nil)
	r.must(err)
	for _, m := range []*amqp.Message{
		{Data: [][]byte{[]byte("a"), []byte("b")}},
		{Value: "text"},
		{Value: int64(7)},
		{Data: [][]byte{[]byte("c")}, ApplicationProperties: map[string]any{"n": int32(3), "b": true, "z": []byte{0xff}}},
	} {
		r.must(sender.Send(r.context(), m, nil))
	}
	r.must(session.Close(r.context()))
	c := r.consumer(topic, "", nil)
	b := r.take(c, 4)
	r.same(b, "ab", "text", "7", "c")
	if h := b[3].Headers; len(h) != 3 || string(h[0].Value) != "true" || string(h[1].Value) != "3" || string(h[2].Value) != "\xff" {
		t.Errorf("headers %q", h)
	}
	r.settle(c, b, driver.Ack)
}
