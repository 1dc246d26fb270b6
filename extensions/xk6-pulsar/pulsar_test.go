package pulsar

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// A connection opens where one of several servers answers, whichever the client asks first.
func TestADeadServerBesideALiveOne(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "BROKER_URL_PULSAR")
	l, err := (&net.ListenConfig{}).Listen(within(t), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	address, err := driver.ParseURL(strings.Replace(os.Getenv("BROKER_URL_PULSAR"), "://", "://"+l.Addr().String()+",", 1), nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 4 {
		c, err := address.Open(within(t), "xk6-pulsar-test")
		if err != nil {
			t.Fatal(err)
		}
		f.closes(c)
	}
}

// A batch's messages have one entry, and each a position of its own.
func TestPositionsInBatches(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "BROKER_URL_PULSAR_FAILOVER")
	topic := f.topic(1)
	p := f.producer(topic, map[string]any{"batching": "default", "batchDelay": "50ms"})
	b := numbered(100)
	places := make([]driver.Place, len(b))
	for i := range b {
		b[i].Place = &places[i]
	}
	f.send(p, b)
	shared := 0
	for i, m := range f.take(f.consumer(topic, "group", nil), len(b)) {
		got := place(&m)
		if got.Position != places[i].Position {
			t.Errorf("message %d is at %v, and its receipt says %v", i, got.Position, places[i].Position)
		}
		if i > 0 && got.Position.Compare(places[i-1].Position) <= 0 {
			t.Errorf("message %d is at %v, and the one before it at %v", i, got.Position, places[i-1].Position)
		}
		if i > 0 && got.Position.Sub == places[i-1].Position.Sub {
			shared++
		}
	}
	if shared == 0 {
		t.Error("no two messages shared an entry: nothing was batched")
	}
}

func TestBacklogOfBatches(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "BROKER_URL_PULSAR")
	for _, partitions := range []int{1, 3} {
		topic := f.topic(partitions)
		_ = f.consumer(topic, "group", map[string]any{"subscriptionType": "key-shared"})
		f.send(f.producer(topic, map[string]any{"batching": "default", "batchDelay": "50ms"}), numbered(90))
		got, err := f.conn.Backlog(within(t), topic, "group")
		if err != nil || got.Messages != 90 {
			t.Errorf("%d partitions: a backlog of %+v, %v, want 90 messages", partitions, got, err)
		}
	}
}

func TestDelayedDelivery(t *testing.T) {
	if testing.Short() {
		t.Skip("part of make test-full")
	}
	f := newFixture(t, "BROKER_URL_PULSAR")
	topic := f.topic(1)
	c := f.consumer(topic, "group", nil)
	b := numbered(2)
	const after = 3 * time.Second
	b[0].Properties = driver.Values{"deliverAfter": after}
	begin := time.Now()
	f.send(f.producer(topic, nil), b)
	got := f.take(c, 2)
	if string(got[0].Body) != "00001" || string(got[1].Body) != "00000" {
		t.Errorf("received %s and %s", got[0].Body, got[1].Body)
	}
	if took := time.Since(begin); took < after/2 {
		t.Errorf("a message delayed by %v came after %v", after, took)
	}
}

// The subscription of a consumer without a group would keep all that is sent, for ever.
func TestASubscriptionOfItsOwnGoesWithItsConsumer(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "BROKER_URL_PULSAR")
	topic := f.topic(2)
	c := f.consumer(topic, "", nil)
	own := c.(*consumer).subscription
	if _, err := f.conn.Backlog(within(t), topic, own); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(within(t)); err != nil {
		t.Fatal(err)
	}
	if _, err := f.conn.Backlog(within(t), topic, own); f.address.Driver.KindOf(err) != driver.NotFound {
		t.Errorf("the subscription %s: %v, want kind not_found", own, err)
	}
}

// A member that says another type is refused by the broker.
func TestSubscriptionTypes(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "BROKER_URL_PULSAR")
	topic := f.topic(1)
	_ = f.consumer(topic, "group", map[string]any{"subscriptionType": "key-shared"})
	config := driver.ConsumerConfig{Topic: topic, Group: "group", Prefetch: 1, Start: driver.StartNew, Options: f.values(driver.OnConsumer, nil)}
	if _, err := f.conn.NewConsumer(within(t), config); f.address.Driver.KindOf(err) != driver.Rejected {
		t.Errorf("a member with another type: %v, want kind rejected", err)
	}
}

func TestKindsOfErrors(t *testing.T) {
	for want, errs := range map[driver.Kind][]error{
		driver.Denied:       {&refusedError{"no token"}, errors.New("server error: AuthorizationError: no"), &statusError{code: 401}},
		driver.NotFound:     {errors.New("TopicNotFound"), errors.Join(pulsar.ErrTopicNotfound, errors.New("x")), &statusError{code: 404}},
		driver.Timeout:      {pulsar.ErrSendTimeout, errors.New("request timed out")},
		driver.Rejected:     {pulsar.ErrMessageTooLarge, errTopicName, errors.New("server error: ConsumerBusy: exclusive")},
		driver.Disconnected: {errors.New("connection closed"), errGone, errors.New("server error: ServiceNotReady: x")},
		driver.Throttled:    {pulsar.ErrProducerBlockedQuotaExceeded, &statusError{code: 429}},
		driver.Unknown:      {errors.New("what?")},
	} {
		for _, err := range errs {
			if got := classify(err); got != want {
				t.Errorf("%v: kind %s, want %s", err, got, want)
			}
		}
	}
}

