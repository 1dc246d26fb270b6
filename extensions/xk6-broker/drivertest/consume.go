package drivertest

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

var consume = []test{
	{"waits for the first and not for the second", func(k *kit) {
		f := k.flow()
		for range 5 {
			b := f.send("only", 1)
			k.same(f.r.next(100), b)
		}
	}},
	{"fills a batch with what is there", func(k *kit) {
		f := k.flow()
		b := f.send("many", 500)
		var got driver.Batch
		calls := 0
		for ; len(got) < len(b); calls++ {
			got = append(got, f.r.next(50)...)
		}
		k.same(got, b)
		k.check(calls < len(b), "%d messages waited, and each call of Receive returned one", len(b))
	}},
	{"a batch stays as it was", func(k *kit) {
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
	}},
	{"what comes with a message", func(k *kit) {
		f := k.flow()
		sent := driver.Now()
		f.send("stamp", 20)
		for _, m := range f.r.finish(20) {
			now := driver.Now()
			k.check(m.Received >= sent && m.Received <= now,
				"received %d ns after it was sent and %d ns before now", m.Received-sent, now-m.Received)
			k.check(strings.Contains(m.Topic, f.topic), "sent to topic %q, received from %q", f.topic, m.Topic)
			k.check(k.f.Attempts == (m.Attempt == 1) && m.Attempt <= 1,
				"attempt %d on the first delivery, and Attempts is claimed: %t", m.Attempt, k.f.Attempts)
		}
	}},
	{"position", position},
	{"timestamp", timestamp},
	{"a group shares", func(k *kit) {
		k.claims(k.f.Groups, "groups")
		k.share("shared")
	}},
	{"groups are independent", func(k *kit) {
		k.claims(k.f.Groups && (k.f.Replay || k.f.Fanout), "several groups on one topic")
		k.both("one", "two")
	}},
	{"groups refused", func(k *kit) {
		k.claims(!k.f.Groups, "no groups")
		c := k.open()
		config := k.usual(k.topic(c, 1))
		config.Group = "group"
		k.refused(c, config)
	}},
	{"without a group", func(k *kit) {
		if k.f.Fanout {
			k.both("", "")
		} else {
			k.share("")
		}
	}},
	{"start new", func(k *kit) { k.started(driver.StartNew) }},
	{"start earliest", func(k *kit) { k.started(driver.StartEarliest) }},
	{"replay", func(k *kit) {
		k.claims(k.f.Replay, "replay")
		c := k.open()
		topic, b := k.topic(c, 1), k.messages("again", 50)
		k.producer(c, topic).send(b)
		for _, name := range []string{"one", "two"} {
			config := k.config(topic, name)
			config.Start = driver.StartEarliest
			r := k.consumerWith(c, config)
			r.finishes(b)
			k.close(r)
		}
	}},
	{"start refused", func(k *kit) {
		c := k.open()
		config := k.usual(k.topic(c, 1))
		for _, config.Start = range []driver.Start{driver.StartNew, driver.StartEarliest} {
			if !k.f.Start.Has(config.Start) {
				k.refused(c, config)
			}
		}
	}},
	// Leaves messages unsettled: a consumer gets no more than its prefetch, and another gets the
	// rest. With order by partition a partition has one consumer at a time, which gets the rest.
	{"prefetch bounds what is unsettled", func(k *kit) {
		k.claims(k.acks() && k.shared(), "acknowledgement")
		k.needs(k.single(), "a broker that delivers and counts single messages")
		c := k.open()
		config := k.usual(k.topic(c, 1))
		config.Prefetch = 5
		r := k.consumerWith(c, config)
		b := k.messages("bound", 20)
		k.producer(c, config.Topic).send(b)
		held := r.take(config.Prefetch)
		_, err := r.receive(k.limit(quiet()), 100)
		k.is(err, context.DeadlineExceeded) // all of the prefetch is unsettled
		var rest driver.Batch
		if k.f.Order == driver.PerPartition {
			r.settle(held, driver.Ack)
			rest = r.finish(len(b) - len(held))
		} else {
			rest = k.consumerWith(k.open(), config).finish(len(b) - len(held))
			r.settle(held, driver.Ack)
		}
		k.same(append(held, rest...), b)
	}},
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

// share proves that two consumers of a group share the messages.
func (k *kit) share(group string) {
	b := k.messages("pair", 400)
	one, two := k.pair(b, len(b), group, group)
	k.same(append(one, two...), b)
}

// both proves that the consumers of two groups receive all messages.
func (k *kit) both(group, other string) {
	b := k.messages("pair", 100)
	one, two := k.pair(b, 2*len(b), group, other)
	k.same(one, b)
	k.same(two, b)
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

var order = []test{
	{"within the topic", func(k *kit) {
		k.claims(k.f.Order == driver.PerTopic, "order within a topic")
		k.ascending(k.ordered(0), func(driver.Message) string { return "the topic" })
	}},
	{"within a partition", func(k *kit) {
		k.claims(k.f.Order == driver.PerPartition, "order within a partition")
		keys := 0
		if k.f.Key {
			keys = 10
		}
		got := k.ordered(keys)
		k.ascending(got, func(m driver.Message) string { return fmt.Sprint("partition ", m.Partition) })
		if keys == 0 {
			return
		}
		k.ascending(got, func(m driver.Message) string { return "key " + string(m.Key) })
		partition := map[string]int32{}
		for _, m := range got {
			p, ok := partition[string(m.Key)]
			k.must(!ok || p == m.Partition, "key %q is in partitions %d and %d", m.Key, p, m.Partition)
			partition[string(m.Key)] = m.Partition
		}
	}},
	{"of each of two producers", func(k *kit) {
		k.claims(k.f.Order != driver.Unordered, "order")
		f := k.flow()
		other := k.producer(k.open(), f.topic)
		const each = 300
		a, b := k.messages("a", each), k.messages("b", each)
		for i := range each {
			if k.f.Key {
				a[i].Key, b[i].Key = []byte("one"), []byte("one")
			}
			f.p.hand(a[i : i+1])
			other.hand(b[i : i+1])
		}
		f.p.succeed(append(f.p.sent, other.sent...)...)
		got := f.r.finish(2 * each)
		k.same(got, append(a, b...))
		k.ascending(got, func(m driver.Message) string { return "producer " + string(m.Body[:1]) })
	}},
}

// ordered sends 1,500 messages with a number of keys, or without, and returns those received.
func (k *kit) ordered(keys int) driver.Batch {
	f := k.flowAt(k.URL, 4)
	b := k.messages("order", 1500)
	if keys > 0 {
		for i := range b {
			b[i].Key = fmt.Append(nil, "key", i%keys)
		}
	}
	f.p.various(b)
	f.p.succeed(f.p.sent...)
	got := f.r.finish(len(b))
	k.same(got, b)
	return got
}

// ascending fails the test if the messages of one sequence are not in the order of their bodies.
func (k *kit) ascending(b driver.Batch, sequence func(driver.Message) string) {
	last := map[string]string{}
	var wrong []string
	for _, m := range b {
		name, body := sequence(m), string(m.Body)
		if body < last[name] {
			wrong = append(wrong, fmt.Sprintf("%s after %s in %s", body, last[name], name))
		}
		last[name] = body
	}
	k.check(len(wrong) == 0, "%d messages of %d came out of order %s", len(wrong), len(b), excerpt(wrong))
}
