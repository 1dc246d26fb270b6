package result

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/metric"
)

// Part is what one process of a test left behind.
type Part struct {
	Result *Result
	Ledger *account.Ledger

	// Log reads the interval log of a trend of one of the result's topics, in order. Nil where the process left none.
	Log func(*Topic, metric.Trend) iter.Seq2[hist.Interval, error]
}

// Siblings says what is to be known of the processes of a test besides what they left behind.
type Siblings struct {
	Processes int      // how many there were; 0 where only the results can tell
	Absent    []string // those that are known to be missing, as people know them
	Killed    bool     // those that were killed were to be
	// Backlog asks a broker what it has now for a group, when all processes have ended; known is false where it is not asked for that
	// topic. Nil asks nobody: then what a broker said while the test ran must do.
	Backlog func(broker, driver, topic, group string) (b account.Backlog, known bool, err error)
}

// Merge joins what the processes of one test found out. Distributions and counts are exact, and so is the account, message by message.
// Over time, the quantiles are those of the sum where all processes left interval logs, and else the worst that any of them had. Parts that are not of one test, or not of one time, are an
// error, and so is what Siblings.Backlog gives.
func Merge(parts []Part, known Siblings) (*Result, error) {
	parts = slices.Clone(parts)
	slices.SortStableFunc(parts, func(a, b Part) int { return a.Result.Started.Compare(b.Result.Started) })
	processes, err := mergeable(parts, known.Processes)
	if err != nil {
		return nil, err
	}
	m := &merger{parts: parts, processes: processes, known: known, result: &Result{
		Version: Version, Run: parts[0].Result.Run, Started: parts[0].Result.Started, Processes: processes,
		Environment: map[string]string{}, Topics: []Topic{},
		Test: Test{Scenarios: []Scenario{}}, Thresholds: []Threshold{}, Checks: []Check{}, Marks: []Annotation{},
	}}
	m.several, m.diverged = m.ambiguous(), !samePhases(parts)
	m.open, m.lengths, m.unlogged = map[topicID]bool{}, map[topicID]map[string]float64{}, map[int]error{}
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
		m.result.Seconds = max(m.result.Seconds, p.Ended().Sub(m.result.Started).Seconds())
	}
	for _, p := range parts {
		c.Dropped += p.Result.Dropped
		c.Unserved += p.Result.Unserved
		c.CPU = max(c.CPU, p.Result.CPU)
		m.environment(p.Result.Environment)
		m.result.Platform = m.result.Platform.join(p.Result.Platform)
		m.result.Test.merge(p.Result.Test)
		m.result.Checks = mergeChecks(m.result.Checks, p.Result.Checks)
		m.marks(p.Result)
		if !m.diverged {
			m.result.joinPhases(p.Result, p.Result.Started.Sub(m.result.Started).Seconds())
		}
		for i := range p.Result.Topics {
			m.topic(p.Result, &p.Result.Topics[i])
		}
	}
	m.result.Environment["processes"] = fmt.Sprint(len(parts))
	if err := m.account(); err != nil {
		return nil, err
	}
	m.apart()
	m.overTime()
	m.result.Describe()
	m.result.Judge(c)
	m.verdict()
	return m.result, nil
}

