package result

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Segment is the part of a test that one of its processes ran, as k6 has it.
type Segment struct {
	Of       string   `json:"of"`             // from where to where, such as "1/3:2/3"
	Sequence string   `json:"sequence"`       // the ends of all segments, such as "0,1/3,2/3,1"
	Idle     []string `json:"idle,omitempty"` // scenarios that have no VU in it

	Nameless bool `json:"-"` // the process was not told the name that it shares with the others
}

// judgeSegment speaks of what the process has no part of.
func (r *Result) judgeSegment(v *Verdict) {
	s := r.Segment
	if s == nil {
		return
	}
	if s.Nameless {
		v.because(account, "this process had the execution segment %s of the test, and no BROKER_RUN: it took messages of the other processes for those of another test", s.Of)
	}
	for _, scenario := range s.Idle {
		v.because(latencies, "scenario %s had no VU in this process, whose execution segment is %s: others ran all of it; give it as many VUs as there are processes, "+
			"or the executor producers, which has one in each", scenario, s.Of)
	}
}

// bounds are the segment's ends.
func (s *Segment) bounds() (from, to *big.Rat, err error) {
	left, right, ok := strings.Cut(s.Of, ":")
	from, ok1 := new(big.Rat).SetString(left)
	to, ok2 := new(big.Rat).SetString(right)
	if !ok || !ok1 || !ok2 || from.Sign() < 0 || from.Cmp(to) >= 0 || to.Cmp(big.NewRat(1, 1)) > 0 {
		return nil, nil, fmt.Errorf("%q is not an execution segment such as 1/3:2/3", s.Of)
	}
	return from, to, nil
}

// numbers are those of the processes of a test: by their segments, as they call each other, or from the first that began to the last.
func numbers(parts []Part) []int {
	begun, divided := make([]int, len(parts)), make([]int, len(parts))
	for i, p := range parts {
		begun[i] = i + 1
		if p.Result.Segment == nil {
			continue
		}
		from, _, err := p.Result.Segment.bounds()
		if err != nil {
			continue
		}
		for k, cut := range strings.Split(p.Result.Segment.Sequence, ",") {
			if at, ok := new(big.Rat).SetString(cut); ok && at.Cmp(from) == 0 && !slices.Contains(divided, k+1) {
				divided[i] = k + 1
			}
		}
	}
	if slices.Contains(divided, 0) {
		return begun
	}
	return divided
}

