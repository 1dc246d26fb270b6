package executors

import "time"

// blame tells how much of an arrival's lateness is the generator's own fault; the rest it waited for a VU that the system under test
// kept busy.
//
// It compares what happened with what would have happened had this process always been in time: the same VUs, each iteration as long
// as it was, and begun as soon as it was due and a VU free. What was due while a VU had nothing to do would have begun at once: all
// its lateness is the generator's. What came due while all VUs had iterations would have begun as much earlier than it did as the
// iteration that it waited for. A backlog of the generator's own making is therefore charged to it, arrival by arrival, until it is
// worked off, and a backlog of the system's making never is.
type blame struct {
	resting int   // VUs that wait for an arrival
	rested  int64 // when one last did, if none does

	// The most that arrivals were late by the generator's own fault, in ns: of the present lot, and of the one before. A lot is as many
	// arrivals as there are VUs: what runs is mostly of these.
	vus, lot     int
	most, before int64

	// The latest standstills of the process that follow so closely that it had not recovered from one when the next came: from the first to the last, how
	// long they were together, and how much of that it had not recovered from at the end of the last.
	from, to, stood, owing int64

	seen, next int64 // when the process was last seen to run, and when it is to show that it does
}

// join says that there is another VU, from now on.
func (b *blame) join(s *seat, now int64) {
	b.vus++
	s.Started, s.ended = now, now
}

// rest says that a VU waits for an arrival.
func (b *blame) rest(s *seat) {
	if !s.rested {
		s.rested = true
		b.resting++
	}
}

// of gives the generator's part, in ns, in how late an arrival is that s begins now. Arrivals come in the order they are due.
func (b *blame) of(s *seat, due, now int64) int64 {
	b.beat(now)
	own := now - due
	if b.resting == 0 && due > b.rested {
		own = min(own, max(b.most, b.before, s.own+b.delayed(s.Started, s.ended)+now-s.ended))
	}
	if s.rested {
		s.rested = false
		b.resting--
		b.rested = now
	}
	if b.lot++; b.lot > b.vus {
		b.lot, b.before, b.most = 1, b.most, 0
	}
	b.most = max(b.most, own)
	return own
}

// innocent tells whether an arrival that is due and has not begun waits for a VU that the system keeps busy.
func (b *blame) innocent(due, now int64) bool {
	b.beat(now)
	own := max(b.most, b.before)
	if b.weighs(now) {
		own = max(own, b.stood)
	}
	return b.resting == 0 && due > b.rested && now-due > own
}

// How often the process shows that it runs: while all VUs have iterations, and while it hardly matters. Where it is overdue by
// beatEvery, it stood still.
const (
	beatEvery  = 5 * time.Millisecond
	beatSeldom = 50 * time.Millisecond
)

// pulse says that the process runs, and gives when that is to be said next.
func (b *blame) pulse(now int64) int64 {
	b.beat(now)
	b.next = now + int64(beatEvery)
	if b.resting > 0 {
		b.next = now + int64(beatSeldom)
	}
	return b.next
}

// beat notes a standstill that has just been over, if there was one: at most since the process was last seen to run.
func (b *blame) beat(now int64) {
	if b.next > 0 && now-b.next > int64(beatEvery) {
		if !b.weighs(b.seen) {
			b.from, b.to, b.stood, b.owing = b.seen, b.seen, 0, 0
		}
		b.owing += now - b.seen - (b.seen - b.to) // it recovers as long as it stood, while it runs
		b.stood += now - b.seen
		b.to, b.next = now, now
	}
	b.seen = now
}

// weighs tells whether what ends at the given time may have been delayed by the standstills. What goes on for longer after them than they
// took waited for something else.
func (b *blame) weighs(at int64) bool { return at-b.to < b.owing }

// delayed is how much shorter, in ns, an iteration would have been had the process not stood still: at most, as nobody sees when in a
// standstill an answer came.
func (b *blame) delayed(began, ended int64) int64 {
	if b.to <= began || !b.weighs(ended) {
		return 0
	}
	return min(b.stood, max(0, min(b.to, ended)-max(b.from, began)))
}