// mergeable checks that the parts, in the order of their start, can be of one test, and gives how many processes it had; 0 where that is
// not known.
func mergeable(parts []Part, processes int) (int, error) {
	if len(parts) == 0 || len(parts) == 1 && cmp.Or(processes, parts[0].Result.Processes) == 0 {
		return 0, errors.New("merge: there must be two results or more")
	}
	seen := map[uint32]bool{}
	said, by := 0, ""
	last := parts[0] // the one that ended last, of those so far
	for _, p := range parts {
		name := p.Result.Name
		switch {
		case p.Result.Run != parts[0].Result.Run:
			return 0, fmt.Errorf("merge: %s and %s are not of one test: give all its processes the same BROKER_RUN", parts[0].Result.Name, name)
		case p.Ledger == nil:
			return 0, fmt.Errorf("merge: %s has no ledger: run its process with BROKER_RUN", name)
		case p.Ledger.Run != p.Result.Run || p.Ledger.Instance != p.Result.Instance:
			return 0, fmt.Errorf("merge: the ledger of %s is of another run", name)
		case seen[p.Result.Instance]:
			return 0, fmt.Errorf("merge: %s is there twice", name)
		case p.Result.Started.After(last.Ended().Add(ClockSkew)):
			if met, ok := ahead(p.Result, last.Result); ok {
				return 0, fmt.Errorf("merge: %s and %s ran at one time, and not by their clocks: %v; set the machines' clocks", last.Result.Name, name, met)
			}
			return 0, fmt.Errorf("merge: %s and %s are not of one time: %s ended at %s, and %s began at %s; give each test a BROKER_RUN of its own",
				last.Result.Name, name, last.Result.Name, instant(last.Ended()), name, instant(p.Result.Started))
		case said != 0 && p.Result.Processes != 0 && p.Result.Processes != said:
			return 0, fmt.Errorf("merge: the test has %d processes by what %s says and %d by what %s says: give them the same BROKER_PROCESSES",
				said, by, p.Result.Processes, name)
		}
		seen[p.Result.Instance] = true
		if p.Ended().After(last.Ended()) {
			last = p
		}
		if p.Result.Processes != 0 {
			said, by = p.Result.Processes, name
		}
	}
	processes = cmp.Or(processes, said)
	if processes != 0 && len(parts) > processes {
		return 0, fmt.Errorf("merge: there are %d results of a test that has %d processes: give --processes or BROKER_PROCESSES as many as there were",
			len(parts), processes)
	}
	return processes, nil
}

// Ended is when the process's result was made.
func (p Part) Ended() time.Time {
	return p.Result.Started.Add(time.Duration(p.Result.Seconds * float64(time.Second)))
}

func instant(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }

type merger struct {
	parts     []Part
	processes int // of the test, as is known; 0 where it is not
	known     Siblings
	result    *Result
	open      map[topicID]bool               // the topics that some process sent to by a schedule
	lengths   map[topicID]map[string]float64 // of the intervals over time, in seconds: of each trend, and "" of the history
	diverged  bool                           // the processes had different phases, and the whole has none
	several   bool                           // a process has one topic on several brokers: then topics are told apart by address too

	unlogged   map[int]error     // why parts have no interval log of something that they measured, the first of the reasons
	absent     map[uint32]uint64 // processes that are not here, by how many of their messages came
	uncompared bool              // clocks of processes that got messages from one another were not compared
	askedLate  bool              // a broker was asked after the test
}

// topicID tells topics apart.
type topicID struct{ broker, driver, name string }