func TestNamesOfTopics(t *testing.T) {
	c := &conn{namespace: "public/default"}
	for name, want := range map[string]string{
		"orders":                     "persistent://public/default/orders",
		"acme/shop/orders":           "persistent://acme/shop/orders",
		"non-persistent://a/b/c":     "non-persistent://a/b/c",
		"persistent://a/b/c":         "persistent://a/b/c",
		"a/b":                        "",
		"":                           "",
		"kafka://a/b/c":              "",
		"persistent://a/b/c/d":       "",
		"persistent://a//c":          "",
		"persistent://public/orders": "",
	} {
		got, err := c.topic(name)
		if want == "" != (err != nil) || err == nil && got.String() != want {
			t.Errorf("%q is %v, %v, want %q", name, got, err, want)
		}
	}
}

// message is one of the client's, of which nothing but its partition counts.
type message struct {
	pulsar.Message
	id pulsar.MessageID
}

func (m *message) ID() pulsar.MessageID { return m.id }

func messageOf(partition int32, entry int64) *delivery {
	return &delivery{Message: &message{id: pulsar.NewMessageID(1, entry, 0, partition)}}
}

// The client's queue holds a permit for what is not settled, and none for what is, also where it was emptied without a word.
func TestPermits(t *testing.T) {
	p := newPermits(3)
	var all []*delivery
	arrive := func(partition int32) {
		d := messageOf(partition, int64(len(all)))
		all = append(all, d)
		p.arrive(d)
	}
	settle := func(i int) { _, _ = p.settle(driver.Batch{{Token: all[i]}}) }
	expect := func(when string, queued, open int) {
		t.Helper()
		if p.queued != queued || p.open != open {
			t.Errorf("%s: %d in the queues and %d open, want %d and %d", when, p.queued, p.open, queued, open)
		}
	}
	arrive(0)
	arrive(1)
	arrive(0)
	settle(2)
	expect("one of three is settled", 3, 2)
	if !p.surplus() {
		t.Error("nothing to be taken")
	}
	p.taken(all[0].Message) // permits know of no message
	expect("and one was taken", 2, 2)
	if p.surplus() {
		t.Error("more is to be taken")
	}
	arrive(0) // after the client has connected again: what it had of partition 0, number 2, it has no more, and number 0, which was taken, comes again
	settle(1)
	p.taken(all[3].Message)
	expect("the queue was emptied meanwhile", 1, 1)
	settle(0)
	settle(3)
	expect("all is settled", 1, 0)
	p.taken(all[1].Message)
	expect("in the end", 0, 0)
	if ids, err := p.settle(driver.Batch{{Token: all[1]}}); len(ids) != 0 || !errors.Is(err, errSettled) {
		t.Errorf("settled twice: %v, %v", ids, err)
	}
}

// What a prefetch has room for beyond the client's queue is taken from it before it is settled, all but one.
func TestPermitsBeyondTheQueue(t *testing.T) {
	p := newPermits(100)
	for n := range 100 {
		d := messageOf(0, int64(n))
		p.arrive(d)
		for queue := p.queues[0]; p.surplus(); queue = p.queues[0] {
			p.taken(queue[0].Message)
		}
		if want := max(1, n+1-75); p.queued != want || p.open != n+1 {
			t.Fatalf("of %d, %d are in the queue, want %d", p.open, p.queued, want)
		}
	}
}

// A consumer gets what its prefetch has room for, but for an eighth: the client gives back permits some at a time, and keeps the rest.
func TestAnApplicationThatHoldsMostOfItsPrefetch(t *testing.T) {
	t.Parallel()
	for _, variable := range []string{"BROKER_URL_PULSAR", "BROKER_URL_PULSAR_FAILOVER"} {
		const prefetch, most, rounds = 100, 88, 8
		f := newFixture(t, variable)
		topic := f.topic(0)
		c := f.consumer(topic, "group", nil) // of a prefetch of 100
		p := f.producer(topic, nil)
		f.send(p, numbered(most*rounds+prefetch))
		for range rounds {
			if err := c.Settle(within(t), f.take(c, most), driver.Ack); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A kind of its own for a broker that refuses: the client says "connection error" of anything.
func TestTheJournalExplains(t *testing.T) {
	j := newJournal()
	j.Warnf(refusal+" '%s'", "Unable to authenticate")
	err := j.explain(errors.New("connection error"))
	if got := classify(err); got != driver.Denied {
		t.Errorf("kind %s: %v", got, err)
	}
	j.SubLogger(nil).WithError(context.DeadlineExceeded).Warn("Failed to connect to broker.")
	if err := j.explain(errors.New("connection error")); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}
