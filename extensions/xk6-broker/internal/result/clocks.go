package result

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason"
)

// Clock is the coordinator's clock minus a process's, in ns.
type Clock struct {
	Offset int64 `json:"offset"`
	Bound  int64 `json:"bound"` // give or take

	// Processes on one machine share a monotonic clock, which compares theirs more exactly.
	Machine     string `json:"machine,omitempty"`
	Anchor      int64  `json:"anchor,omitempty"`      // the process's clock when that is 0
	AnchorBound int64  `json:"anchorBound,omitempty"` // give or take
}

// Clocks is the clock of one process minus that of another, in ns.
type Clocks struct {
	Of     string `json:"of"`
	Than   string `json:"than"`
	Offset int64  `json:"offset"`
	Bound  int64  `json:"bound"` // give or take
	Same   bool   `json:"same"`  // both are read from the clock of one machine
}

// apart returns the greatest difference that is possible.
func (c Clocks) apart() int64 { return max(c.Offset, -c.Offset) + c.Bound }

// wrong reports whether the clocks differ for certain.
func (c Clocks) wrong() bool { return max(c.Offset, -c.Offset) > c.Bound }

// ahead compares two clocks; false if one was not compared with the coordinator's.
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

// String describes the difference.
func (c Clocks) String() string {
	ahead, than, by := c.Of, c.Than, c.Offset
	if by < 0 {
		ahead, than, by = than, ahead, -by
	}
	return fmt.Sprintf("the clock of %s is %s ± %s ahead of that of %s", ahead, reason.Duration(time.Duration(by)), reason.Duration(time.Duration(c.Bound)), than)
}

// blurred reports whether clocks may be further apart than a tenth of a value of a trend that two of them measured.
func (t *Topic) blurred(trend string, value int64) bool {
	trend = strings.TrimSuffix(trend, recording.ClosedSuffix)
	if t.Apart == nil || trend != recording.E2ELatency.String() && trend != recording.E2ETime.String() {
		return false
	}
	return float64(t.Apart.apart()) > OwedShare*float64(value)
}

// judgeClocks adds how exact latencies between two clocks are. That is known to half of a round trip only, which is no
// fault of the test; clocks that are apart for certain are.
func (t *Topic) judgeClocks(v *Verdict) {
	if t.Apart == nil {
		return
	}
	values := reason.Values{"why": "apart", "apart": time.Duration(t.Apart.apart()), "clocks": t.Apart.String()}
	var vague []string
	exact := false
	for _, suffix := range t.loops() {
		for _, p := range t.Percentiles[recording.E2ELatency.String()+suffix] {
			if p.Supported && t.blurred(recording.E2ELatency.String(), p.Value) {
				vague = append(vague, QuantileName(p.Q))
			}
			exact = exact || p.Supported && !t.blurred(recording.E2ELatency.String(), p.Value)
		}
	}
	if len(vague) > 0 {
		values["quantiles"] = strings.Join(slices.Compact(slices.Sorted(slices.Values(vague))), ", ")
	}
	switch {
	case len(vague) > 0 && !exact && t.Apart.wrong():
		values["why"] = "wrong"
		v.invalid(t.subject(), reason.Clocks, values)
	case len(vague) > 0 && !exact:
		v.Except = recording.E2ELatency.Title()
		v.note(t.subject(), reason.Clocks, values)
	case len(vague) > 0 || !t.Apart.Same:
		v.note(t.subject(), reason.Clocks, values)
	}
}

// compareClocks sets how far the clocks of each two processes are apart, and for each topic the worst of two that
// exchanged messages.
func (m *merger) compareClocks() {
	at := map[uint32]int{}
	compared := map[[2]int]Clocks{}
	for i, a := range m.parts {
		at[a.Ledger.Instance] = i
		for k, b := range m.parts[:i] {
			if c, ok := ahead(a.Result, b.Result); ok {
				c.Of, c.Than = m.process(i), m.process(k)
				compared[[2]int{i, k}] = c
				m.result.Clocks = append(m.result.Clocks, c)
			}
		}
	}
	for to, p := range m.parts {
		for _, l := range p.Ledger.Topics {
			t := m.find(l.Broker, l.Driver, l.Topic)
			for _, from := range sources(&l) {
				k, here := at[from]
				if t == nil || !here || k == to {
					continue
				}
				if c, ok := compared[[2]int{max(k, to), min(k, to)}]; !ok {
					m.uncompared = true
				} else if t.Apart == nil || c.apart() > t.Apart.apart() {
					t.Apart = &c
				}
			}
		}
	}
}

// sources lists the processes that messages were received from.
func sources(l *account.TopicLedger) (instances []uint32) {
	for _, g := range l.Groups {
		for i := range g.Sources {
			from := uint32(g.Sources[i].ID >> 32) //gosec:disable G115 -- the upper half
			if g.Sources[i].Received.Len() > 0 && !slices.Contains(instances, from) {
				instances = append(instances, from)
			}
		}
	}
	return instances
}