// processFlaws says how processes are not those of one test: each of them once, and each execution segment of it by one of them, and by one only.
func processFlaws(parts []Part) (flaws []string) {
	called := map[string]int{}
	for _, p := range parts {
		if called[p.Result.Name]++; called[p.Result.Name] == 2 && p.Result.Name != "" {
			flaws = append(flaws, fmt.Sprintf("two processes are called %s: one that was started twice, or give each a BROKER_REPORT_NAME of its own", p.Result.Name))
		}
	}
	type span struct {
		from, to *big.Rat
		name     string
	}
	var all []span
	var first *Result
	for _, p := range parts {
		s := p.Result.Segment
		if s == nil {
			continue
		}
		if first == nil {
			first = p.Result
		}
		if of := first.Segment.Sequence; of != s.Sequence {
			flaws = append(flaws, fmt.Sprintf("%s divided the test into the execution segments %s and %s into %s, so that what they sent is not one load: give all "+
				"processes one --execution-segment-sequence", first.Name, of, p.Result.Name, s.Sequence))
		}
		for _, pair := range [][2]*Result{{first, p.Result}, {p.Result, first}} {
			if what := pair[0].Test.lacking(&pair[1].Test); what != "" {
				flaws = append(flaws, fmt.Sprintf("%s had no scenario %s, which %s had, so that its part of that load was never sent: give all processes one script and "+
					"one environment", pair[1].Name, what, pair[0].Name))
			}
		}
		if what := first.Test.otherwise(&p.Result.Test); what != "" {
			flaws = append(flaws, fmt.Sprintf("%s and %s have parts of different loads, which are together none that was asked for: %s; give all processes one script and "+
				"one environment", first.Name, p.Result.Name, what))
		} else if what := first.loopsOtherwise(p.Result); what != "" {
			flaws = append(flaws, fmt.Sprintf("%s and %s have parts of different loads, which are together none that was asked for: %s; have all processes call "+
				"produce with the same options", first.Name, p.Result.Name, what))
		}
		from, to, err := s.bounds()
		if err != nil {
			flaws = append(flaws, fmt.Sprintf("%s: %v", p.Result.Name, err))
			continue
		}
		all = append(all, span{from, to, p.Result.Name})
	}
	if len(all) == 0 {
		return flaws
	}
	slices.SortStableFunc(all, func(a, b span) int { return a.from.Cmp(b.from) })
	gap := func(from, to *big.Rat) {
		if from.Cmp(to) < 0 {
			flaws = append(flaws, fmt.Sprintf("no process had the execution segment %s:%s: what it was to send is missing", from.RatString(), to.RatString()))
		}
	}
	reached, by := new(big.Rat), ""
	for _, s := range all {
		if s.from.Cmp(reached) < 0 {
			both := reached
			if s.to.Cmp(both) < 0 {
				both = s.to
			}
			flaws = append(flaws, fmt.Sprintf("%s and %s both had the execution segment %s:%s: what is in it was sent twice", by, s.name, s.from.RatString(), both.RatString()))
		}
		gap(reached, s.from)
		if s.to.Cmp(reached) > 0 {
			reached, by = s.to, s.name
		}
	}
	gap(reached, big.NewRat(1, 1))
	return append(flaws, begunApart(parts)...)
}

// Divided is the option that is said of a loop of which each process of a test has a part.
const Divided = "divided"

// loopsOtherwise says how the loops of which two processes had parts are not the same; "" where they are.
func (r *Result) loopsOtherwise(other *Result) string {
	for _, t := range r.Topics {
		i := slices.IndexFunc(other.Topics, func(of Topic) bool { return of.Topic == t.Topic && of.Broker == t.Broker })
		if i < 0 {
			continue
		}
		ours, theirs := t.loopsNotOf(&other.Topics[i]), other.Topics[i].loopsNotOf(&t)
		switch {
		case len(ours) > 0 && len(theirs) > 0:
			return differing("a loop that sends to "+t.Topic, ours[0], theirs[0])
		case len(ours)+len(theirs) > 0:
			return fmt.Sprintf("only one of them had a loop that sends to %s with %s", t.Topic, said(slices.Concat(ours, theirs)[0]))
		}
	}
	return ""
}

// loopsNotOf are the loops with parts in several processes that another does not have.
func (t *Topic) loopsNotOf(other *Topic) (all []map[string]any) {
	for _, loop := range t.Options["produce"] {
		if loop[Divided] == true && !slices.ContainsFunc(other.Options["produce"], func(of map[string]any) bool { return reflect.DeepEqual(of, loop) }) {
			all = append(all, loop)
		}
	}
	return all
}

// said are options as a reader sees them.
func said(options map[string]any) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(options)) {
		if name != Divided {
			all = append(all, fmt.Sprint(name, " ", options[name]))
		}
	}
	return strings.Join(all, ", ")
}

// arrivals are the executors whose rate is the test's.
var arrivals = append([]string{"open-arrival-rate", "producers"}, unheld...)

// judgeRepeated speaks of scenarios that several processes ran the whole of: what was asked for is their sum.
func judgeRepeated(v *Verdict, parts []Part) {
	ran := map[string]int{}
	var names []string
	for _, p := range parts {
		if p.Result.Segment != nil {
			continue
		}
		for _, s := range p.Result.Test.Scenarios {
			if slices.Contains(arrivals, s.Executor) {
				if ran[s.Name]++; ran[s.Name] == 2 {
					names = append(names, s.Name)
				}
			}
		}
	}
	for _, name := range names {
		v.note("%d processes each ran the whole of scenario %s, for none had an --execution-segment: its rate is that of each", ran[name], name)
	}
}