// key is what a topic goes by. Processes on different machines may know one broker by different addresses.
func (m *merger) key(broker, driver, topic string) topicID {
	if !m.several {
		broker = ""
	}
	return topicID{broker, driver, topic}
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
func (m *merger) topic(of *Result, t *Topic) {
	key := m.key(t.Broker, t.Driver, t.Topic)
	i := slices.IndexFunc(m.result.Topics, func(o Topic) bool { return m.key(o.Broker, o.Driver, o.Topic) == key })
	if i < 0 {
		i = len(m.result.Topics)
		m.result.Topics = append(m.result.Topics, Topic{
			Broker: t.Broker, Driver: t.Driver, Topic: t.Topic, Info: t.Info, Proofs: []Proof{}, Options: Uses{},
			Counts: map[string]int64{}, Errors: []ErrorCount{}, Trends: map[string]*hist.Histogram{}, Groups: []Group{}, Spans: map[string]Span{}, History: []Point{},
			OverTime: map[string][]Summary{},
		})
	}
	to := &m.result.Topics[i]
	to.OnlySends = t.OnlySends
	to.OpenLoop, to.ClosedLoop, to.Declared = to.OpenLoop || t.OpenLoop, to.ClosedLoop || t.ClosedLoop, to.Declared || t.Declared
	to.Proves(t.Proofs...)
	named := m.named(key, t)
	for of, all := range t.Options {
		for _, options := range all {
			to.Options.Add(of, options)
		}
	}
	for name, n := range t.Counts {
		to.Counts[name] += n
	}
	addTrends(to.Trends, t.Trends, named)
	if t.Underway != nil {
		both := t.Underway.Plus(to.underway())
		to.Underway = &both
	}
	shift, lengths := of.Started.Sub(m.result.Started).Seconds(), m.lengths[key]
	to.joinSpans(t, shift)
	if !m.diverged {
		to.joinWindows(of, t, named)
	}
	to.addHiccups(of, t, named)
	for i := range t.Groups {
		g := to.group(t.Groups[i].Group)
		g.Members += t.Groups[i].Members
		if g.Group == account.ReadBack { // no ledger knows of it
			g.Sum(t.Groups[i].Account)
		}
		addTrends(g.Trends, t.Groups[i].Trends, named)
	}
	for _, e := range t.Errors {
		to.AddErrors(e)
	}
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
func (m *merger) named(key topicID, t *Topic) func(string) string {
	if m.open[key] && !t.OpenLoop { // its closed loop had the plain names to itself
		return metric.InClosed
	}
	return func(name string) string { return name }
}

// measure makes the intervals over time as long as the longest that a process has.
func (m *merger) measure(t *Topic) {
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
func (t *Topic) group(name string) *Group {
	i := slices.IndexFunc(t.Groups, func(g Group) bool { return g.Group == name })
	if i < 0 {
		i = len(t.Groups)
		t.Groups = append(t.Groups, Group{Account: account.Account{Group: name}, Trends: map[string]*hist.Histogram{}})
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

// samePhases tells whether all processes had phases of the same names, so that those of the whole add up to it. Whether anything was there before the first that has one
// is chance: a message of another process that had begun it.
func samePhases(parts []Part) bool {
	names := func(p Part) []string {
		its := slices.Sorted(slices.Values(p.Result.PhaseNames()))
		if len(its) > 1 {
			its = slices.DeleteFunc(its, func(name string) bool { return name == Starting })
		}
		return its
	}
	return !slices.ContainsFunc(parts, func(p Part) bool { return !slices.Equal(names(p), names(parts[0])) })
}

// addPoint adds an interval to those of a length, with what puts the queues of two together.
func addPoint(history []Point, p Point, length float64, queues func(q *Point, p Point)) []Point {
	end := at(p.At, length)
	history, q := find(history, end, Point{At: end, Seconds: length, Counts: map[string]int64{}})
	q.Counts = Combined(q.Counts, p.Counts, func(x, y int64) int64 { return x + y })
	q.Errors += p.Errors
	q.ErrorKinds = Combined(q.ErrorKinds, p.ErrorKinds, func(x, y int64) int64 { return x + y })
	queues(q, p)
	q.CPU, q.Busiest = max(q.CPU, p.CPU), max(q.Busiest, p.Busiest)
	q.Backlog = Combined(q.Backlog, p.Backlog, func(x, y int64) int64 { return max(x, y) })
	return history
}

// laterPoint is for an interval of the same process, otherPoint for one of another.
func laterPoint(q *Point, p Point) {
	q.InFlight, q.Outstanding = max(q.InFlight, p.InFlight), max(q.Outstanding, p.Outstanding)
	q.Underway = p.Underway // at the later end
}

func otherPoint(q *Point, p Point) {
	q.InFlight, q.Outstanding = q.InFlight+p.InFlight, q.Outstanding+p.Outstanding
	q.Underway = q.Underway.Plus(p.Underway)
}

// addSummary adds the distribution of an interval to those of a length: the worst of each quantile.
func addSummary(all []Summary, s Summary, length float64) []Summary {
	end := at(s.At, length)
	all, w := find(all, end, Summary{At: end, Seconds: length})
	w.Count += s.Count
	w.P50, w.P90, w.P99, w.P999, w.Max = max(w.P50, s.P50), max(w.P90, s.P90), max(w.P99, s.P99), max(w.P999, s.P999), max(w.Max, s.Max)
	return all
}

// ClockSkew is how far the clocks of a test's machines may be apart, and how much later than the first its processes may begin.
const ClockSkew = 5 * time.Second

// Combined has the keys of both maps, and of those that are in both what with makes of the two values.
func Combined[K comparable, V any](a, b map[K]V, with func(V, V) V) map[K]V {
	if len(b) == 0 {
		return a
	}
	c := make(map[K]V, len(a)+len(b))
	for k, v := range a {
		c[k] = v
	}
	for k, v := range b {
		if have, ok := c[k]; ok {
			v = with(have, v)
		}
		c[k] = v
	}
	return c
}
