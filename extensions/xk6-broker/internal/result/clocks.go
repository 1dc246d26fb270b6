package result

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/metric"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/reason"
)

// Peer is another process of the test, as a process met it through the broker.
type Peer struct {
	Process  int     `json:"process"`            // its number, from 1
	Instance uint32  `json:"instance,omitempty"` // 0 where it never came
	Name     string  `json:"name,omitempty"`
	Lacked   string  `json:"lacked,omitempty"` // what it was waited for in vain
	Twin     uint32  `json:"twin,omitempty"`   // another process that said to be this one
	Later    float64 `json:"later,omitempty"`  // by how many seconds its scenarios began after this process's; before, if less than 0
	Clock    *Clock  `json:"clock,omitempty"`  // of its clock and this process's; nil where they were not compared
}

// Clock is by how much a clock is ahead of another one, in ns.
type Clock struct {
	Offset    int64   `json:"offset"`     // in the middle of the time in which they were compared
	Bound     int64   `json:"bound"`      // give or take
	Drift     float64 `json:"drift"`      // how much it gains, in parts of a million
	Gives     float64 `json:"driftBound"` // give or take
	Least     int64   `json:"least"`      // at least, at any time
	Most      int64   `json:"most"`       // and at most
	RoundTrip int64   `json:"roundTrip"`
	Messages  uint64  `json:"messages"` // that told
	Same      bool    `json:"same"`     // both are read from the clock of one machine, which tells exactly
}

// Clocks is how the clocks of two processes differ: Of's is ahead of Than's.
type Clocks struct {
	Of   string `json:"of"`
	Than string `json:"than"`
	Clock
}

// apart is how far the clocks may be apart.
func (c Clock) apart() int64 { return max(c.Most, -c.Least) }

// wrong tells whether they are apart for certain.
func (c Clock) wrong() bool { return c.Least > 0 || c.Most < 0 }

func (c Clock) turned() Clock {
	c.Offset, c.Drift, c.Least, c.Most = -c.Offset, 0-c.Drift, -c.Most, -c.Least
	return c
}

// and is what two comparisons of the same clocks tell together.
func (c Clock) and(o Clock) Clock {
	least, most := max(c.Least, o.Least), min(c.Most, o.Most)
	if o.Bound < c.Bound {
		c, o = o, c
	}
	if c.Messages += o.Messages; least <= most { // they were not compared at the same times
		c.Least, c.Most = least, most
	}
	return c
}

// met is what the process knows of the clock of another one, or that one of its.
func (r *Result) met(other *Result) (Clocks, bool) {
	for _, pair := range [][2]*Result{{r, other}, {other, r}} {
		for _, p := range pair[0].Peers {
			if p.Instance == pair[1].Instance && p.Clock != nil {
				return Clocks{Of: pair[1].Name, Than: pair[0].Name, Clock: *p.Clock}, true
			}
		}
	}
	return Clocks{}, false
}

// String says how two clocks differ.
func (c Clocks) String() string {
	ahead, than, by := c.Of, c.Than, c.Offset
	if by < 0 {
		ahead, than, by = than, ahead, -by
	}
	return fmt.Sprintf("the clock of %s is %s ± %s ahead of that of %s", ahead, reason.Duration(time.Duration(by)), reason.Duration(time.Duration(c.Bound)), than)
}

// called is what a process is called that has a number and perhaps a name.
func called(process int, name string) string {
	if name == "" {
		return fmt.Sprintf("process %d", process)
	}
	return fmt.Sprintf("process %d (%s)", process, name)
}

// Meet adds what a process, which has a number and perhaps a name, found out about the others of the test. Why says why it could not, if it was to.
func (r *Result) Meet(process int, name string, peers []Peer, why string) {
	r.Peers, r.Unmet = peers, why
	var worst *Clocks
	for _, p := range peers {
		if p.Clock != nil && (worst == nil || p.Clock.apart() > worst.apart()) {
			worst = &Clocks{called(p.Process, p.Name), called(process, name), *p.Clock}
		}
	}
	if worst == nil {
		return
	}
	for i := range r.Topics {
		if t := &r.Topics[i]; t.Counts[metric.Sibling.String()] > 0 {
			t.Apart = worst
		}
	}
	r.Describe()
}

// transit tells whether a trend is from an instant of the process that sent to one of the process that received.
func transit(trend string) bool {
	trend = strings.TrimSuffix(trend, metric.ClosedSuffix)
	return trend == metric.E2ELatency.String() || trend == metric.E2ETime.String()
}

// blurred tells whether the clocks may be further apart than a tenth of a percentile that was measured by two of them.
func (t *Topic) blurred(trend string, p hist.Percentile) bool {
	return t.Apart != nil && transit(trend) && float64(t.Apart.apart()) > OwedShare*float64(p.Value)
}

// unclear says why what a condition compares of a trend, v in ms, may be other than it was measured: where clocks are that far apart.
func (t *Topic) unclear(c Condition, trend string, v float64) string {
	if t.Apart == nil || !transit(trend) {
		return ""
	}
	by := float64(t.Apart.apart()) / float64(time.Millisecond)
	if c.Holds(v-by) == c.Holds(v) && c.Holds(v+by) == c.Holds(v) {
		return ""
	}
	return fmt.Sprintf("it is by clocks that may be %s apart", reason.Duration(time.Duration(t.Apart.apart())))
}

