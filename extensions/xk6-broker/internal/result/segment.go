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

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason"
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
		v.invalid(subject{}, reason.ProcessesDiffer, reason.Values{"why": "no-run", "detail": s.Of})
	}
	for _, scenario := range s.Idle {
		v.invalid(subject{}, reason.LoadIncomplete, reason.Values{"why": "idle", "scenario": scenario, "segment": s.Of})
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

// judgeProcesses says how processes are not those of one test: each of them once, and each execution segment of it by one of them, and by one only.
func judgeProcesses(v *Verdict, parts []Part) {
	differ := func(why, names, detail string) {
		v.invalid(subject{}, reason.ProcessesDiffer, reason.Values{"why": why, "names": names, "detail": detail})
	}
	called := map[string]int{}
	for _, p := range parts {
		if called[p.Result.Name]++; called[p.Result.Name] == 2 && p.Result.Name != "" {
			differ("twice", "", p.Result.Name)
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
		if what := first.loadOtherwise(p.Result); what != "" {
			differ("load", first.Name+" and "+p.Result.Name, what)
		}
		from, to, err := s.bounds()
		if err != nil {
			differ("load", p.Result.Name, err.Error())
			continue
		}
		all = append(all, span{from, to, p.Result.Name})
	}
	if len(all) == 0 {
		return
	}
	slices.SortStableFunc(all, func(a, b span) int { return a.from.Cmp(b.from) })
	gap := func(from, to *big.Rat) {
		if from.Cmp(to) < 0 {
			differ("segment-missing", "", from.RatString()+":"+to.RatString())
		}
	}
	reached, by := new(big.Rat), ""
	for _, s := range all {
		if s.from.Cmp(reached) < 0 {
			both := reached
			if s.to.Cmp(both) < 0 {
				both = s.to
			}
			differ("twice", by+" and "+s.name, "the execution segment "+s.from.RatString()+":"+both.RatString())
		}
		gap(reached, s.from)
		if s.to.Cmp(reached) > 0 {
			reached, by = s.to, s.name
		}
	}
	gap(reached, big.NewRat(1, 1))
	judgeBeginnings(v, parts)
}

// loadOtherwise says how the loads of which two processes had parts are not the same; "" where they are.
func (r *Result) loadOtherwise(other *Result) string {
	if a, b := r.Segment.Sequence, other.Segment.Sequence; a != b {
		return fmt.Sprintf("the execution segments are %s in the one, and %s in the other", a, b)
	}
	if what := cmp.Or(r.Test.lacking(&other.Test), other.Test.lacking(&r.Test)); what != "" {
		return fmt.Sprintf("only one of them had the scenario %s", what)
	}
	return cmp.Or(r.Test.otherwise(&other.Test), r.loopsOtherwise(other))
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
		v.note(subject{}, reason.ProcessesDiffer, reason.Values{"why": "repeated", "count": ran[name], "detail": name})
	}
}

const (
	// Processes begin together if their beginnings are no further apart than a part of their time, or than so many seconds.
	beginsTogether = 0.05
	beginsAnyhow   = 0.5
)

// judgeBeginnings says that processes which have segments of one load did not wait for each other, and began it at different times.
func judgeBeginnings(v *Verdict, parts []Part) {
	var first, last *Result
	shortest := math.Inf(1)
	for _, p := range parts {
		r := p.Result
		if r.Segment == nil || r.Clock != nil && !r.Test.runs(unheld...) {
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
		return
	}
	if apart := last.Started.Sub(first.Started); apart.Seconds() > max(beginsAnyhow, beginsTogether*shortest) {
		v.invalid(subject{}, reason.ProcessesDiffer, reason.Values{"why": "begin", "names": first.Name + " and " + last.Name, "apart": apart})
	}
}
