package result

// Activity is when something was counted in an interval: first, last, and what pauses ended in it, which may have begun before. All are in seconds, From and To
// from the start.
type Activity struct {
	From    float64 `json:"from"`
	To      float64 `json:"to"`
	Pauses  float64 `json:"pauses,omitempty"`  // all together; of several processes, each has its own
	Longest float64 `json:"longest,omitempty"` // of the pauses
	Squares float64 `json:"squares,omitempty"` // of the pauses' lengths, in s²
}

func (a Activity) and(b Activity) Activity {
	switch {
	case a == Activity{}:
		return b
	case b == Activity{}:
		return a
	}
	return Activity{min(a.From, b.From), max(a.To, b.To), a.Pauses + b.Pauses, max(a.Longest, b.Longest), a.Squares + b.Squares}
}

// mostOfTheTime is which part of the time a pause is that cannot have been an exception.
const mostOfTheTime = 0.9

// period is how long it would have taken to the next one, after so many in a time: what comes a hundred at a time has a pause between the hundreds. It is
// the pause that an instant is in, on average, without the longest one: that may have been one in which nothing was asked for. Where there is
// nothing else it is what there was. Where nothing came together it is the time between two.
func (a Activity) period(length float64, events int64) float64 {
	if length <= 0 || events < 2 {
		return 0
	}
	pause := a.Longest
	if rest := a.Pauses - a.Longest; a.Longest < mostOfTheTime*length {
		pause = 0
		if rest > 0 {
			pause = max(0, (a.Squares-a.Longest*a.Longest)/rest)
		}
	}
	alike := max(1, a.Pauses/length) // how many there are that pause at the same time
	return max(pause/alike, length/float64(events-1))
}
