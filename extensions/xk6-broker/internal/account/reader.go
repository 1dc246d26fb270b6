package account

// Reception is what a received copy of a message is, a bit set.
type Reception uint8

// What it may be.
const (
	First       Reception = 1 << iota // the first copy that the group has received
	Redelivered                       // delivered before by the broker's count, or a further copy of an unsettled message
	Duplicated                        // a further copy of a settled message
	Reordered                         // a first copy, not redelivered, that a later message has overtaken
	Foreign                           // no producer of the topic has numbered it
)

// Reader is one consumer of a group. One goroutine may use it at a time; different readers of a
// group may be used at the same time.
type Reader struct {
	group   *Group
	last    *source // of the last message
	sources map[uint64]*source
}

// Reader adds a consumer to the group.
func (g *Group) Reader() *Reader {
	return &Reader{group: g, sources: map[uint64]*source{}}
}

// Received accounts for a copy of a message and returns what it is. attempt is the broker's count of
// deliveries, this one included, and 0 if the broker does not count. A message with an attempt above
// 1 that the group has never received, because a consumer died with it, is First and Redelivered.
func (r *Reader) Received(id, seq uint64, partition int32, attempt int32) Reception {
	s := r.source(id)
	if s == nil || !s.producer.numbered(seq) {
		r.group.foreign.Add(1)
		return Foreign
	}
	var v Reception
	switch {
	case s.received.set(seq):
		v = First
		if attempt > 1 {
			s.again.set(seq)
		}
	case s.settled.has(seq):
		v = Duplicated
		r.group.duplicated.Add(1)
	default:
		v = Redelivered
	}
	if attempt > 1 {
		v |= Redelivered
	}
	switch {
	case v&Redelivered != 0:
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

// Drained accounts for a message that was read only to complete the account. It is not received. If
// it was received before, it is now settled as settled says, and the group holds it no longer.
func (r *Reader) Drained(id, seq uint64, settled bool) {
	s := r.source(id)
	if s != nil && s.producer.numbered(seq) && (settled || !s.received.has(seq)) {
		s.drained.set(seq)
	}
}

// Settled records that the group is done with a message, by an ack or a rejection. If a driver
// settles nothing, call it as soon as the message is received.
func (r *Reader) Settled(id, seq uint64) { r.SettledN(id, seq, 1) }

// SettledN does for n consecutive messages as [Reader.Settled] does for one, and returns how many
// of them are accounted for.
func (r *Reader) SettledN(id, first uint64, n int) (accounted int) {
	s := r.source(id)
	if n <= 0 || s == nil {
		return 0
	}
	if s.producer.numbered(first + uint64(n) - 1) {
		s.settled.setRange(first, uint64(n))
		return n
	}
	for i := range uint64(n) { // some of them, perhaps
		if s.producer.numbered(first + i) {
			s.settled.set(first + i)
			accounted++
		}
	}
	return accounted
}

// source returns the source of a producer's messages, or nil if there are too many producers.
func (r *Reader) source(id uint64) *source {
	if r.last != nil && r.last.producer.id == id {
		return r.last
	}
	s, ok := r.sources[id]
	if !ok {
		r.group.topic.mu.RLock()
		d := r.group.deliveries[id]
		r.group.topic.mu.RUnlock()
		if d == nil {
			d = r.group.adopt(id)
		}
		if d == nil {
			return nil
		}
		s = &source{delivery: d, next: map[int32]uint64{}}
		r.sources[id] = s
	}
	r.last = s
	return s
}

// source is one producer as one reader sees it.
type source struct {
	*delivery
	near []uint64         // by partition: one more than the highest number among its first copies
	next map[int32]uint64 // the same for partitions that are no index
}

// nearPartitions is how many partitions need no look into a map.
const nearPartitions = 1024

// overtaken reports whether a later message of the partition came before this first copy.
func (s *source) overtaken(seq uint64, partition int32) bool {
	if partition < 0 || partition >= nearPartitions {
		next := s.next[partition]
		s.next[partition] = max(next, seq+1)
		return seq < next
	}
	for int(partition) >= len(s.near) {
		s.near = append(s.near, 0)
	}
	next := s.near[partition]
	s.near[partition] = max(next, seq+1)
	return seq < next
}
