//gosec:disable G115 -- counts, not negative
package track

import (
	"math/bits"
	"slices"
)

// Common compares what this group has received, whatever it did with it, with what another group of the topic has, of what both were there for: how many
// messages both have, how many this one, and how many the other. A message that the other has rejected, or given back and not settled since, it does
// not have: the broker may have passed it on.
func (g *Group) Common(o *Group) (both, mine, theirs uint64) {
	g.topic.mu.RLock()
	defer g.topic.mu.RUnlock()
	for id, d := range g.deliveries {
		other := o.deliveries[id]
		if d.foreign || other == nil {
			continue
		}
		own, others := d.expecting(), other.expecting()
		for i := range uint64(max(d.seen(), other.seen())) {
			if d.hasNone(i) && other.hasNone(i) {
				continue
			}
			for k := range pageWords {
				first := i*pageBits + uint64(k)*64
				a, b := d.had(i, k)&within(others, first), other.has(i, k)&within(own, first)
				mine += uint64(bits.OnesCount64(a))
				theirs += uint64(bits.OnesCount64(b))
				both += uint64(bits.OnesCount64(a & b))
			}
		}
	}
	return both, mine, theirs
}

// Refused tells whether another group of the topic had all that this one has received, and kept none of it: it rejected it, or gave it back and did not settle
// it since. Where this one has received nothing it is false.
func (g *Group) Refused(o *Group) bool {
	g.topic.mu.RLock()
	defer g.topic.mu.RUnlock()
	some := false
	for id, d := range g.deliveries {
		other := o.deliveries[id]
		if d.foreign || other == nil {
			continue
		}
		for i := range uint64(d.seen()) {
			for k := range pageWords {
				came := d.had(i, k)
				if came&^(other.had(i, k)&^other.has(i, k)) != 0 {
					return false
				}
				some = some || came != 0
			}
		}
	}
	return some
}

// MissingFromAll is how many messages the group expects that neither it nor one of the others of its topic has received.
func (g *Group) MissingFromAll(others ...*Group) (n uint64) {
	if len(others) == 0 {
		return g.Outstanding()
	}
	g.topic.mu.RLock()
	defer g.topic.mu.RUnlock()
	for id, d := range g.deliveries {
		if d.foreign {
			continue
		}
		for first, missing := range d.missingWords {
			for _, o := range others {
				missing &^= o.deliveries[id].got(first)
			}
			n += uint64(bits.OnesCount64(missing))
		}
	}
	return n
}

// HandedOn is how many of the messages that the group expects others have rejected and none of the rest has got for good, and how many of
// these are missing.
func (g *Group) HandedOn(rejecting, rest []*Group) (n, missing uint64) {
	g.topic.mu.RLock()
	defer g.topic.mu.RUnlock()
	for id, d := range g.deliveries {
		if d.foreign {
			continue
		}
		handedOn := func(first uint64) (w uint64) {
			i, k := first/pageBits, int(first/64%pageWords)
			for _, o := range rejecting {
				w |= o.deliveries[id].rejected.page(i).words[k].Load()
			}
			for _, o := range rest {
				w &^= o.deliveries[id].has(i, k)
			}
			return w
		}
		spans := d.expecting()
		for i := range uint64(d.producer.expected.len()) {
			for k := range pageWords {
				first := i*pageBits + uint64(k)*64
				n += uint64(bits.OnesCount64(d.producer.expected.page(i).words[k].Load() & within(spans, first) & handedOn(first)))
			}
		}
		for first, lack := range d.missingWords {
			missing += uint64(bits.OnesCount64(lack & handedOn(first)))
		}
	}
	return n, missing
}

// expecting is what the group was there for.
func (d *delivery) expecting() []Bounds {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.spans)
}

// got is a word of what was received, whatever became of it.
func (d *delivery) got(first uint64) uint64 {
	i, k := first/pageBits, first/64%pageWords
	return d.received.page(i).words[k].Load() | d.past.page(i).words[k].Load()
}

// seen is how many pages there may be of what was received.
func (d *delivery) seen() int { return max(d.received.len(), d.past.len()) }

// hasNone tells whether nothing of page i was received.
func (d *delivery) hasNone(i uint64) bool {
	return d.received.page(i) == empty && d.past.page(i) == empty
}

// has is a word of what the group has, of page i.
func (d *delivery) has(i uint64, k int) uint64 {
	rejected, doubted, settled := d.rejected.page(i), d.doubted.page(i), d.settled.page(i)
	gone := rejected.words[k].Load() | doubted.words[k].Load()&^settled.words[k].Load()
	return d.had(i, k)&^gone | d.past.page(i).words[k].Load()
}

// had is a word of what the group has received, of page i.
func (d *delivery) had(i uint64, k int) uint64 {
	return d.received.page(i).words[k].Load() | d.past.page(i).words[k].Load()
}
