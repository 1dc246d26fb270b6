package result

import "github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/metric"

// Span is from when to when something was counted, in seconds from the start.
type Span struct {
	First float64 `json:"first"`
	Last  float64 `json:"last"`
	Pause float64 `json:"pause"` // how long the pause between two is, on average over the time: next to nothing where they come all the time
}

func (s Span) and(of Span) Span {
	both := Span{min(s.First, of.First), max(s.Last, of.Last), min(s.Pause, of.Pause)}
	if s.Pause == 0 || of.Pause == 0 { // one alone has none
		both.Pause = max(s.Pause, of.Pause)
	}
	return both
}

// joinSpans adds those of another process.
func (t *Topic) joinSpans(of *Topic, shift float64) {
	for name, s := range of.Spans {
		s.First, s.Last = s.First+shift, s.Last+shift
		if have, ok := t.Spans[name]; ok {
			s = s.and(have)
		}
		t.Spans[name] = s
	}
}

// leastLoad is for how many seconds a load that goes by a schedule goes on, at least, to have a rate.
const leastLoad = 0.01

// WentOn gives how much was counted, and in how much time: from the first message that was sent to the last that was counted or sent, and to the next if they came evenly;
// of a phase, what it has of that. Where nothing was sent, as in a process that only consumes, it begins with the first that was counted. No time is given where it would be
// less than a pause of the load.
func (t *Topic) WentOn(counter string) (n, seconds float64) {
	if t.of != nil {
		return t.of.WentOn(counter)
	}
	span, counts := t.span(counter)
	return float64(t.Counts[counter]), span.in(t.phase, counts, t.OpenLoop).known()
}

// WentOn is that of all topics together.
func (r *Result) WentOn(counter string) (n, seconds float64) {
	var all Span
	var counts int64
	var phase *Phase
	openLoop := true
	for i := range r.Topics {
		t := &r.Topics[i]
		n, phase = n+float64(t.Counts[counter]), t.phase
		if span, its := t.span(counter); its > 0 {
			if counts == 0 {
				all = span
			}
			all, counts, openLoop = all.and(span), counts+its, openLoop && t.OpenLoop
		}
	}
	return n, all.in(phase, counts, openLoop).known()
}

// span is that of a counter in the whole run, and how many messages it is of.
func (t *Topic) span(counter string) (span Span, counts int64) {
	whole := t
	if t.whole != nil {
		whole = t.whole
	}
	counter = paced(counter)
	span, counted := whole.Spans[counter]
	if load, sent := whole.Spans[metric.Sent.String()]; sent {
		if !counted {
			span = load
		}
		// A phase may have what was sent before it, as it comes; the whole run has all of it.
		pause := load.Pause
		if t.phase != nil {
			pause = max(pause, span.Pause)
		}
		span = Span{min(load.First, span.First), max(load.Last, span.Last), pause}
	}
	return span, whole.Counts[counter]
}

// paced is the counter whose times are those of another.
func paced(counter string) string {
	switch counter {
	case metric.Due.String(), metric.Sent.String(), metric.BytesSent.String():
		return metric.Sent.String()
	case metric.Confirmed.String():
		return counter
	}
	return metric.Received.String()
}

// period is for how long something went on.
type period struct {
	seconds float64
	more    float64 // the pause that may have followed, beyond that between two if they came evenly; 0 where the time did not end with the last
	least   float64
}

// in is the time that a phase, or the whole run, has of a span in which so many were counted.
func (s Span) in(p *Phase, counts int64, openLoop bool) period {
	even := 0.0
	if counts > 1 {
		even = (s.Last - s.First) / float64(counts-1)
	}
	end, most := s.Last+even, 0.0
	of := period{seconds: end - s.First, more: max(0, s.Pause-even)}
	if openLoop {
		of.least = leastLoad
	}
	if p == nil {
		return of
	}
	of.seconds = 0
	if p.About {
		return of
	}
	for _, stretch := range p.Stretches {
		of.seconds += max(0, min(stretch.To, end)-max(stretch.From, s.First))
		most = max(most, stretch.To)
	}
	of.seconds /= float64(max(1, p.Processes)) // each has the phase
	if most < end {
		of.more = 0
	}
	return of
}

// known is the time in seconds, or 0.
func (p period) known() float64 {
	if p.seconds < p.least || p.seconds < p.more {
		return 0
	}
	return p.seconds
}

// uneven is which part of the time the pause is that may have followed it, beyond which a reader is told.
const uneven = 0.05

// NoteRates says of rates, of the whole run or of a phase, that they would be others if the time for which the load went on had the pause after its last message, as it has
// those between them.
func (r *Result) NoteRates(v *Verdict) {
	for i := range r.Topics {
		r.Topics[i].noteRate(v)
	}
}

func (t *Topic) noteRate(v *Verdict) {
	worst, which, name := period{}, "", t.Topic
	for _, counter := range []string{metric.Sent.String(), metric.Confirmed.String(), metric.Received.String()} {
		span, counts := t.span(counter)
		of := span.in(t.phase, counts, t.OpenLoop)
		if t.Counts[counter] > 1 && of.seconds > 0 && of.more >= uneven*of.seconds && of.more*worst.seconds >= worst.more*of.seconds*(1+edge) {
			worst, which = of, counter
		}
	}
	if which == "" {
		return
	}
	if t.phase != nil {
		name += ", " + t.phase.Name
	}
	n, seconds := t.WentOn(which)
	span, _ := t.span(which)
	if seconds == 0 {
		v.note("%s: no rate is known of what was %s: that was for %.3g s, which is less than its pauses, %.3g s as an average over the time", name, which, worst.seconds, span.Pause)
	} else {
		v.note("%s: messages were %s unevenly, with pauses of %.3g s as an average over the time: %.4g/s up to the last of them, and with such a pause behind it %.4g/s", name, which, span.Pause, n/seconds, n/(seconds+worst.more))
	}
}