// vague says why what a condition compares of a trend may be less than the truth and more, where clocks may be more than a tenth of it apart.
func (t *Topic) vague(c Condition, trend string) string {
	if h := t.Trends[trend]; h != nil && t.blurred(trend, hist.Percentile{Value: int64(c.Of(h) * float64(time.Millisecond))}) {
		return fmt.Sprintf("it is by clocks that may be %s apart", reason.Duration(time.Duration(t.Apart.apart())))
	}
	return ""
}

// unheld are the executors of an arrival rate that begin when k6 does, whoever is still to come.
var unheld = []string{"constant-arrival-rate", "ramping-arrival-rate"}

// judgePeers speaks of the other processes, and of whether this one began with them.
func (r *Result) judgePeers(v *Verdict) {
	if r.Unmet != "" {
		v.note(subject{}, reason.ProcessesDiffer, reason.Values{"why": "apart", "detail": r.Unmet})
	}
	for _, p := range r.Peers {
		name := called(p.Process, p.Name)
		if p.Lacked != "" {
			v.invalid(subject{}, reason.ProcessMissing, reason.Values{"why": "late", "name": name, "detail": p.Lacked})
		}
		if p.Later > max(beginsAnyhow, beginsTogether*r.Seconds) && r.Test.runs(unheld...) {
			v.invalid(subject{}, reason.ProcessesDiffer, reason.Values{"why": "begin", "names": "this process and " + name, "apart": p.Later})
		}
		if p.Twin != 0 {
			v.invalid(subject{}, reason.ProcessesDiffer, reason.Values{"why": "twice", "names": fmt.Sprintf("instances %d and %d", p.Instance, p.Twin), "detail": called(p.Process, "")})
		}
	}
}

// judgeClocks speaks of latencies that were measured by two clocks. How far these are apart is known to half of a round trip, which is about the least that
// a message takes: it is no fault of the test that no more is known of the smallest latencies than that. That clocks are apart, for certain, is.
func (t *Topic) judgeClocks(v *Verdict) {
	if t.Apart == nil {
		return
	}
	values := reason.Values{"why": "apart", "apart": time.Duration(t.Apart.apart()), "clocks": t.Apart.String()}
	for _, suffix := range t.loops() {
		var vague []string
		certain := false
		for _, p := range t.Percentiles[metric.E2ELatency.String()+suffix] {
			switch {
			case !p.Supported:
			case t.blurred(metric.E2ELatency.String(), p.Percentile):
				vague = append(vague, QuantileName(p.Q))
			default:
				certain = true
			}
		}
		switch {
		case len(vague) == 0:
		case !certain && t.Apart.wrong():
			values["why"] = "wrong"
			v.invalid(t.subject(), reason.Clocks, values)
			return
		default:
			if !certain {
				v.Except = metric.E2ELatency.Title()
			}
			values["quantiles"] = strings.Join(vague, ", ")
			v.note(t.subject(), reason.Clocks, values)
			return
		}
	}
	if !t.Shared && !t.Apart.Same {
		v.note(t.subject(), reason.Clocks, values)
	}
}

// clocks puts together what the processes know of each other's clocks, by the places of their parts.
func (m *merger) clocks() map[[2]int]Clock {
	at := map[uint32]int{}
	for i, p := range m.parts {
		at[p.Result.Instance] = i
	}
	all := map[[2]int]Clock{}
	for i, p := range m.parts {
		for _, of := range p.Result.Peers {
			k, here := at[of.Instance]
			if !here || of.Clock == nil {
				continue
			}
			known := *of.Clock // k's clock is ahead of i's
			pair := [2]int{k, i}
			if k < i {
				pair, known = [2]int{i, k}, known.turned()
			}
			if other, there := all[pair]; there {
				known = known.and(other)
			}
			all[pair] = known
		}
	}
	return all
}

// apart sets how far the clocks may be apart by which latencies of the whole were measured.
func (m *merger) apart() {
	all := m.clocks()
	pairs := slices.SortedFunc(maps.Keys(all), func(a, b [2]int) int { return slices.Compare(a[:], b[:]) })
	for _, pair := range pairs {
		m.result.Clocks = append(m.result.Clocks, Clocks{m.process(pair[0]), m.process(pair[1]), all[pair]})
	}
	at := map[uint32]int{}
	for i, p := range m.parts {
		at[p.Ledger.Instance] = i
	}
	for i := range m.result.Topics {
		t := &m.result.Topics[i]
		for to, p := range m.parts {
			for _, l := range p.Ledger.Topics {
				if m.key(l.Broker, l.Driver, l.Topic) != m.key(t.Broker, t.Driver, t.Topic) {
					continue
				}
				for _, from := range sourcesOf(&l) {
					k, here := at[from]
					if !here || k == to {
						continue
					}
					pair := [2]int{max(k, to), min(k, to)}
					known, there := all[pair]
					if !there {
						m.uncompared = true
					} else if t.Apart == nil || known.apart() > t.Apart.apart() {
						t.Apart = &Clocks{m.process(pair[0]), m.process(pair[1]), known}
					}
				}
			}
		}
	}
}

func (m *merger) process(i int) string { return called(numbers(m.parts)[i], m.parts[i].Result.Name) }

// sourcesOf lists the processes that messages were received from.
func sourcesOf(l *account.TopicLedger) (instances []uint32) {
	for _, g := range l.Groups {
		for i := range g.Sources {
			if from := uint32(g.Sources[i].ID >> 32); g.Sources[i].Received.Len() > 0 && !slices.Contains(instances, from) { //gosec:disable G115 -- it is in the upper half
				instances = append(instances, from)
			}
		}
	}
	return instances
}
