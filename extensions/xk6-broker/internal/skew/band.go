package skew

import "math"

type point struct{ at, offset float64 }

// band is what is between limits: the lines that are above the ones and below the others. Where a clock's rate changed there may be none, and
// then it is as much wider as it takes.
type band struct{ above, below []point }

// room is between which offsets, at a time, a line of that drift may be. It is negative in size where there is none.
func (b band) room(drift, at float64) (low, high float64) {
	low, high = math.Inf(-1), math.Inf(1)
	for _, p := range b.above {
		low = max(low, p.offset+drift*(at-p.at))
	}
	for _, p := range b.below {
		high = min(high, p.offset+drift*(at-p.at))
	}
	return low, high
}

// drift is the one that leaves most room.
func (b band) drift() float64 {
	return peak(-MostDrift, MostDrift, func(drift float64) float64 {
		low, high := b.room(drift, 0)
		return high - low
	})
}

// at is between which offsets all the lines are at a time.
func (b band) at(at float64) (low, high float64) {
	best := b.drift()
	if low, high := b.room(best, at); high < low {
		low, high = b.astray(best)
		return low + best*at, high + best*at
	}
	least, most := b.drifts(best)
	lowest := peak(least, most, func(drift float64) float64 { low, _ := b.room(drift, at); return -low })
	highest := peak(least, most, func(drift float64) float64 { _, high := b.room(drift, at); return high })
	low, _ = b.room(lowest, at)
	_, high = b.room(highest, at)
	return min(low, high), max(low, high)
}

// drifts are those that lines may have, from the best one on, on both sides of which the room shrinks until it is no more.
func (b band) drifts(best float64) (least, most float64) {
	fits := func(drift float64) bool {
		low, high := b.room(drift, 0)
		return high >= low
	}
	return edge(best, -MostDrift, fits), edge(best, MostDrift, fits)
}

// parts are what the time is cut into where one line does not do.
const parts = 8

// astray is how far the truth may be from a line of that drift through 0, where the rate changed: as far as it may in that part of the time in
// which least is known.
func (b band) astray(drift float64) (low, high float64) {
	from, to := math.Inf(1), math.Inf(-1)
	for _, p := range append(b.above[:len(b.above):len(b.above)], b.below...) {
		from, to = min(from, p.at), max(to, p.at)
	}
	within := func(all []point, part int) (some []point) {
		for _, p := range all {
			if min(parts-1, int(parts*(p.at-from)/(to-from+1))) == part {
				some = append(some, p)
			}
		}
		return some
	}
	low, high = math.Inf(1), math.Inf(-1)
	for part := range parts {
		of := band{within(b.above, part), within(b.below, part)}
		if len(of.above) > 0 && len(of.below) > 0 {
			l, h := of.room(drift, 0)
			low, high = min(low, l, h), max(high, l, h)
		}
	}
	return low, high
}

const steps = 60 // halve what is searched until a float64 tells no difference

// peak is where a function that rises and then falls is greatest.
func peak(from, to float64, f func(float64) float64) float64 {
	golden := (math.Sqrt(5) - 1) / 2
	for range steps + steps/2 {
		a, b := to-golden*(to-from), from+golden*(to-from)
		if f(a) < f(b) {
			from = a
		} else {
			to = b
		}
	}
	return (from + to) / 2
}

// edge is the last place, on the way from one where something holds to another, where it still does.
func edge(holds, other float64, f func(float64) bool) float64 {
	if f(other) {
		return other
	}
	for range steps {
		if middle := (holds + other) / 2; f(middle) {
			holds = middle
		} else {
			other = middle
		}
	}
	return other // the side that is wider by nothing
}
