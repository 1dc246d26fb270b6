package drivertest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

var consume = []test{
	{"waits for the first and not for the second", firstNotSecond},
	{"fills a batch with what is there", fills},
	{"a batch stays as it was", staysValid},
	{"what comes with a message", stamps},
	{"position", position},
	{"timestamp", timestamp},
	{"a group shares", groupShares},
	{"groups are independent", groupsIndependent},
	{"groups refused", groupsRefused},
	{"without a group", groupless},
	{"start new", startNew},
	{"start earliest", startEarliest},
	{"replay", replay},
	{"start refused", startRefused},
	{"prefetch bounds what is unsettled", prefetch},
}

func firstNotSecond(t *testing.T, k *kit) {
	c := k.open(t)
	topic := k.topic(t, c)
	r, p := k.consumer(t, c, topic), k.producer(t, c, topic)
	for range 5 {
		p.send(t, messages("only", 1))
		b, err := r.receive(t, k.context(t), 100)
		if err != nil {
			t.Fatalf("Receive waited for more than the one message that there was: %v", err)
		}
		same(t, "a single message", bodies(b), []string{"only-0000"})
	}
}

func fills(t *testing.T, k *kit) {
	c := k.open(t)
	topic := k.topic(t, c)
	r, p := k.consumer(t, c, topic), k.producer(t, c, topic)
	b := messages("many", 500)
	p.send(t, b)
	var got driver.Batch
	calls := 0
	for ; len(got) < len(b); calls++ {
		some, err := r.receive(t, k.context(t), 50)
		if err != nil {
			t.Fatalf("Receive, after %d messages: %v", len(got), err)
		}
		got = append(got, some...)
	}
	same(t, "received in batches", bodies(got), bodies(b))
	if calls == len(b) {
		t.Errorf("%d messages waited, and each call of Receive gave one of them", len(b))
	}
}

func staysValid(t *testing.T, k *kit) {
	c := k.open(t)
	topic := k.topic(t, c)
	r, p := k.consumer(t, c, topic), k.producer(t, c, topic)
	b := messages("stays", 300)
	p.send(t, b)
	var first, got driver.Batch
	var seen []string
	for len(got) < len(b) {
		some, err := r.receive(t, k.context(t), 10)
		if err != nil {
			t.Fatalf("Receive: %v", err)
		}
		if first == nil {
			first, seen = some, bodies(some)
		}
		got = append(got, some...)
	}
	same(t, "the first batch, after all others", bodies(first), seen)
	same(t, "all batches", bodies(got), bodies(b))
}

func stamps(t *testing.T, k *kit) {
	c := k.open(t)
	topic := k.topic(t, c)
	r, p := k.consumer(t, c, topic), k.producer(t, c, topic)
	sent := driver.Now()
	p.send(t, messages("stamp", 20))
	for _, m := range r.finish(t, 20) {
		if now := driver.Now(); m.Received < sent || m.Received > now {
			t.Errorf("received %d ns after it was sent and %d ns before now", m.Received-sent, now-m.Received)
		}
		if !strings.Contains(m.Topic, topic) {
			t.Errorf("sent to topic %q, received from %q", topic, m.Topic)
		}
		want := int32(0)
		if k.f.Attempts {
			want = 1
		}
		if m.Attempt != want {
			t.Errorf("attempt %d on the first delivery, want %d", m.Attempt, want)
		}
	}
}

// pair makes two consumers, each with a connection of its own, then sends n messages, and receives until the two have
// wanted messages together.
func pair(t *testing.T, k *kit, n, wanted int, one, two string) (first, second, sent []string) {
	t.Helper()
	c := k.open(t)
	topic := k.partitioned(t, c, 4)
	name := func(group string) string {
		if group == "" {
			return ""
		}
		return k.group(topic, group)
	}
	a := k.consumerWith(t, k.open(t), k.config(t, topic, name(one)))
	b := k.consumerWith(t, k.open(t), k.config(t, topic, name(two)))
	p := k.producer(t, c, topic)
	m := messages("pair", n)
	p.send(t, m)
	deadline := time.Now().Add(k.Patience)
	for len(first)+len(second) < wanted && time.Now().Before(deadline) {
		first = append(first, bodies(a.rest(t, 20*time.Millisecond))...)
		second = append(second, bodies(b.rest(t, 20*time.Millisecond))...)
	}
	first = append(first, bodies(a.rest(t, k.Quiet))...)
	second = append(second, bodies(b.rest(t, k.Quiet))...)
	return first, second, bodies(m)
}

func groupShares(t *testing.T, k *kit) {
	claimed(t, k.f.Groups, "groups")
	a, b, sent := pair(t, k, 400, 400, "shared", "shared")
	same(t, "received by two members of one group", append(a, b...), sent)
}

