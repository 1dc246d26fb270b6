package account

import "strings"

// Reception is what a received copy of a message is, a bit set.
type Reception uint8

// What it may be.
const (
	First       Reception = 1 << iota // the first copy that the group has received
	Redelivered                       // delivered before, says the broker, or a further copy of a message not settled yet
	Duplicated                        // a further copy of a message that was settled
	Reordered                         // a first copy, not redelivered, that a later message has overtaken
	Foreign                           // no producer of the topic has numbered it
	Late                              // the first delivery of a message that was received redelivered before: it was not delivered again, be it a duplicate or not
	Recurrent                         // a further copy, and not the first further one: the third that the group has received, or a later one
)

// Has tells whether all of q are in the set v.
func (v Reception) Has(q Reception) bool { return v&q == q }

// String names what is in the set, joined by "+".
func (v Reception) String() string {
	var names []string
	for i, name := range []string{"first", "redelivered", "duplicated", "reordered", "foreign", "late", "recurrent"} {
		if v.Has(1 << i) {
			names = append(names, name)
		}
	}
	return strings.Join(names, "+")
}

// Reader is one consumer of a group. One goroutine may use it at a time; different readers of a
// group may be used at the same time.
type Reader struct {
	group   *Group
	last    *source // the source of the last message
	sources map[uint64]*source
}

// Reader adds a consumer to the group.
func (g *Group) Reader() *Reader {
	return &Reader{group: g, sources: map[uint64]*source{}}
}

// Received accounts for a copy of a message and tells what it is. The attempt is the broker's count
// of deliveries, this one included, and 0 where the broker does not count. A message with an
// attempt above 1 that the group has never received, because a consumer died with it, is First and
// Redelivered; where the consumer lives and hands over its copy, attempt 1, after all, that one is
// Late and was not delivered again, and is Duplicated if the other was settled meanwhile.
func (r *Reader) Received(id, seq uint64, partition int32, attempt int32) Reception {
	s := r.source(id)
	if s == nil || !s.producer.numbered(seq) {
		r.group.foreign.Add(1)
		return Foreign
	}
	var v Reception
	if s.first(seq, attempt) {
		v = First
	} else {
		if attempt == 1 && s.overdue(seq) {
			v = Late
		}
		if s.settled.has(seq) {
			v |= Duplicated
			r.group.duplicated.Add(1)
		} else if v != Late {
			v = Redelivered
		}
	}
	if attempt > 1 {
		v |= Redelivered
	}
	if v&(First|Late) == 0 && !s.further.set(seq) {
		v |= Recurrent
	}
	switch {
	case v.Has(Redelivered):
		s.doubted.set(seq)
		r.group.redelivered.Add(1)
	case v == First && s.overtaken(seq, partition):
		v |= Reordered
		r.group.reordered.Add(1)
	}
	if s.foreign {
		v |= Foreign
		r.group.foreign.Add(1)
	}
	return v
}

// Drained accounts for a copy of a message that was read only to complete the account. It is
// neither received, nor a copy of what was; it is false, and nothing changes, where the message has
// arrived before. One that the group does not expect here counts for nothing, but others of it may
// expect it, in other processes: see [Merge].
func (r *Reader) Drained(id, seq uint64) bool {
	s := r.source(id)
	return s != nil && s.producer.numbered(seq) && !s.received.has(seq) && s.drained.set(seq) && (s.foreign || s.expects(seq))
}

// Cleared tells that a message that was read to complete the account is settled: the group holds it
// no more, where it had arrived before.
func (r *Reader) Cleared(id, seq uint64) {
	if s := r.source(id); s != nil && s.producer.numbered(seq) && s.received.has(seq) {
		s.cleared.set(seq)
	}
}

// Doubted tells that the broker may be done with a message although it is not settled: it was given
// back, and may have been given up, or nobody knows how its settlement went. It is false where no
// producer of the topic has numbered it.
func (r *Reader) Doubted(id, seq uint64) bool {
	s := r.source(id)
	if s == nil || !s.producer.numbered(seq) {
		return false
	}
	s.doubted.set(seq)
	return true
}

// Settled tells that the group is done with a message, by an ack or a rejection: further copies of
// it are duplicates. Where a driver settles nothing, call it as soon as the message is received.
// Telling so twice changes nothing, and messages that no producer of the topic has numbered are
// ignored: of these it is false.
func (r *Reader) Settled(id, seq uint64) bool { return r.SettledN(id, seq, 1) == 1 }

// SettledN tells that the group is done with n consecutive messages, as [Reader.Settled] does of
// one, and how many of them are accounted for.
func (r *Reader) SettledN(id, first uint64, n int) (known int) {
	if n <= 0 {
		return 0
	}
	s := r.source(id)
	if s == nil {
		return 0
	}
	if !s.producer.numbered(first + uint64(n) - 1) { // some of them, perhaps: the rare case takes the slow way
		for i := range uint64(n) {
			if s.producer.numbered(first + i) {
				s.settled.set(first + i)
				known++
			}
		}
		return known
	}
	s.settled.setRange(first, uint64(n))
	return n
}

// source finds the source of a producer's messages, and is nil where there are too many to
// remember.
func (r *Reader) source(id uint64) *source {
	if r.last != nil && r.last.producer.id == id {
		return r.last
	}
	s, ok := r.sources[id]
	if !ok {
		r.group.topic.mu.RLock()
		d, known := r.group.deliveries[id]
		r.group.topic.mu.RUnlock()
		if !known {
			d, known = r.group.adopt(id)
		}
		if !known {
			return nil // and not remembered, for there may be any number of them
		}
		s = &source{delivery: d}
		r.sources[id] = s
	}
	r.last = s
	return s
}

// source is one producer as one reader sees it: what came last in each partition.
type source struct {
	*delivery
	near []uint64         // by partition: one more than the highest number among its first copies
	far  map[int32]uint64 // the same, for partitions that are no index
}

// nearPartitions is how many partitions are looked up by index.
const nearPartitions = 1024

// overtaken tells whether a later message of the partition was there before this first copy.
func (s *source) overtaken(seq uint64, partition int32) bool {
	if partition < 0 || partition >= nearPartitions {
		if s.far == nil {
			s.far = map[int32]uint64{}
		}
		next := s.far[partition]
		s.far[partition] = max(next, seq+1)
		return seq < next
	}
	for int(partition) >= len(s.near) {
		s.near = append(s.near, 0)
	}
	next := s.near[partition]
	s.near[partition] = max(next, seq+1)
	return seq < next
}
