package result

import "math"

// over is what came in the interval in pieces, of which each is within one of those of a length: those of several processes do not begin at the same time, and
// phases cut them. Rates are of what came; all else falls whole into the interval in which that of a process ends, where its latencies are.
func (p Point) over(length float64) (pieces []Point) {
	begin := p.At - p.Seconds
	for from := begin; from < p.At-edge; {
		to := min(at(from+edge, length), p.At)
		if p.At-to < edge {
			to = p.At
		}
		piece := Point{At: to, Seconds: to - from, Came: map[string]int64{}}
		for name, n := range p.Counts {
			share := func(at float64) float64 { return (at - begin) / p.Seconds }
			if of, ok := p.Active[paced(name)]; ok {
				share = of.share
			}
			upTo := func(at float64) int64 {
				switch at {
				case begin:
					return 0
				case p.At:
					return n
				}
				return int64(math.Round(float64(n) * share(at)))
			}
			if n := upTo(to) - upTo(from); n != 0 {
				piece.Came[name] = n
			}
		}
		pieces = append(pieces, piece)
		from = to
	}
	return pieces
}

// step is how long it took on average from one to the next that came not together with it, and how many there were; 0 where they came all the time.
func (a Activity) step() (seconds float64, steps int64) {
	pauses := Pauses{}
	for _, p := range a.Pauses {
		pauses = pauses.and(p)
	}
	if a.Before > 0 {
		pauses = pauses.and(Pauses{-1, -a.Before})
	}
	if pauses.Count <= 0 || pauses.Seconds < (a.To-a.From)/2 {
		return 0, 0
	}
	return (a.To - a.From) / float64(pauses.Count), pauses.Count
}

// share is which part of what was counted had come by then.
func (a Activity) share(by float64) float64 {
	step, steps := a.step()
	switch {
	case by < a.From:
		return 0
	case by >= a.To:
		return 1
	case step == 0:
		return (by - a.From) / (a.To - a.From)
	}
	return (math.Floor((by-a.From)/step) + 1) / float64(steps+1)
}
