package result

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/metric"
)

// judged are the latencies that a run is about.
var judged = []metric.Trend{metric.PublishLatency, metric.RequestLatency, metric.E2ELatency}

// Belief is how far a latency can be believed.
type Belief struct {
	Topic string  `json:"topic"`
	Label string  `json:"label"` // the latency, as a reader calls it
	UpTo  float64 `json:"upTo"`  // the greatest quantile that can be believed, of those that a result spells out; 0: not even the median
	Why   string  `json:"why"`   // what speaks against those beyond; "" where only samples are lacking
}

// String is the belief as a sentence.
func (b Belief) String() string {
	switch {
	case b.UpTo == 0:
		return fmt.Sprintf("%s: not even the median of the %s can be believed: %s", b.Topic, b.Label, b.Why)
	case b.Why == "":
		return fmt.Sprintf("%s: %s can be believed as far as its samples reach, up to %s", b.Topic, b.Label, QuantileName(b.UpTo))
	}
	return fmt.Sprintf("%s: %s can be believed up to %s: %s", b.Topic, b.Label, QuantileName(b.UpTo), b.Why)
}

// In a doubt, they divide what owes too much to lateness from what there is to say of the lateness.
const isLateness, areLateness = " is lateness of ", " are lateness of "

// Doubts are the sentences on those beliefs that end before the samples do. Latencies of one topic are in one where the same speaks against
// them from the same point on.
func Doubts(beliefs []Belief) (sentences []string) {
	for i := 0; i < len(beliefs); i++ {
		b := beliefs[i]
		if b.Why == "" {
			continue
		}
		for i+1 < len(beliefs) && b.join(beliefs[i+1]) {
			i++
		}
		sentences = append(sentences, b.String())
	}
	return sentences
}

// join makes one belief of two latencies, if that can be.
func (b *Belief) join(other Belief) bool {
	if other.Topic != b.Topic || other.UpTo != b.UpTo {
		return false
	}
	why := b.Why
	if other.Why != why {
		mine, late, ok := strings.Cut(strings.Replace(why, areLateness, isLateness, 1), isLateness)
		its, equally, too := strings.Cut(other.Why, isLateness)
		if !ok || !too || late != equally {
			return false
		}
		why = mine + " and " + its + areLateness + late
	}
	b.Label, b.Why = b.Label+" and "+other.Label, why
	return true
}

// owesLittle begins the note on lateness that is too small to count against a latency.
const owesLittle = "lateness of the load generator or its machine, less than "

// judgeLateness says how far each latency can be believed.
func (t *Topic) judgeLateness(v *Verdict) {
	var unbelieved []Belief
	var owed []string
	for _, j := range judged {
		for _, suffix := range t.loops() {
			name, label := j.String()+suffix, j.Title()
			if suffix != "" {
				label += " of the closed loop"
			}
			all := t.Percentiles[name]
			if len(all) == 0 || !all[0].Supported {
				continue
			}
			b := Belief{Topic: t.name(), Label: label}
			var ok bool
			if b.UpTo, ok = believedUpTo(all); !ok {
				b.Why = t.doubt(name, all[0], v.platform)
				unbelieved = append(unbelieved, b)
			} else {
				if i := slices.IndexFunc(all, func(p Percentile) bool { return p.Supported && !p.sound && p.Q > b.UpTo && p.Q < 1 }); i >= 0 {
					b.Why = t.doubt(name, all[i], v.platform)
					if v.UpTo == 0 || b.UpTo < v.UpTo {
						v.UpTo = b.UpTo
					}
				}
				owed = append(owed, owing(label, all)...)
			}
			v.Beliefs = append(v.Beliefs, b)
		}
	}
	for _, doubt := range Doubts(unbelieved) {
		// It speaks against no latency as such: which way lateness is wrong is known, and each percentile says that it has it.
		v.because(0, "%s", doubt)
	}
	if len(owed) > 0 {
		v.note("%s: %s%v, is %s", t.name(), owesLittle, owedFloor, strings.Join(owed, " and "))
	}
	if lag, own := t.Trends[metric.ScheduleLag.String()], t.Trends[metric.GeneratorLag.String()]; lag != nil && own != nil &&
		lag.Quantile(0.99) > 2*max(own.Quantile(0.99), int64(owedFloor)) {
		v.note("%s: some sends waited for a free VU, for room in the window or for their connection to open; their latency counts from when they were due", t.name())
	}
}

// doubt says why a percentile is not believed.
func (t *Topic) doubt(name string, p Percentile, on *Platform) string {
	late := t.late(name, nil, p.Q, p.Value)
	if p.Owed > OwedShare && late > owedFloor {
		return fmt.Sprintf("%s of its %s (%v) is lateness of the load generator or its machine (%v); %s",
			percent(p.Owed), QuantileName(p.Q), round(p.Value), round(int64(late)), on.advice(late, t.hiccup(p.Q)))
	}
	text := fmt.Sprintf("%s of the messages, which count as the slowest, are not in it", percent(t.absent(name, nil)))
	if strings.HasPrefix(name, metric.E2ELatency.String()) {
		text += t.unless()
	}
	return text
}

// hiccup is how late the machine made a thread that only wakes, at a quantile; 0 where nobody knows.
func (t *Topic) hiccup(q float64) time.Duration {
	if t.Seen == nil || !t.Seen.Supported(q) {
		return 0
	}
	return time.Duration(t.Seen.Quantile(q))
}

// owing names the percentiles of a latency that can be believed and owe a good part to the generator all the same; nothing where there is none.
func owing(label string, all []Percentile) []string {
	var parts []string
	for _, p := range all {
		if p.Believed && p.Owed > OwedShare && p.Q < 1 {
			parts = append(parts, fmt.Sprintf("%s of the %s", percent(p.Owed), QuantileName(p.Q)))
		}
	}
	if len(parts) == 0 {
		return nil
	}
	return []string{strings.Join(parts, ", ") + " of " + label}
}
