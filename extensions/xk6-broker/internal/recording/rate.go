package recording

// Extent is from when to when something was counted, in seconds from the start.
type Extent struct {
	First float64 `json:"first"`
	Last  float64 `json:"last"`
}

// leastTime is how many seconds a rate needs.
const leastTime = 1

// extents returns the extents of the [Timed] counters, by name.
func (v *View) extents(own map[Key]*Sums) map[string]Extent {
	var spans Spans
	for _, s := range own {
		spans = spans.and(s.Spans)
	}
	all := map[string]Extent{}
	for i, c := range Timed {
		if s := spans[i]; s.First != 0 {
			all[c.String()] = Extent{v.since(s.First), v.since(s.Last)}
		}
	}
	return all
}

// JoinExtents adds the extents of further counts.
func JoinExtents(all, more map[string]Extent) {
	for name, e := range more {
		if have, ok := all[name]; ok {
			e = Extent{min(have.First, e.First), max(have.Last, e.Last)}
		}
		all[name] = e
	}
}

// RateTime returns the seconds that a counter's rate is divided by: from the first send to the last send or
// count, and of that the part in a phase, if one is given. It returns 0 if that is too short for a rate.
func RateTime(counter string, extents map[string]Extent, phase *Phase) (seconds float64) {
	own := map[string]Extent{}
	for _, c := range []Counter{Sent, timedBy(counter)} {
		if e, ok := extents[c.String()]; ok {
			JoinExtents(own, map[string]Extent{"": e})
		}
	}
	all := own[""]
	seconds = all.Last - all.First
	if phase != nil {
		seconds = 0
		for _, s := range phase.Stretches {
			seconds += max(0, min(s.To, all.Last)-max(s.From, all.First))
		}
		seconds /= float64(max(1, phase.Processes)) // each has the phase
	}
	if seconds < leastTime {
		return 0
	}
	return seconds
}

// timedBy returns the counter whose times are those of another.
func timedBy(counter string) Counter {
	switch counter {
	case Due.String(), Sent.String(), BytesSent.String():
		return Sent
	case Confirmed.String():
		return Confirmed
	}
	return Received
}
