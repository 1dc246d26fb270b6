// Package skew finds out by how much one clock is ahead of another, from messages that go both ways between them. It knows nothing of messages
// but when each was sent and heard, by the clocks of those who did.
//
// A message cannot be heard before it is sent. One of the other's that was stamped S by its clock, and heard at H by this one, says that the
// other's is ahead by at least S-H, when it was heard; one of this clock's that was stamped S, and heard at H by the other's, that it is ahead
// by at most H-S, when it was sent. Nothing is taken for granted of the time that messages take, nor that they take as long there as back:
// what is between the limits is not known, which is half of the round trip on each side (Cristian, Distributed Computing 3, 1989). Over time
// clocks drift, and a line between all limits tells both offset and drift (Duda, Harrus, Haddad and Bernard, ICDCS 1987).
package skew

import (
	"math"
	"slices"
	"time"
)

// MostDrift is by how much one clock may gain on another: each may be slewed by 500 ppm while it is set, and is a little wrong by itself.
const MostDrift = 1100e-6

// Limits are what is known of a clock's offset from another one, over time, in a bounded space: of each interval the tightest limits of both
// sides. The zero value knows nothing. It is not safe for concurrent use.
type Limits struct {
	windows  []window
	length   int64 // of an interval, in ns
	messages uint64
	trip     int64 // the least round trip, in ns
}

// window is an interval, with the tightest limits in it. Times are by this clock.
type window struct {
	from         int64
	above, below limit // the offset is at least above and at most below
}

type limit struct {
	at, offset int64
	known      bool
}

const (
	mostWindows = 64
	firstLength = int64(100 * time.Millisecond)
)

// AtLeast notes a message of the other's.
func (l *Limits) AtLeast(sent, heard int64) {
	l.messages++
	w := l.window(heard)
	if offset := sent - heard; !w.above.known || offset > w.above.offset {
		w.above = limit{heard, offset, true}
	}
}

// AtMost notes that the other heard a message of this one.
func (l *Limits) AtMost(sent, heard int64) {
	w := l.window(sent)
	if offset := heard - sent; !w.below.known || offset < w.below.offset {
		w.below = limit{sent, offset, true}
	}
}

// Trip notes how long a message was on its way there and another one back, together.
func (l *Limits) Trip(d int64) {
	if l.trip == 0 || d < l.trip {
		l.trip = d
	}
}

// window finds the interval of a time, which is of the latest or one before it. Where there are too many, neighbours are joined.
func (l *Limits) window(at int64) *window {
	if l.length == 0 {
		l.length = firstLength
	}
	i := len(l.windows) - 1
	for i > 0 && at < l.windows[i].from {
		i--
	}
	if i >= 0 && at < l.windows[i].from+l.length {
		return &l.windows[i]
	}
	if len(l.windows) == mostWindows {
		l.join()
		return l.window(at)
	}
	l.windows = slices.Insert(l.windows, i+1, window{from: at})
	return &l.windows[i+1]
}

func (l *Limits) join() {
	l.length *= 2
	joined := l.windows[:0]
	for _, w := range l.windows {
		last := len(joined) - 1
		if last < 0 || w.from >= joined[last].from+l.length {
			joined = append(joined, w)
			continue
		}
		if to := &joined[last]; w.above.known && (!to.above.known || w.above.offset > to.above.offset) {
			to.above = w.above
		}
		if to := &joined[last]; w.below.known && (!to.below.known || w.below.offset < to.below.offset) {
			to.below = w.below
		}
	}
	l.windows = joined
}

// Offset is by how much another clock is ahead of this one, in ns.
type Offset struct {
	At       int64   // in the middle of the time that was asked for, by this clock
	By       int64   // then
	Bound    int64   // it is By at that time, give or take this
	Drift    float64 // how much the other clock gains, in parts of a million
	Gives    float64 // give or take
	Least    int64   // what it is at least at any time that was asked for
	Most     int64   // and at most
	Trip     int64   // the least time that a message took there and another one back
	Messages uint64  // of the other's, that told
}

// Between gives the offset in a time, both ends by this clock. It is false where nothing is known: messages must have gone both ways.
func (l *Limits) Between(from, to int64) (Offset, bool) {
	var above, below []point
	if len(l.windows) == 0 {
		return Offset{}, false
	}
	base := l.windows[0].from
	var zero int64 // keeps what is reckoned with small, where two clocks are years apart
	for _, w := range l.windows {
		if w.above.known {
			zero = w.above.offset
			break
		}
	}
	for _, w := range l.windows {
		if w.above.known {
			above = append(above, point{float64(w.above.at - base), float64(w.above.offset - zero)})
		}
		if w.below.known {
			below = append(below, point{float64(w.below.at - base), float64(w.below.offset - zero)})
		}
	}
	if len(above) == 0 || len(below) == 0 {
		return Offset{}, false
	}
	b := band{above, below}
	middle := from + (to-from)/2
	low, high := b.at(float64(middle - base))
	drift := b.drift()
	least, most := b.drifts(drift)
	o := Offset{At: middle, Drift: drift * 1e6, Gives: max(most-drift, drift-least) * 1e6, Trip: l.trip, Messages: l.messages}
	if low, high := b.room(drift, 0); high < low-1 { // the rate changed, and one number is not what it was
		o.Gives = MostDrift * 1e6
	}
	o.By = zero + int64(math.Round((low+high)/2))
	o.Least, o.Most = zero+int64(math.Floor(low)), zero+int64(math.Ceil(high))
	o.Bound = max(o.Most-o.By, o.By-o.Least)
	for _, end := range []int64{from, to} { // what is furthest off is at an end, for all the lines there are
		low, high := b.at(float64(end - base))
		o.Least, o.Most = min(o.Least, zero+int64(math.Floor(low))), max(o.Most, zero+int64(math.Ceil(high)))
	}
	return o, true
}
