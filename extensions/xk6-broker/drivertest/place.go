package drivertest

import (
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// place returns the place that the driver reports for a received message.
func (k *kit) place(m driver.Message) driver.Place {
	if k.d.Place == nil {
		return driver.Place{}
	}
	return k.d.Place(&m)
}

// placed sends 40 messages, half of them one by one and the others together, some with keys. It
// returns them and the places of their receipts.
func (f *flow) placed(name string) (driver.Batch, []driver.Place) {
	const n = 40
	b, places := f.kit.messages(name, n), make([]driver.Place, n)
	for i := range b {
		b[i].Place = &places[i]
		if f.kit.f.Key && i%2 == 0 {
			b[i].Key = b[i].Body
		}
	}
	for i := range b[:n/2] {
		f.p.send(b[i : i+1])
	}
	f.p.send(b[n/2:])
	return b, places
}

// position reads the places of settled messages whose consumer is closed, because the engine keeps
// messages that long.
func position(k *kit) {
	f := k.flowAt(k.URL, 4)
	b, _ := f.placed("position")
	got := f.r.finish(len(b))
	first := k.place(got[0])
	k.close(f.r)
	if again := k.place(got[0]); again != first {
		k.Errorf("%+v before the consumer was closed, and then %+v", first, again)
	}
	places := map[string]driver.Place{}
	distinct := map[driver.Place]bool{}
	for _, m := range got {
		place := k.place(m)
		places[string(m.Body)] = place
		if place.Position.Form != k.f.Position {
			k.Fatalf("a position of form %v, and form %v is claimed", place.Position.Form, k.f.Position)
		}
		if k.d.Place != nil && place.Partition != m.Partition {
			k.Errorf("partition %d by Message.Partition and %d by Place", m.Partition, place.Partition)
		}
		if !k.f.Partitions && m.Partition != 0 {
			k.Errorf("partition %d, and partitions are not claimed", m.Partition)
		}
		place.Timestamp = 0
		distinct[place] = true
	}
	k.claims(k.f.Position != driver.NoPosition, "positions")
	if len(distinct) < len(b) {
		k.Errorf("%d messages are at %d positions", len(b), len(distinct))
	}
	if k.f.Order == driver.Unordered { // the messages sent together may have any order
		b = b[:len(b)/2]
	}
	last := map[int32]driver.Position{}
	for _, m := range b {
		place := places[string(m.Body)]
		if before, ok := last[place.Partition]; ok && place.Position.Compare(before) <= 0 {
			k.Errorf("in partition %d, %s is at %v, and the message before it at %v",
				place.Partition, m.Body, place.Position, before)
		}
		last[place.Partition] = place.Position
	}
}

// timestamp sends two messages with a pause between them. The consumer comes after them if it can,
// so that the driver's own time cannot pass for the broker's.
func timestamp(k *kit) {
	c := k.open()
	config := k.usual(k.topic(c, 1))
	var r *receiver
	if !k.f.Start.Has(driver.StartEarliest) {
		r = k.consumerWith(c, config)
	}
	p := k.producer(c, config.Topic)
	b := k.messages("timestamp", 2)
	var begin, end [2]time.Time
	for i := range b {
		begin[i] = time.Now()
		p.send(b[i : i+1])
		end[i] = time.Now()
		time.Sleep(quiet())
	}
	if r == nil {
		config.Start = driver.StartEarliest
		r = k.consumerWith(c, config)
	}
	stored := map[string]int64{}
	for _, m := range r.finish(2) {
		stored[string(m.Body)] = k.place(m).Timestamp
	}
	first, second := stored[string(b[0].Body)], stored[string(b[1].Body)]
	if !k.f.Timestamps && (first != 0 || second != 0) {
		k.Errorf("timestamps %d and %d, and none are claimed", first, second)
	}
	k.claims(k.f.Timestamps, "timestamps")
	const rounding, clocks = 2 * time.Millisecond, time.Hour
	least, most := begin[1].Sub(end[0])-rounding, end[1].Sub(begin[0])+rounding
	if pause := time.Duration(second - first); pause < least || pause > most {
		k.Errorf("the timestamps are %v apart; the messages were sent %v to %v apart", pause, least, most)
	}
	if off := begin[0].Sub(time.Unix(0, first)); off.Abs() > clocks {
		k.Errorf("timestamp %v of a message that was sent at %v", time.Unix(0, first), begin[0])
	}
}

// receiptPlaces compares the places in receipts with the places of the received messages.
func receiptPlaces(k *kit) {
	f := k.flowAt(k.URL, 4)
	b, receipts := f.placed("receipt")
	if k.f.Receipts && k.onlySends() {
		k.notProven("nothing else reports the places of the messages")
	}
	want := map[string]driver.Place{}
	if k.f.Receipts {
		for _, m := range f.r.finish(len(b)) {
			place := k.place(m)
			place.Timestamp = 0
			want[string(m.Body)] = place
		}
	}
	for i, m := range b {
		if place := want[string(m.Body)]; receipts[i] != place {
			k.Fatalf("the receipt of %s has the place %+v, want %+v", m.Body, receipts[i], place)
		}
	}
	k.claims(k.f.Receipts, "receipts with places")
}

// chosenPartition chooses the partition of each message, which decides whatever the key.
func chosenPartition(k *kit) {
	o, ok := k.d.Option(partitionProperty)
	k.claims(ok && o.Scope&driver.OnMessage != 0, "messages that choose their partition")
	const partitions = 4
	f := k.flowAt(k.URL, partitions)
	b := k.messages("chosen", 5*partitions)
	want := map[string]int32{}
	for i := range b {
		b[i].Key = []byte("one")
		b[i].Properties = driver.Values{partitionProperty: int64(i % partitions)}
		want[string(b[i].Body)] = int32(i % partitions)
	}
	f.p.send(b)
	for _, m := range f.r.finish(len(b)) {
		if m.Partition != want[string(m.Body)] {
			k.Errorf("%s was sent to partition %d and came from %d", m.Body, want[string(m.Body)], m.Partition)
		}
	}
	nowhere := k.messages("nowhere", 1)
	nowhere[0].Properties = driver.Values{partitionProperty: int64(partitions)}
	k.kind(f.p.try(nowhere), driver.Rejected)
}
