package load

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/hist"
)

// Part is what one process of a test left behind.
type Part struct {
	Result *Result
	Ledger *Ledger
}

// Siblings says what is to be known of the processes of a test besides what they left behind.
type Siblings struct {
	Processes int // how many there were; 0 where only the results can tell
	// Backlog asks a broker what it has now for a group, when all processes have ended; known is false where it is not asked for that
	// topic. Nil asks nobody: then what a broker said while the test ran must do.
	Backlog func(broker, driver, topic, group string) (n int64, known bool, err error)
}

// Merge joins what the processes of one test found out. Distributions and counts are exact, and so is the account, message by message.
// Over time, the quantiles of a second are the worst that any process had. Parts that are not of one test, or not of one time, are an
// error, and so is what Siblings.Backlog gives.
func Merge(parts []Part, known Siblings) (*Result, error) {
	parts = slices.Clone(parts)
	slices.SortStableFunc(parts, func(a, b Part) int { return a.Result.Started.Compare(b.Result.Started) })
	processes, err := mergeable(parts, known.Processes)
	if err != nil {
		return nil, err
	}
	m := &merger{parts: parts, processes: processes, known: known, result: &Result{
		Version: ResultVersion, Run: parts[0].Result.Run, Started: parts[0].Result.Started, Processes: processes,
		Environment: map[string]string{}, Topics: []TopicResult{},
		Test: Test{Scenarios: []Scenario{}}, Thresholds: []Threshold{}, Checks: []Check{}, Marks: []Annotation{},
	}}
	m.several = m.ambiguous()
	m.open = map[topicID]bool{}
	for _, p := range parts {
		for _, t := range p.Result.Topics {
			if t.OpenLoop {
				m.open[m.key(t.Broker, t.Driver, t.Topic)] = true
			}
		}
	}
	c := Circumstances{}
	for _, p := range parts {
		m.result.Seconds = max(m.result.Seconds, p.ended().Sub(m.result.Started).Seconds())
		c.Dropped += p.Result.Dropped
		c.Unserved += p.Result.Unserved
		c.CPU = max(c.CPU, p.Result.CPU)
		m.environment(p.Result.Environment)
		m.result.Test.merge(p.Result.Test)
		m.result.Checks = mergeChecks(m.result.Checks, p.Result.Checks)
		m.marks(p.Result)
		for i := range p.Result.Topics {
			m.topic(p.Result, &p.Result.Topics[i])
		}
	}
	m.result.Environment["processes"] = fmt.Sprint(len(parts))
	if err := m.account(); err != nil {
		return nil, err
	}
	for i := range m.result.Topics {
		m.result.Topics[i].Describe()
	}
	m.result.Judge(c)
	m.verdict()
	return m.result, nil
}

// mergeable checks that the parts, in the order of their start, can be of one test, and gives how many processes it had; 0 where that is
// not known.
func mergeable(parts []Part, processes int) (int, error) {
	if len(parts) < 2 {
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
		case p.Result.Started.After(last.ended().Add(clockSkew)):
			return 0, fmt.Errorf("merge: %s and %s are not of one time: %s ended at %s, and %s began at %s; give each test a BROKER_RUN of its own",
				last.Result.Name, name, last.Result.Name, instant(last.ended()), name, instant(p.Result.Started))
		case said != 0 && p.Result.Processes != 0 && p.Result.Processes != said:
			return 0, fmt.Errorf("merge: the test has %d processes by what %s says and %d by what %s says: give them the same BROKER_PROCESSES",
				said, by, p.Result.Processes, name)
		}
		seen[p.Result.Instance] = true
		if p.ended().After(last.ended()) {
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

// ended is when the process's result was made.
func (p Part) ended() time.Time {
	return p.Result.Started.Add(time.Duration(p.Result.Seconds * float64(time.Second)))
}

func instant(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }

type merger struct {
	parts     []Part
	processes int // of the test, as is known; 0 where it is not
	known     Siblings
	result    *Result
	open      map[topicID]bool // the topics that some process sent to by a schedule
	several   bool             // a process has one topic on several brokers: then topics are told apart by address too

	absent    map[uint32]uint64 // processes that are not here, by how many of their messages came
	askedLate bool              // a broker was asked after the test
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
func (m *merger) topic(of *Result, t *TopicResult) {
	key := m.key(t.Broker, t.Driver, t.Topic)
	i := slices.IndexFunc(m.result.Topics, func(o TopicResult) bool { return m.key(o.Broker, o.Driver, o.Topic) == key })
	if i < 0 {
		i = len(m.result.Topics)
		m.result.Topics = append(m.result.Topics, TopicResult{
			Broker: t.Broker, Driver: t.Driver, Topic: t.Topic, Info: t.Info, Confirm: t.Confirm, Options: Uses{},
			Counts: map[string]int64{}, Errors: []ErrorCount{}, Trends: map[string]*hist.Histogram{}, Groups: []GroupResult{}, History: []Point{},
		})
	}
	to := &m.result.Topics[i]
	to.OpenLoop, to.ClosedLoop = to.OpenLoop || t.OpenLoop, to.ClosedLoop || t.ClosedLoop
	named := func(name string) string { return name }
	if m.open[key] && !t.OpenLoop { // its closed loop had the plain names to itself
		named = closedName
	}
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
	shift := of.Started.Sub(m.result.Started)
	for _, p := range t.History {
		to.History = addPoint(to.History, p, shift, named)
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

// addPoint adds a process's interval to the second that it ended in.
func addPoint(history []Point, p Point, shift time.Duration, named func(string) string) []Point {
	at := math.Ceil(p.At + shift.Seconds())
	i, found := slices.BinarySearchFunc(history, at, func(q Point, at float64) int {
		switch {
		case q.At < at:
			return -1
		case q.At > at:
			return 1
		}
		return 0
	})
	if !found {
		history = slices.Insert(history, i, Point{At: at, Seconds: 1, Counts: map[string]int64{}, Latencies: map[string]Summary{}})
	}
	q := &history[i]
	for name, n := range p.Counts {
		q.Counts[name] += n
	}
	q.Errors += p.Errors
	for kind, n := range p.ErrorKinds {
		if q.ErrorKinds == nil {
			q.ErrorKinds = map[driver.Kind]int64{}
		}
		q.ErrorKinds[kind] += n
	}
	q.InFlight += p.InFlight
	q.Outstanding += p.Outstanding
	q.CPU = max(q.CPU, p.CPU)
	for group, n := range p.Backlog {
		if q.Backlog == nil {
			q.Backlog = map[string]int64{}
		}
		q.Backlog[group] = max(q.Backlog[group], n)
	}
	for name, s := range p.Latencies {
		name = named(name)
		w := q.Latencies[name]
		q.Latencies[name] = Summary{
			Count: w.Count + s.Count, P50: max(w.P50, s.P50), P90: max(w.P90, s.P90), P99: max(w.P99, s.P99),
			P999: max(w.P999, s.P999), Max: max(w.Max, s.Max),
		}
	}
	return history
}
