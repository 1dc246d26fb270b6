package result

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason"
)

// Clock is by how much the coordinator's clock is ahead of a process's, in ns.
type Clock struct {
	Offset int64 `json:"offset"`
	Bound  int64 `json:"bound"` // give or take

	// Processes on one machine have one monotonic clock, which ties theirs more exactly.
	Machine     string `json:"machine,omitempty"`
	Anchor      int64  `json:"anchor,omitempty"`      // what the process's clock says when that says 0
	AnchorBound int64  `json:"anchorBound,omitempty"` // give or take
}

// Clocks is by how much the clock of one process is ahead of another one's, in ns.
type Clocks struct {
	Of     string `json:"of"`
	Than   string `json:"than"`
	Offset int64  `json:"offset"`
	Bound  int64  `json:"bound"` // give or take
	Same   bool   `json:"same"`  // both are read from the clock of one machine
}

// apart returns how far the clocks may be apart.
func (c Clocks) apart() int64 { return max(c.Offset, -c.Offset) + c.Bound }

// wrong reports whether they are apart for certain.
func (c Clocks) wrong() bool { return max(c.Offset, -c.Offset) > c.Bound }

// ahead returns by how much a's clock is ahead of b's; false if one was not compared with the coordinator's.
func ahead(a, b *Result) (c Clocks, ok bool) {
	if a.Clock == nil || b.Clock == nil {
		return c, false
	}
	c = Clocks{Of: a.Name, Than: b.Name, Offset: b.Clock.Offset - a.Clock.Offset, Bound: a.Clock.Bound + b.Clock.Bound}
	if a.Clock.Machine != "" && a.Clock.Machine == b.Clock.Machine {
		exact := Clocks{c.Of, c.Than, a.Clock.Anchor - b.Clock.Anchor, a.Clock.AnchorBound + b.Clock.AnchorBound, true}
		if max(exact.Offset-c.Offset, c.Offset-exact.Offset) <= exact.Bound+c.Bound {
			return exact, true
		}
	}
	return c, true
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

// transit tells whether a trend is from an instant of the process that sent to one of the process that received.
func transit(trend string) bool {
	trend = strings.TrimSuffix(trend, recording.ClosedSuffix)
	return trend == recording.E2ELatency.String() || trend == recording.E2ETime.String()
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

// judgeMissing speaks of the processes that this one waited for in vain.
func (r *Result) judgeMissing(v *Verdict) {
	for _, name := range r.Missing {
		v.invalid(subject{}, reason.ProcessMissing, reason.Values{"why": "late", "name": name})
	}
	if r.Siblings > 0 && r.Clock == nil {
		v.note(subject{}, reason.Clocks, reason.Values{"why": "not-compared", "count": r.Siblings + 1})
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
		for _, p := range t.Percentiles[recording.E2ELatency.String()+suffix] {
			switch {
			case !p.Supported:
			case t.blurred(recording.E2ELatency.String(), p.Percentile):
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
				v.Except = recording.E2ELatency.Title()
			}
			values["quantiles"] = strings.Join(vague, ", ")
			v.note(t.subject(), reason.Clocks, values)
			return
		}
	}
	if !t.Apart.Same {
		v.note(t.subject(), reason.Clocks, values)
	}
}

// clocks returns by how much the clocks of two parts differ, by their places, the greater first.
func (m *merger) clocks() map[[2]int]Clocks {
	all := map[[2]int]Clocks{}
	for i, a := range m.parts {
		for k, b := range m.parts[:i] {
			if c, ok := ahead(a.Result, b.Result); ok {
				c.Of, c.Than = m.process(i), m.process(k)
				all[[2]int{i, k}] = c
			}
		}
	}
	return all
}

// apart sets how far the clocks may be apart by which latencies of the whole were measured.
func (m *merger) apart() {
	all := m.clocks()
	for _, pair := range slices.SortedFunc(maps.Keys(all), func(a, b [2]int) int { return slices.Compare(a[:], b[:]) }) {
		m.result.Clocks = append(m.result.Clocks, all[pair])
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
					known, there := all[[2]int{max(k, to), min(k, to)}]
					if !there {
						m.uncompared = true
					} else if t.Apart == nil || known.apart() > t.Apart.apart() {
						t.Apart = &known
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
