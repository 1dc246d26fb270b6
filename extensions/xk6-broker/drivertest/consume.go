package drivertest

import (
	"bytes"
	"context"
	"errors"
	"strings"
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
	{"start new", func(k *kit) { k.started(driver.StartNew) }},
	{"start earliest", func(k *kit) { k.started(driver.StartEarliest) }},
	{"replay", replay},
	{"start refused", startRefused},
	{"prefetch bounds what is unsettled", prefetch},
}

func firstNotSecond(k *kit) {
	f := k.flow()
	for range 5 {
		b := f.send("only", 1)
		k.same(f.r.next(100), b)
	}
}

func fills(k *kit) {
	f := k.flow()
	b := f.send("many", 500)
	var got driver.Batch
	calls := 0
	for ; len(got) < len(b); calls++ {
		got = append(got, f.r.next(50)...)
	}
	k.same(got, b)
	if calls == len(b) {
		k.Errorf("%d messages waited, and each call of Receive returned one", len(b))
	}
}

// staysValid looks at the first batch again after all others.
func staysValid(k *kit) {
	f := k.flow()
	b := f.send("stays", 300)
	got := f.r.next(10)
	var first driver.Batch
	for _, m := range got {
		first = append(first, driver.Message{Body: bytes.Clone(m.Body)})
	}
	got = append(got, f.r.take(len(b)-len(got))...)
	k.same(got[:len(first)], first)
	k.same(got, b)
}

func stamps(k *kit) {
	f := k.flow()
	sent := driver.Now()
	f.send("stamp", 20)
	for _, m := range f.r.finish(20) {
		if now := driver.Now(); m.Received < sent || m.Received > now {
			k.Errorf("received %d ns after it was sent and %d ns before now", m.Received-sent, now-m.Received)
		}
		if !strings.Contains(m.Topic, f.topic) {
			k.Errorf("sent to topic %q, received from %q", f.topic, m.Topic)
		}
		if k.f.Attempts != (m.Attempt == 1) || m.Attempt > 1 {
			k.Errorf("attempt %d on the first delivery, and Attempts is claimed: %t", m.Attempt, k.f.Attempts)
		}
	}
}

// pair makes two consumers, each with its own connection, then sends messages, and receives until
// the two have a number of messages together.
func (k *kit) pair(sent driver.Batch, wanted int, group, other string) (first, second driver.Batch) {
	c := k.open()
	topic := k.topic(c, 4)
	one := k.consumerWith(k.open(), k.config(topic, group))
	two := k.consumerWith(k.open(), k.config(topic, other))
	k.producer(c, topic).send(sent)
	receive := func(d time.Duration) {
		first = append(first, one.rest(d)...)
		second = append(second, two.rest(d)...)
	}
	k.eventually(func() bool {
		receive(20 * time.Millisecond)
		return len(first)+len(second) >= wanted
	})
	receive(quiet())
	return first, second
}

// share proves that two consumers share the messages.
func (k *kit) share(group, other string) {
	b := k.messages("pair", 400)
	one, two := k.pair(b, len(b), group, other)
	k.same(append(one, two...), b)
}

// both proves that each of two consumers receives all messages.
func (k *kit) both(group, other string) {
	b := k.messages("pair", 100)
	one, two := k.pair(b, 2*len(b), group, other)
	k.same(one, b)
	k.same(two, b)
}

func groupShares(k *kit) {
	k.claims(k.f.Groups, "groups")
	k.share("shared", "shared")
}

func groupsIndependent(k *kit) {
	k.claims(k.f.Groups && (k.f.Replay || k.f.Fanout), "several groups on one topic")
	k.both("one", "two")
}

func groupsRefused(k *kit) {
	k.claims(!k.f.Groups, "no groups")
	c := k.open()
	config := k.usual(k.topic(c, 1))
	config.Group = "group"
	k.refused("a group", c, config)
}

func groupless(k *kit) {
	if k.f.Fanout {
		k.both("", "")
	} else {
		k.share("", "")
	}
}

// started sends, makes a consumer, and sends again.
func (k *kit) started(start driver.Start) {
	k.claims(k.f.Start.Has(start), "start "+start.String())
	c := k.open()
	config := k.usual(k.topic(c, 1))
	config.Start = start
	p := k.producer(c, config.Topic)
	before, after := k.messages("before", 20), k.messages("after", 20)
	p.send(before)
	r := k.consumerWith(c, config)
	p.send(after)
	if start == driver.StartEarliest {
		after = append(before, after...)
	}
	r.finishes(after)
	r.nothing(quiet())
}

func replay(k *kit) {
	k.claims(k.f.Replay, "replay")
	c := k.open()
	topic := k.topic(c, 1)
	b := k.messages("again", 50)
	k.producer(c, topic).send(b)
	for _, name := range []string{"one", "two"} {
		config := k.config(topic, name)
		config.Start = driver.StartEarliest
		r := k.consumerWith(c, config)
		r.finishes(b)
		k.close(r)
	}
}

func startRefused(k *kit) {
	c := k.open()
	config := k.usual(k.topic(c, 1))
	for _, config.Start = range []driver.Start{driver.StartNew, driver.StartEarliest} {
		if !k.f.Start.Has(config.Start) {
			k.refused("start "+config.Start.String(), c, config)
		}
	}
}

// prefetch leaves messages unsettled: a consumer gets no more than its prefetch, and another gets
// the rest. With order by partition a partition has one consumer at a time, which gets the rest.
func prefetch(k *kit) {
	k.claims(k.acks() && k.shared(), "acknowledgement")
	k.single()
	c := k.open()
	config := k.usual(k.topic(c, 1))
	config.Prefetch = 5
	r := k.consumerWith(c, config)
	b := k.messages("bound", 20)
	k.producer(c, config.Topic).send(b)
	held := r.take(config.Prefetch)
	if more, err := r.receive(k.limit(quiet()), 100); !errors.Is(err, context.DeadlineExceeded) {
		k.Fatalf("with a prefetch of %d and as many unsettled, %d more came: %v", len(held), len(more), err)
	}
	var rest driver.Batch
	if k.f.Order == driver.PerPartition {
		r.settle(held, driver.Ack)
		rest = r.finish(len(b) - len(held))
	} else {
		rest = k.consumerWith(k.open(), config).finish(len(b) - len(held))
		r.settle(held, driver.Ack)
	}
	k.same(append(held, rest...), b)
}
