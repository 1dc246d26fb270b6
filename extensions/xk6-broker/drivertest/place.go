package drivertest

import (
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// placeOf is what the driver tells of where a received message is.
func (k *kit) placeOf(m driver.Message) driver.Place {
	if k.d.Place == nil {
		return driver.Place{}
	}
	return k.d.Place(&m)
}

// placed makes n messages, some with keys, which have a place to be filled.
func (k *kit) placed(name string, n int) (driver.Batch, []driver.Place) {
	b, places := messages(name, n), make([]driver.Place, n)
	for i := range b {
		b[i].Place = &places[i]
		if k.f.Key && i%2 == 0 {
			b[i].Key = b[i].Body
		}
	}
	return b, places
}

// sendPlaced sends half of the messages one by one and the others together.
func (s *sender) sendPlaced(t *testing.T, b driver.Batch) {
	t.Helper()
	half := len(b) / 2
	for i := range b[:half] {
		s.send(t, b[i:i+1])
	}
	s.send(t, b[half:])
}

// position asks when the messages are settled and their consumer is closed: it is for as long as somebody holds them.
func position(t *testing.T, k *kit) {
	c := k.open(t)
	topic := k.partitioned(t, c, 4)
	r, p := k.consumer(t, c, topic), k.producer(t, c, topic)
	b, _ := k.placed("position", 40)
	p.sendPlaced(t, b)
	got := r.finish(t, len(b))
	first := k.placeOf(got[0])
	k.close(t, "consumer", r)
	places := map[string]driver.Place{}
	for _, m := range got {
		place := k.placeOf(m)
		places[string(m.Body)] = place
		if place.Position.Form != k.f.Position {
			t.Fatalf("a position of form %v, and form %v is claimed", place.Position.Form, k.f.Position)
		}
		if place.Partition != m.Partition && k.d.Place != nil {
			t.Errorf("partition %d by Message.Partition and %d by Place", m.Partition, place.Partition)
		}
		if !k.f.Partitions && m.Partition != 0 {
			t.Errorf("partition %d, and partitions are not claimed", m.Partition)
		}
	}
	if again := k.placeOf(got[0]); again != first {
		t.Errorf("%+v before the consumer was closed, and then %+v", first, again)
	}
	claimed(t, k.f.Position != driver.NoPosition, "positions")
	inOrder := b
	if k.f.Order == driver.Unordered { // those sent together may have overtaken one another
		inOrder = b[:len(b)/2]
	}
	last := map[int32]driver.Position{}
	for _, m := range inOrder {
		place := places[string(m.Body)]
		if before, ok := last[place.Partition]; ok && place.Position.Compare(before) <= 0 {
			t.Errorf("in partition %d, %s is at %v, and what was sent before it at %v", place.Partition, m.Body, place.Position, before)
		}
		last[place.Partition] = place.Position
	}
	distinct := map[driver.Place]bool{}
	for _, place := range places {
		place.Timestamp = 0
		distinct[place] = true
	}
	if len(distinct) < len(b) {
		t.Errorf("%d messages are at %d positions", len(b), len(distinct))
	}
}

// timestamp sends two messages with a pause between them. Where it can be, their consumer comes after that: what the driver sees at once the
// broker did not.
func timestamp(t *testing.T, k *kit) {
	c := k.open(t)
	topic := k.topic(t, c)
	late := k.f.Start.Has(driver.StartEarliest)
	var r *receiver
	if !late {
		r = k.consumer(t, c, topic)
	}
	p := k.producer(t, c, topic)
	b := messages("timestamp", 2)
	var begin, end [2]time.Time
	for i := range b {
		if i > 0 {
			time.Sleep(k.Quiet)
		}
		begin[i] = time.Now()
		p.send(t, b[i:i+1])
		end[i] = time.Now()
	}
	if late {
		r = k.consumerFrom(t, c, topic, driver.StartEarliest)
	}
	at := map[string]int64{}
	for _, m := range r.finish(t, 2) {
		at[string(m.Body)] = k.placeOf(m).Timestamp
	}
	first, second := at["timestamp-0000"], at["timestamp-0001"]
	if !k.f.Timestamps {
		if first != 0 || second != 0 {
			t.Errorf("timestamps %d and %d, and none are claimed", first, second)
		}
		claimed(t, false, "timestamps")
	}
	const rounding, clocks = 2 * time.Millisecond, time.Hour
	least, most := begin[1].Sub(end[0])-rounding, end[1].Sub(begin[0])+rounding
	if apart := time.Duration(second - first); apart < least || apart > most {
		t.Errorf("by their timestamps, %d and %d, the messages are %v apart; they were sent %v to %v apart", first, second, apart, least, most)
	}
	if off := begin[0].Sub(time.Unix(0, first)); off.Abs() > clocks {
		t.Errorf("timestamp %v of a message that was sent at %v", time.Unix(0, first), begin[0])
	}
}

// receiptsTell compares what the broker said when it took a message with what it says when it delivers it.
func receiptsTell(t *testing.T, k *kit) {
	c := k.open(t)
	topic := k.partitioned(t, c, 4)
	r, p := k.consumer(t, c, topic), k.producer(t, c, topic)
	b, told := k.placed("receipt", 40)
	p.sendPlaced(t, b)
	if !k.f.Receipts {
		for _, place := range told {
			if place != (driver.Place{}) {
				t.Fatalf("a receipt says %+v, and receipts are not claimed", place)
			}
		}
		claimed(t, false, "receipts that say where a message is")
	}
	if k.onlySends() {
		notProven(t, "nothing else tells where the messages are")
	}
	received := map[string]driver.Place{}
	for _, m := range r.finish(t, len(b)) {
		place := k.placeOf(m)
		place.Timestamp = 0
		received[string(m.Body)] = place
	}
	for i, m := range b {
		if want := received[string(m.Body)]; told[i] != want {
			t.Fatalf("%s was received from %+v, and its receipt says %+v", m.Body, want, told[i])
		}
	}
}

// chosenPartition sends to each partition by name, which decides whatever the key.
func chosenPartition(t *testing.T, k *kit) {
	o, ok := k.d.Option(partitionProperty)
	claimed(t, ok && o.Scope&driver.OnMessage != 0, "messages that choose their partition")
	const partitions = 4
	c := k.open(t)
	topic := k.partitioned(t, c, partitions)
	r, p := k.consumer(t, c, topic), k.producer(t, c, topic)
	b := messages("chosen", 5*partitions)
	want := map[string]int32{}
	for i := range b {
		b[i].Key = []byte("one")
		b[i].Properties = driver.Values{partitionProperty: int64(i % partitions)}
		want[string(b[i].Body)] = int32(i % partitions)
	}
	p.send(t, b)
	for _, m := range r.finish(t, len(b)) {
		if m.Partition != want[string(m.Body)] {
			t.Errorf("%s was sent to partition %d and came from %d", m.Body, want[string(m.Body)], m.Partition)
		}
	}
	nowhere := messages("nowhere", 1)
	nowhere[0].Properties = driver.Values{partitionProperty: int64(partitions)}
	if errs := p.try(t, nowhere); !k.all(errs, driver.Rejected) {
		t.Errorf("sent to a partition that there is not: %v, want an error of kind rejected", errs)
	}
}
