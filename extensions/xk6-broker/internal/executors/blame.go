package executors

import (
	"slices"
	"time"
)

// blame tells how much of an arrival's lateness is the generator's own fault; the rest it waited for a VU that the system under test
// kept busy.
//
// It compares what happened with what would have happened had this process always been in time: the same VUs, each iteration as long
// as the script waited for answers in it, and begun as soon as it was due and a VU free. What was due while a VU had nothing to do would have begun at once: all
// its lateness is the generator's. What came due while all VUs had iterations would have begun as much earlier than it did as the
// iteration that it waited for. A backlog of the generator's own making is therefore charged to it, arrival by arrival, until it is
// worked off, and a backlog of the system's making never is.
type blame struct {
	resting int   // VUs that wait for an arrival
	rested  int64 // when one last did, or would have, had its arrival been begun as soon as it was due; if none does

	vus, lot int
	late     lateness // by the generator's own fault
	stalled  lateness // that of the process alone, without the scripts'

	// The latest standstills of the process that follow so closely that it had not recovered from one when the next came: from the first to the last, how
	// long they were together, and how much of that it had not recovered from at the end of the last.
	from, to, stood, owing int64
	stops                  []stop // each of them, in their order
	calm                   int    // how often in succession the process had nothing to do when it showed that it runs

	seen, next int64 // when the process was last seen to run, and when it is to show that it does
}

// lateness is the most that arrivals were late, in ns: of the present lot, and of the one before. A lot is as many arrivals as there are VUs: what runs is
// mostly of these.
type lateness struct{ most, before int64 }

func (l *lateness) note(late int64, begins bool) {
	if begins {
		l.before, l.most = l.most, 0
	}
	l.most = max(l.most, late)
}

func (l *lateness) least() int64 { return max(l.most, l.before) }

// stop is a standstill: from when the process was last seen to run until it was seen again. After that it had nothing to do at idle, for the first time: what
// had come for it meanwhile it had read. It is 0 where that was not seen.
type stop struct{ from, to, idle int64 }

// maxStops is how many standstills are told apart. Of more, the oldest are one.
const maxStops = 1024

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

// of sets the generator's part, in ns, in how late an arrival is that s begins now. Arrivals come in the order they are due.
func (b *blame) of(s *seat, due, now int64) {
	b.beat(now)
	own := now - due
	stalled := own
	if b.resting == 0 && due > b.rested {
		delayed := b.delayed(s.Started, s.ended, s.answered())
		longer := min(s.ended-s.Started, delayed+s.alone())
		stalled = min(own, max(b.stalled.least(), s.stalled+delayed+now-s.ended))
		own = min(own, max(b.late.least(), s.own+longer+now-s.ended))
	}
	if s.rested {
		s.rested = false
		b.resting--
		b.rested = due
	}
	b.lot++
	begins := b.lot > b.vus
	if begins {
		b.lot = 1
	}
	b.late.note(own, begins)
	b.stalled.note(stalled, begins)
	s.own, s.stalled = own, stalled
}

// innocent tells whether an arrival that is due and has not begun waits for a VU that has an iteration, and not for the process.
func (b *blame) innocent(due, now int64) bool {
	b.beat(now)
	own := b.stalled.least()
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
			b.stops = b.stops[:0]
		}
		if len(b.stops) == maxStops {
			b.stops[1].from = b.stops[0].from
			b.stops = slices.Delete(b.stops, 0, 1)
		}
		b.stops, b.calm = append(b.stops, stop{from: b.seen, to: now}), 0
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
// standstill an answer came. But where the script waited for one answer, which came when the process had been through with all that there was to do
// since a standstill, that came as late as it did for the system's sake.
func (b *blame) delayed(began, ended int64, waits []wait) (by int64) {
	if b.to <= began || !b.weighs(ended) {
		return 0
	}
	for i := len(b.stops) - 1; i >= 0 && b.stops[i].to > began; i-- {
		if s := b.stops[i]; !b.outlasted(s, waits) {
			by += max(0, min(s.to, ended)-max(s.from, began))
		}
	}
	return by
}

// leaving is how long a message may be on its way out of the process: clients collect what goes out together.
const leaving = 10 * time.Millisecond

// outlasted tells whether one of the waits began so long before a standstill that the message had left, and went on when the process had nothing to do any
// more after it.
func (b *blame) outlasted(s stop, waits []wait) bool {
	for _, w := range waits {
		if s.from-w.from < int64(leaving) || w.to < s.to {
			continue
		}
		for i := len(b.stops) - 1; i >= 0 && b.stops[i].to >= s.to; i-- {
			if idle := b.stops[i].idle; idle > 0 && idle <= w.to {
				return true
			}
		}
	}
	return false
}

// recovering tells whether it is worth to know what the process has to do.
func (b *blame) recovering() bool { return len(b.stops) > 0 && b.stops[len(b.stops)-1].idle == 0 }

// rests says that the process has nothing to do, or has. Once may be before it has heard of what there is.
func (b *blame) rests(idle bool, now int64) {
	if !idle {
		b.calm = 0
		return
	}
	if b.calm++; b.calm > 1 && b.recovering() {
		b.stops[len(b.stops)-1].idle = now
	}
}
