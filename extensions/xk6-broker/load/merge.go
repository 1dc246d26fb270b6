package load

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/track"
)

// Part is what one process of a test left behind.
type Part struct {
	Result *Result
	Ledger *Ledger
}

// Merge joins what the processes of one test found out. Distributions and counts are exact, and so is the account, message by message.
// Over time, the quantiles of an interval are the worst that any process had.
func Merge(parts []Part) (*Result, error) {
	if err := mergeable(parts); err != nil {
		return nil, err
	}
	parts = slices.Clone(parts)
	slices.SortFunc(parts, func(a, b Part) int { return a.Result.Started.Compare(b.Result.Started) })
	m := &merger{parts: parts, result: &Result{
		Version: ResultVersion, Run: parts[0].Result.Run, Started: parts[0].Result.Started, Environment: map[string]string{}, Topics: []TopicResult{},
		Test: Test{Scenarios: []Scenario{}}, Thresholds: []Threshold{}, Checks: []Check{}, Marks: []Annotation{},
	}}
	m.several = m.ambiguous()
	m.open, m.lengths = map[[3]string]bool{}, map[[3]string]map[string]float64{}
	for _, p := range parts {
		for _, t := range p.Result.Topics {
			if t.OpenLoop {
				m.open[m.key(t.Broker, t.Driver, t.Topic)] = true
			}
		}
	}
	for _, p := range parts {
		for i := range p.Result.Topics {
			m.measure(&p.Result.Topics[i])
		}
	}
	c := Circumstances{}
	for _, p := range parts {
		m.result.Seconds = max(m.result.Seconds, p.Result.Started.Sub(m.result.Started).Seconds()+p.Result.Seconds)
		c.Dropped += p.Result.Dropped
		c.Unserved += p.Result.Unserved
		c.CPU = max(c.CPU, p.Result.CPU)
		m.environment(p.Result.Environment)
		m.result.Platform = m.result.Platform.join(p.Result.Platform)
		m.result.Test.merge(p.Result.Test)
		m.result.Checks = mergeChecks(m.result.Checks, p.Result.Checks)
		m.marks(p.Result)
		for i := range p.Result.Topics {
			m.topic(p.Result, &p.Result.Topics[i])
		}
	}
	m.result.Environment["processes"] = fmt.Sprint(len(parts))
	for i := range m.result.Topics {
		m.account(i)
	}
	m.result.Describe()
	m.result.Judge(c)
	m.verdict()
	return m.result, nil
}

func mergeable(parts []Part) error {
	if len(parts) < 2 {
		return errors.New("merge: there must be two results or more")
	}
	seen := map[uint32]bool{}
	for _, p := range parts {
		name := p.Result.Name
		switch {
		case p.Result.Run != parts[0].Result.Run:
			return fmt.Errorf("merge: %s and %s are not of one test: give all its processes the same BROKER_RUN", parts[0].Result.Name, name)
		case p.Ledger == nil:
			return fmt.Errorf("merge: %s has no ledger: run its process with BROKER_RUN", name)
		case p.Ledger.Run != p.Result.Run || p.Ledger.Instance != p.Result.Instance:
			return fmt.Errorf("merge: the ledger of %s is of another run", name)
		case seen[p.Result.Instance]:
			return fmt.Errorf("merge: %s is there twice", name)
		}
		seen[p.Result.Instance] = true
	}
	return nil
}

type merger struct {
	parts   []Part
	result  *Result
	open    map[[3]string]bool               // the topics that some process sent to by a schedule
	lengths map[[3]string]map[string]float64 // of the intervals over time, in seconds: of each trend, and "" of the history
	several bool                             // a process has one topic on several brokers: then topics are told apart by address too
}

// key tells topics apart. Processes on different machines may know one broker by different addresses.
func (m *merger) key(broker, driver, topic string) [3]string {
	if !m.several {
		broker = ""
	}
	return [3]string{broker, driver, topic}
}

func (m *merger) ambiguous() bool {
	for _, p := range m.parts {
		seen := map[[2]string]bool{}
		for _, t := range p.Result.Topics {
			key := [2]string{t.Driver, t.Topic}
			if seen[key] {
				return true
			}
			seen[key] = true
		}
	}
	return false
}

func (m *merger) environment(env map[string]string) {
	for name, value := range env {
		if have, ok := m.result.Environment[name]; ok && have != value {
			value = have + "; " + value
		}
		m.result.Environment[name] = value
	}
}

// marks adds what the script of one process said had happened.
func (m *merger) marks(of *Result) {
	shift := of.Started.Sub(m.result.Started).Seconds()
	for _, a := range of.Marks {
		m.result.Marks = append(m.result.Marks, Annotation{At: a.At + shift, What: a.What})
	}
	slices.SortStableFunc(m.result.Marks, func(a, b Annotation) int { return cmp.Compare(a.At, b.At) })
}

