package drivertest

import (
	"fmt"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

var order = []test{
	{"within the topic", orderTopic},
	{"within a partition", orderPartition},
	{"of each of two producers", orderProducers},
}

// ordered sends n messages in batches of several sizes without waiting for any Done in between, as a load test does.
func (s *sender) ordered(t testing.TB, b driver.Batch) {
	t.Helper()
	var sent []*receipts
	for size := 1; len(b) > 0; size = size%13 + 1 {
		n := min(size, len(b))
		sent = append(sent, s.hand(t, b[:n]))
		b = b[n:]
	}
	for _, r := range sent {
		s.wait(t, r)
		if errs := r.failed(); len(errs) > 0 {
			t.Fatalf("Send: %v", errs[0])
		}
	}
}

// ascending fails the test where the messages of one flow, as told by of, are not in the order of their bodies.
func ascending(t testing.TB, b driver.Batch, of func(driver.Message) string) {
	t.Helper()
	last := map[string]string{}
	wrong := 0
	for _, m := range b {
		flow, now := of(m), string(m.Body)
		if now < last[flow] {
			if wrong++; wrong == 1 {
				t.Errorf("in %q, %s came after %s", flow, now, last[flow])
			}
		}
		last[flow] = now
	}
	if wrong > 1 {
		t.Errorf("%d messages of %d came out of order", wrong, len(b))
	}
}

func orderTopic(t *testing.T, k *kit) {
	claimed(t, k.f.Order == driver.PerTopic, "order within a topic")
	c := k.open(t)
	topic := k.partitioned(t, c, 4)
	r, p := k.consumer(t, c, topic), k.producer(t, c, topic)
	b := messages("order", 1500)
	p.ordered(t, b)
	got := r.finish(t, len(b))
	same(t, "sent in order", bodies(got), bodies(b))
	ascending(t, got, func(driver.Message) string { return "the topic" })
}

func orderPartition(t *testing.T, k *kit) {
	claimed(t, k.f.Order == driver.PerPartition, "order within a partition")
	c := k.open(t)
	topic := k.partitioned(t, c, 4)
	r, p := k.consumer(t, c, topic), k.producer(t, c, topic)
	b := messages("order", 1500)
	if k.f.Key {
		for i := range b {
			b[i].Key = fmt.Append(nil, "key", i%10)
		}
	}
	p.ordered(t, b)
	got := r.finish(t, len(b))
	same(t, "sent in order", bodies(got), bodies(b))
	ascending(t, got, func(m driver.Message) string { return fmt.Sprint("partition ", m.Partition) })
	if !k.f.Key {
		return
	}
	ascending(t, got, func(m driver.Message) string { return "key " + string(m.Key) })
	partition := map[string]int32{}
	for _, m := range got {
		if p, ok := partition[string(m.Key)]; ok && p != m.Partition {
			t.Fatalf("key %q is in partitions %d and %d", m.Key, p, m.Partition)
		}
		partition[string(m.Key)] = m.Partition
	}
}

func orderProducers(t *testing.T, k *kit) {
	claimed(t, k.f.Order != driver.Unordered, "order")
	c := k.open(t)
	topic := k.topic(t, c)
	r := k.consumer(t, c, topic)
	const each = 300
	batches := [2]driver.Batch{messages("a", each), messages("b", each)}
	producers := [2]*sender{k.producer(t, c, topic), k.producer(t, k.open(t), topic)}
	var sent []*receipts
	for i := range each {
		for j, p := range producers {
			m := batches[j][i : i+1]
			m[0].Key = nil
			if k.f.Key {
				m[0].Key = []byte("one")
			}
			sent = append(sent, p.hand(t, m))
		}
	}
	for _, r := range sent {
		producers[0].wait(t, r)
	}
	got := r.finish(t, 2*each)
	same(t, "sent by two producers", bodies(got), bodies(batches[:]...))
	ascending(t, got, func(m driver.Message) string { return "producer " + string(m.Body[:1]) })
}
