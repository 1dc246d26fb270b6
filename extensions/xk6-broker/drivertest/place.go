package drivertest

import (
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// places returns the places that the driver reports for received messages, by body.
func (k *kit) places(b driver.Batch) map[string]driver.Place {
	places := map[string]driver.Place{}
	for _, m := range b {
		places[string(m.Body)] = driver.Place{}
		if k.d.Place != nil {
			places[string(m.Body)] = k.d.Place(&m)
		}
	}
	return places
}

// placed sends 40 messages, half of them one by one and the others together, some with keys. It
// returns them and the places of their receipts.
func (f *flow) placed() (driver.Batch, []driver.Place) {
	const n = 40
	b, places := f.kit.messages("placed", n), make([]driver.Place, n)
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
	b, _ := f.placed()
	got := f.r.finish(len(b))
	before := k.places(got)
	k.close(f.r)
	distinct := map[driver.Place]bool{}
	places := k.places(got)
	for _, m := range got {
		place := places[string(m.Body)]
		k.must(place.Position.Form == k.f.Position && place == before[string(m.Body)],
			"place %+v, before Close %+v; form %v is claimed", place, before[string(m.Body)], k.f.Position)
		k.check(k.d.Place == nil || place.Partition == m.Partition,
			"partition %d by Place, %d by Message.Partition", place.Partition, m.Partition)
		k.check(k.f.Partitions || m.Partition == 0, "partition %d, and partitions are not claimed", m.Partition)
		place.Timestamp = 0
		distinct[place] = true
	}
	k.claims(k.f.Position != driver.NoPosition, "positions")
	k.check(len(distinct) == len(b), "%d messages are at %d positions", len(b), len(distinct))
	if k.f.Order == driver.Unordered { // the messages sent together may have any order
		b = b[:len(b)/2]
	}
	last := map[int32]driver.Position{}
	for _, m := range b {
		p := places[string(m.Body)]
		earlier, ok := last[p.Partition]
		k.check(!ok || p.Position.Compare(earlier) > 0,
			"partition %d: %s is at %v, the message before it at %v", p.Partition, m.Body, p.Position, earlier)
		last[p.Partition] = p.Position
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
	places := k.places(r.finish(2))
	first, second := places[string(b[0].Body)].Timestamp, places[string(b[1].Body)].Timestamp
	k.check(k.f.Timestamps || first == 0 && second == 0, "timestamps %d and %d, and none are claimed", first, second)
	k.claims(k.f.Timestamps, "timestamps")
	const rounding, clocks = 2 * time.Millisecond, time.Hour
	least, most := begin[1].Sub(end[0])-rounding, end[1].Sub(begin[0])+rounding
	pause := time.Duration(second - first)
	k.check(least <= pause && pause <= most,
		"the timestamps are %v apart; the messages were sent %v to %v apart", pause, least, most)
	off := begin[0].Sub(time.Unix(0, first))
	k.check(off.Abs() <= clocks, "the timestamp is %v before the message was sent", off)
}

// receiptPlaces compares the places in receipts with the places of the received messages.
func receiptPlaces(k *kit) {
	f := k.flowAt(k.URL, 4)
	b, receipts := f.placed()
	k.needs(!k.f.Receipts || !k.onlySends(), "another report of the places")
	var places map[string]driver.Place // none if no receipts are claimed
	if k.f.Receipts {
		places = k.places(f.r.finish(len(b)))
	}
	for i, m := range b {
		want := places[string(m.Body)]
		want.Timestamp = 0
		k.must(receipts[i] == want, "the receipt of %s has the place %+v, want %+v", m.Body, receipts[i], want)
	}
	k.claims(k.f.Receipts, "receipts with places")
}

// chosenPartition chooses the partition of each message, which decides whatever the key.
func chosenPartition(k *kit) {
	o, ok := k.d.Option(partitionProperty)
	k.claims(ok && o.Scope&driver.OnMessage != 0, "messages that choose their partition")
	const partitions = 4
	f := k.flowAt(k.URL, partitions)
	b := k.messages("chosen", 5*partitions+1)
	want := map[string]int32{}
	for i := range b {
		b[i].Key = []byte("one")
		b[i].Properties = driver.Values{partitionProperty: int64(i % partitions)}
		want[string(b[i].Body)] = int32(i % partitions)
	}
	last := len(b) - 1
	f.p.send(b[:last])
	for _, m := range f.r.finish(last) {
		k.check(m.Partition == want[string(m.Body)],
			"%s was sent to partition %d and came from %d", m.Body, want[string(m.Body)], m.Partition)
	}
	b[last].Properties = driver.Values{partitionProperty: int64(partitions)}
	k.kind(f.p.try(b[last:]), driver.Rejected)
}