// topic adds what one process measured on a topic.
func (m *merger) topic(of *Result, t *TopicResult) {
	key := m.key(t.Broker, t.Driver, t.Topic)
	i := slices.IndexFunc(m.result.Topics, func(o TopicResult) bool { return m.key(o.Broker, o.Driver, o.Topic) == key })
	if i < 0 {
		i = len(m.result.Topics)
		m.result.Topics = append(m.result.Topics, TopicResult{
			Broker: t.Broker, Driver: t.Driver, Topic: t.Topic, Info: t.Info, Confirm: t.Confirm, Options: Uses{},
			Counts: map[string]int64{}, Errors: []ErrorCount{}, Trends: map[string]*hist.Histogram{}, Groups: []GroupResult{}, History: []Point{},
			OverTime: map[string][]Summary{},
		})
	}
	to := &m.result.Topics[i]
	to.OpenLoop, to.ClosedLoop = to.OpenLoop || t.OpenLoop, to.ClosedLoop || t.ClosedLoop
	named := m.named(key, t)
	for of, all := range t.Options {
		for _, options := range all {
			to.Options.add(of, options)
		}
	}
	for name, n := range t.Counts {
		to.Counts[name] += n
	}
	for name, h := range t.Trends {
		name = named(name)
		to.Trends[name] = merge(to.Trends[name], h)
	}
	for i := range t.Groups {
		g := to.group(t.Groups[i].Group)
		g.Members += t.Groups[i].Members
		for name, h := range t.Groups[i].Trends {
			name = named(name)
			g.Trends[name] = merge(g.Trends[name], h)
		}
	}
	for _, e := range t.Errors {
		to.addErrors(ErrorLabels{e.Op, e.Kind}, e.Count)
	}
	shift, lengths := of.Started.Sub(m.result.Started).Seconds(), m.lengths[key]
	var points []Point
	for _, p := range t.History {
		p.At += shift
		points = addPoint(points, p, lengths[""], laterPoint)
	}
	for _, p := range points {
		to.History = addPoint(to.History, p, lengths[""], otherPoint)
	}
	for name, summaries := range t.OverTime {
		name = named(name)
		for _, s := range summaries {
			s.At += shift
			to.OverTime[name] = addSummary(to.OverTime[name], s, lengths[name])
		}
	}
}

// named gives the names that the trends of a process's topic have in the whole.
func (m *merger) named(key [3]string, t *TopicResult) func(string) string {
	if m.open[key] && !t.OpenLoop { // its closed loop had the plain names to itself
		return closedName
	}
	return func(name string) string { return name }
}

// measure makes the intervals over time as long as the longest that a process has.
func (m *merger) measure(t *TopicResult) {
	key := m.key(t.Broker, t.Driver, t.Topic)
	if m.lengths[key] == nil {
		m.lengths[key] = map[string]float64{}
	}
	lengths, named := m.lengths[key], m.named(key, t)
	lengths[""] = max(lengths[""], Length(t.History))
	for name, summaries := range t.OverTime {
		name = named(name)
		lengths[name] = max(lengths[name], Length(summaries))
	}
}

// group finds or makes the result of a group.
func (t *TopicResult) group(name string) *GroupResult {
	i := slices.IndexFunc(t.Groups, func(g GroupResult) bool { return g.Group == name })
	if i < 0 {
		i = len(t.Groups)
		t.Groups = append(t.Groups, GroupResult{Accounting: Accounting{Group: name}, Trends: map[string]*hist.Histogram{}})
	}
	return &t.Groups[i]
}

// at is the end of the interval, of those of a length, that a process's interval ended in.
func at(end, length float64) float64 { return math.Ceil(end/length) * length }

// find gives the place of the interval that ends at a time, which it adds where there is none.
func find[T timed](all []T, at float64, fresh T) ([]T, *T) {
	i, found := slices.BinarySearchFunc(all, at, func(one T, at float64) int { return cmp.Compare(one.end(), at) })
	if !found {
		all = slices.Insert(all, i, fresh)
	}
	return all, &all[i]
}

// addPoint adds an interval to those of a length, with what puts the queues of two together.
func addPoint(history []Point, p Point, length float64, queues func(q *Point, p Point)) []Point {
	end := at(p.At, length)
	history, q := find(history, end, Point{At: end, Seconds: length, Counts: map[string]int64{}})
	q.Counts = combined(q.Counts, p.Counts, func(x, y int64) int64 { return x + y })
	q.Errors += p.Errors
	q.ErrorKinds = combined(q.ErrorKinds, p.ErrorKinds, func(x, y int64) int64 { return x + y })
	queues(q, p)
	q.CPU, q.Busiest = max(q.CPU, p.CPU), max(q.Busiest, p.Busiest)
	q.Backlog = combined(q.Backlog, p.Backlog, func(x, y int64) int64 { return max(x, y) })
	return history
}

