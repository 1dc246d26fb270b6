package result

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// reasons adds why processes are not valid, but for what holds for one of them only, and what the whole says: of what several say, which differs in
// its numbers alone, the worst.
func (m *merger) reasons(v *Verdict) {
	var kinds []string
	worst := map[string]*told{}
	whole := map[string]bool{}
	for _, reason := range v.Reasons {
		whole[kindOf(reason)] = true
	}
	for i, p := range m.parts {
		own := p.Result.Verdict
		if p.Ledger.Unfinished {
			continue
		}
		var what about
		if !own.Latencies {
			what |= latencies
		}
		if !own.Account {
			what |= account
		}
		for _, reason := range own.Reasons {
			if strings.HasSuffix(reason, mergeTells) || slices.ContainsFunc(p.Result.Thresholds, func(t Threshold) bool { return t.reason() == reason }) {
				continue
			}
			kind := kindOf(reason)
			if whole[kind] {
				continue
			}
			if worst[kind] == nil {
				kinds = append(kinds, kind)
			}
			worst[kind] = worst[kind].with(i, reason)
			worst[kind].what |= what
		}
	}
	for _, kind := range kinds {
		w := worst[kind]
		v.because(w.what, "%s: %s", m.teller(w.by, w.processes), w.text)
	}
}

// notes adds what the processes had to say of themselves and the whole does not say: of what several said of one topic, which differs in
// its numbers alone, the worst.
func (m *merger) notes(v *Verdict) {
	var kinds []string
	worst := map[string]*told{}
	whole := map[string]bool{}
	for _, note := range v.Notes {
		whole[kindOf(note)] = true
	}
	for i, p := range m.parts {
		for _, note := range p.Result.Verdict.Notes {
			kind := kindOf(note)
			if whole[kind] || strings.HasSuffix(note, mergeTells) {
				continue
			}
			if worst[kind] == nil {
				kinds = append(kinds, kind)
			}
			worst[kind] = worst[kind].with(i, note)
		}
	}
	for _, kind := range kinds {
		w := worst[kind]
		v.note("%s: %s", m.teller(w.by, w.processes), w.text)
	}
}

// told is a note or a reason that some processes have, as the one has it where it is worst.
type told struct {
	by, processes int
	text          string
	what          about
}

// with is told by one process more. It may be nil.
func (w *told) with(by int, text string) *told {
	if w == nil {
		return &told{by: by, processes: 1, text: text}
	}
	w.processes++
	if slices.Compare(numbersOf(text), numbersOf(w.text)) > 0 {
		w.by, w.text = by, text
	}
	return w
}

// doubts adds what keeps latencies of processes from being believed further, of each latency where that is worst, if those of the whole
// can be believed further than that.
func (m *merger) doubts(v *Verdict) {
	type tellers struct{ by, processes int }
	var order []tellers
	worst := map[tellers][]Belief{}
	seen := map[[2]string]bool{}
	for first := range m.parts {
		for _, b := range m.parts[first].Result.Verdict.Beliefs {
			of := [2]string{b.Topic, b.Label}
			if !b.partly() || seen[of] {
				continue
			}
			seen[of] = true
			who := tellers{by: first}
			for i, p := range m.parts[first:] {
				for _, other := range p.Result.Verdict.Beliefs {
					if [2]string{other.Topic, other.Label} != of || !other.partly() {
						continue
					}
					who.processes++
					if other.UpTo < b.UpTo {
						b, who.by = other, first+i
					}
				}
			}
			if slices.ContainsFunc(v.Beliefs, func(w Belief) bool { return [2]string{w.Topic, w.Label} == of && w.Why != "" && w.UpTo <= b.UpTo }) {
				continue
			}
			if worst[who] == nil {
				order = append(order, who)
			}
			worst[who] = append(worst[who], b)
		}
	}
	for _, who := range order {
		for _, doubt := range Doubts(worst[who]) {
			v.note("%s: %s", m.teller(who.by, who.processes), doubt)
		}
	}
}

// partly tells whether something speaks against a part of the latency, and not only as long as other processes are not known.
func (b Belief) partly() bool {
	return b.UpTo > 0 && b.Why != "" && !strings.HasSuffix(b.Why, mergeTells)
}

// teller names the process that something is worst in, of those that it is in.
func (m *merger) teller(by, processes int) string {
	name := called(numbers(m.parts)[by], m.parts[by].Result.Name)
	if processes > 1 {
		return fmt.Sprintf("%d processes, worst in %s", processes, name)
	}
	return name
}

// number is a count, a share or a duration in a note. That of a quantile, p99, is none.
var number = regexp.MustCompile(`\b[0-9](?:[0-9.hmsnµ]*[0-9hmsn])?`)

// kindOf is what notes that differ only in their numbers have in common. What comes before the colon is the topic's name.
func kindOf(note string) string {
	of, text, _ := strings.Cut(note, ": ")
	if strings.HasPrefix(text, owesLittle) { // the quantiles in it are numbers too
		return of + ": " + owesLittle
	}
	return of + ": " + number.ReplaceAllString(text, "#")
}

// numbersOf are the numbers in a note; durations in seconds.
func numbersOf(note string) (all []float64) {
	_, text, _ := strings.Cut(note, ": ")
	for _, found := range number.FindAllString(text, -1) {
		n, err := strconv.ParseFloat(found, 64)
		if d, wrong := time.ParseDuration(found); err != nil && wrong == nil {
			n = d.Seconds()
		}
		all = append(all, n)
	}
	return all
}