func groupsIndependent(t *testing.T, k *kit) {
	claimed(t, k.f.Groups && (k.f.Replay || k.f.Fanout), "several groups on one topic")
	a, b, sent := pair(t, k, 100, 200, "one", "two")
	same(t, "received by one group", a, sent)
	same(t, "received by the other group", b, sent)
}

func groupsRefused(t *testing.T, k *kit) {
	if k.f.Groups {
		t.Skip("groups are claimed")
	}
	c := k.open(t)
	consumer, err := k.tryConsumer(t, c, k.config(t, k.topic(t, c), "group"))
	unsupported(t, "a group", err)
	if err == nil {
		k.close(t, "consumer", consumer)
	}
}

func groupless(t *testing.T, k *kit) {
	wanted := 100
	if k.f.Fanout {
		wanted = 200
	}
	a, b, sent := pair(t, k, 100, wanted, "", "")
	if k.f.Fanout {
		same(t, "received by a consumer without a group", a, sent)
		same(t, "received by another consumer without a group", b, sent)
		return
	}
	same(t, "received by two consumers without a group, who share as Fanout is not claimed", append(a, b...), sent)
}

func startNew(t *testing.T, k *kit) {
	claimed(t, k.f.Start.Has(driver.StartNew), "start new")
	_, after, r := k.started(t, driver.StartNew)
	same(t, "sent after NewConsumer returned", bodies(r.finish(t, len(after))), after)
	r.nothing(t, "all that was sent after NewConsumer has been received")
}

func startEarliest(t *testing.T, k *kit) {
	claimed(t, k.f.Start.Has(driver.StartEarliest), "start earliest")
	before, after, r := k.started(t, driver.StartEarliest)
	want := append(before, after...)
	same(t, "sent before and after NewConsumer", bodies(r.finish(t, len(want))), want)
	r.nothing(t, "all has been received")
}

// started sends, makes a consumer, and sends again.
func (k *kit) started(t *testing.T, start driver.Start) (before, after []string, r *receiver) {
	t.Helper()
	c := k.open(t)
	topic := k.topic(t, c)
	p := k.producer(t, c, topic)
	b := messages("before", 20)
	p.send(t, b)
	config := k.config(t, topic, k.group(topic, "group"))
	config.Start = start
	r = k.consumerWith(t, c, config)
	a := messages("after", 20)
	p.send(t, a)
	return bodies(b), bodies(a), r
}

func replay(t *testing.T, k *kit) {
	claimed(t, k.f.Replay, "replay")
	c := k.open(t)
	topic := k.topic(t, c)
	p := k.producer(t, c, topic)
	b := messages("again", 50)
	p.send(t, b)
	for _, name := range []string{"one", "two"} {
		config := k.config(t, topic, k.group(topic, name))
		config.Start = driver.StartEarliest
		r := k.consumerWith(t, c, config)
		same(t, "received by group "+name, bodies(r.finish(t, len(b))), bodies(b))
		k.close(t, "consumer", r)
	}
}

func startRefused(t *testing.T, k *kit) {
	c := k.open(t)
	topic := k.topic(t, c)
	for _, start := range []driver.Start{driver.StartNew, driver.StartEarliest} {
		if k.f.Start.Has(start) {
			continue
		}
		config := k.config(t, topic, k.group(topic, "group"))
		config.Start = start
		consumer, err := k.tryConsumer(t, c, config)
		unsupported(t, "start "+start.String(), err)
		if err == nil {
			k.close(t, "consumer", consumer)
		}
	}
}

// prefetch leaves messages unsettled: a consumer gets no more than it asked for, and another gets the rest. Where order
// is kept by partition a partition has one consumer at a time, so there is none to get the rest.
func prefetch(t *testing.T, k *kit) {
	claimed(t, k.f.Settle.Has(driver.Ack) && k.shared(), "acknowledgement")
	k.single(t)
	c := k.open(t)
	topic := k.topic(t, c)
	config := k.config(t, topic, k.group(topic, "group"))
	config.Prefetch = 5
	r, p := k.consumerWith(t, c, config), k.producer(t, c, topic)
	b := messages("bound", 20)
	p.send(t, b)
	held := r.take(t, config.Prefetch)
	ctx, cancel := context.WithTimeout(context.Background(), k.Quiet)
	defer cancel()
	if more, err := r.receive(t, ctx, 100); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("with %d messages unsettled, which is all of the prefetch, %d more came: %v", len(held), len(more), err)
	}
	var rest driver.Batch
	if k.f.Order != driver.PerPartition {
		other := k.consumerWith(t, k.open(t), config)
		rest = other.finish(t, len(b)-len(held))
		r.settle(t, held, driver.Ack)
	} else {
		r.settle(t, held, driver.Ack)
		rest = r.finish(t, len(b)-len(held))
	}
	same(t, "held and received by the other", bodies(held, rest), bodies(b))
}