// laterPoint is for an interval of the same process, otherPoint for one of another.
func laterPoint(q *Point, p Point) {
	q.InFlight, q.Outstanding = max(q.InFlight, p.InFlight), max(q.Outstanding, p.Outstanding)
}

func otherPoint(q *Point, p Point) {
	q.InFlight, q.Outstanding = q.InFlight+p.InFlight, q.Outstanding+p.Outstanding
}

// addSummary adds the distribution of an interval to those of a length: the worst of each quantile.
func addSummary(all []Summary, s Summary, length float64) []Summary {
	end := at(s.At, length)
	all, w := find(all, end, Summary{At: end, Seconds: length})
	w.Count += s.Count
	w.P50, w.P90, w.P99, w.P999, w.Max = max(w.P50, s.P50), max(w.P90, s.P90), max(w.P99, s.P99), max(w.P999, s.P999), max(w.Max, s.Max)
	return all
}

// account puts the ledgers of one topic together.
func (m *merger) account(i int) {
	t := &m.result.Topics[i]
	key := m.key(t.Broker, t.Driver, t.Topic)
	var producers []track.ProducerLedger
	index, next := map[uint64][]Mark{}, map[uint64]uint64{}
	groups := map[string][]*GroupLedger{}
	subscribers := map[string]bool{}
	for n, p := range m.parts {
		for k := range p.Ledger.Topics {
			l := &p.Ledger.Topics[k]
			if m.key(l.Broker, l.Driver, l.Topic) != key {
				continue
			}
			producers = append(producers, l.Producers...)
			maps.Copy(index, l.Index)
			for _, producer := range l.Producers {
				next[producer.ID] = producer.Next
			}
			for g := range l.Groups {
				name := l.Groups[g].Name
				if l.Groups[g].Subscriber {
					name = fmt.Sprintf("process %d, %s", n+1, name)
					subscribers[name] = true
				}
				groups[name] = append(groups[name], &l.Groups[g])
			}
		}
	}
	var foreign uint64
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		a := mergeGroup(name, groups[name], producers, index, next)
		foreign += a.Foreign
		if !subscribers[name] {
			t.group(name).Accounting = a
			continue
		}
		a.Group = Subscribers
		if g := t.group(Subscribers); g.Subscribers == 0 {
			a.Subscribers = 1
			g.Accounting = a
		} else {
			g.join(a)
		}
	}
	delete(t.Counts, Sibling.String()) // they are siblings no more
	if foreign > 0 {
		t.Counts[Sibling.String()] = int64(foreign)
	}
}

func mergeGroup(name string, parts []*GroupLedger, producers []track.ProducerLedger, index map[uint64][]Mark, next map[uint64]uint64) Accounting {
	spans := func(id uint64) []track.Bounds {
		var all []track.Bounds
		for _, p := range parts {
			all = append(all, p.spans(id, next[id], index[id])...)
		}
		if len(parts) > 0 && parts[0].Kept { // it is there from its first member on
			all = []track.Bounds{{From: slices.MinFunc(all, byFrom).From, Until: math.MaxUint64}}
		}
		return all
	}
	ledgers := make([]track.GroupLedger, len(parts))
	var last *GroupLedger // who asked the broker last knows what it still has
	for i, p := range parts {
		ledgers[i] = p.GroupLedger
		if last == nil || p.Asked > last.Asked {
			last = p
		}
	}
	tally, ranges := track.Merge(producers, ledgers, spans, shownRanges)
	undelivered := min(tally.Missing, uint64(last.Backlog))
	return Accounting{Group: name, Tally: tally, Undelivered: undelivered, Lost: tally.Missing - undelivered, Ranges: ranges}
}

func byFrom(a, b track.Bounds) int { return cmp.Compare(a.From, b.From) }

// verdict adds what the processes had to say of themselves. The thresholds of one are none of all together.
func (m *merger) verdict() {
	v := &m.result.Verdict
	for i, p := range m.parts {
		for _, reason := range p.Result.Verdict.Reasons {
			if slices.ContainsFunc(p.Result.Thresholds, func(t Threshold) bool { return t.reason() == reason }) {
				continue
			}
			v.because(latencies|account, "process %d (%s): %s", i+1, p.Result.Name, reason)
		}
		for _, b := range p.Result.Verdict.Beliefs {
			if b.UpTo > 0 && b.Why != "" {
				v.note("process %d (%s): %s", i+1, p.Result.Name, b)
			}
		}
		for _, note := range p.Result.Verdict.Notes {
			if !slices.Contains(v.Notes, note) && !strings.HasSuffix(note, mergeTells) {
				v.Notes = append(v.Notes, note)
			}
		}
	}
	v.note("of %d processes: latencies between them are by the clocks of their machines; over time, the quantiles of an interval are those "+
		"of the process that had the worst", len(m.parts))
	v.Valid = len(v.Reasons) == 0
}
