package drivertest

import (
	"fmt"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

var order = []test{
	{"within the topic", orderTopic},
	{"within a partition", orderPartition},
	{"of each of two producers", orderProducers},
}

// ordered sends 1,500 messages with a number of keys, or without, and returns the messages
// received.
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
	if len(wrong) > 0 {
		k.Errorf("%d messages of %d came out of order %s", len(wrong), len(b), excerpt(wrong))
	}
}

func orderTopic(k *kit) {
	k.claims(k.f.Order == driver.PerTopic, "order within a topic")
	got := k.ordered(0)
	k.ascending(got, func(driver.Message) string { return "the topic" })
}

func orderPartition(k *kit) {
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
		if p, ok := partition[string(m.Key)]; ok && p != m.Partition {
			k.Fatalf("key %q is in partitions %d and %d", m.Key, p, m.Partition)
		}
		partition[string(m.Key)] = m.Partition
	}
}

func orderProducers(k *kit) {
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
}