const (
	// Processes begin together where their beginnings are no further apart than a part of their time, and anyhow by so many seconds, but for a greater part of it.
	beginsTogether = 0.05
	beginsAnyhow   = 0.5
	anyhowUpTo     = 0.25
)

// apart is how far the beginnings of processes may be apart that begin together, for so many seconds.
func apart(length float64) float64 {
	return max(beginsTogether*length, min(beginsAnyhow, anyhowUpTo*length))
}

// begunApart says that processes which have segments of one load did not wait for each other, and began it at different times.
func begunApart(parts []Part) []string {
	var first, last *Result
	shortest := math.Inf(1)
	for _, p := range parts {
		r := p.Result
		if r.Segment == nil || len(r.Peers) > 0 {
			continue
		}
		if first == nil || r.Started.Before(first.Started) {
			first = r
		}
		if last == nil || r.Started.After(last.Started) {
			last = r
		}
		shortest = min(shortest, r.Seconds)
	}
	if first == nil {
		return nil
	}
	apart := last.Started.Sub(first.Started)
	if apart.Seconds() <= max(beginsAnyhow, beginsTogether*shortest) {
		return nil
	}
	return []string{fmt.Sprintf("%s and %s have parts of one load, did not wait for each other, and began it %v apart: it was not the load that was asked for", first.Name, last.Name, round(int64(apart)))}
}

// phasesBegunApart says that processes began a phase at different times: for a part of it not all were in it.
func phasesBegunApart(parts []Part) (flaws []string) {
	for _, phase := range parts[0].Result.PhaseNames() {
		again := true
		for k := 0; again; k++ {
			var its []entered
			if its, again = entries(parts, phase, k); len(its) == 0 {
				continue
			}
			if by := without(parts, phase, k, its[0]); by != "" {
				flaws = append(flaws, fmt.Sprintf("%s began the phase %q again, and %s did not: for a part of it not all processes were in it", its[0].by, phase, by))
				break
			}
			first := slices.MinFunc(its, func(a, b entered) int { return cmp.Compare(a.at, b.at) })
			last := slices.MaxFunc(its, func(a, b entered) int { return cmp.Compare(a.at, b.at) })
			shortest := slices.MinFunc(its, func(a, b entered) int { return cmp.Compare(a.stayed, b.stayed) }).stayed
			if later := last.at - first.at; later > apart(shortest) {
				flaws = append(flaws, fmt.Sprintf("%s and %s began the phase %q %v apart, which lasted %v: for a part of it not all processes were in it",
					first.by, last.by, phase, inSeconds(later), inSeconds(shortest)))
				break
			}
		}
	}
	return flaws
}

// entered is when a process began a stretch of a phase, by the clock of the first, and how long it stayed in it, in seconds.
type entered struct {
	by         string
	at, stayed float64
}

// entries are those of the stretch of a phase that has a number; there may be more of these stretches. Who was in it from its start, or was killed, tells nothing.
func entries(parts []Part, phase string, k int) (all []entered, more bool) {
	for _, p := range parts {
		its := p.Result.Phase(phase)
		if its == nil || k >= len(its.Stretches) {
			continue
		}
		more = true
		if s := its.Stretches[k]; s.From > 0 && !p.Ledger.Unfinished {
			all = append(all, entered{p.Result.Name, s.From + p.Result.Started.Sub(parts[0].Result.Started).Seconds(), s.To - s.From})
		}
	}
	return all, more
}

// without names a process that went on, and was in a phase not so often as one that entered it.
func without(parts []Part, phase string, k int, of entered) string {
	for _, p := range parts {
		its := p.Result.Phase(phase)
		if its != nil && k >= len(its.Stretches) && !p.Ledger.Unfinished && p.Ended().Sub(parts[0].Result.Started).Seconds() > of.at+apart(of.stayed) {
			return p.Result.Name
		}
	}
	return ""
}

func inSeconds(s float64) time.Duration {
	return time.Duration(s * float64(time.Second)).Round(10 * time.Millisecond)
}
