package result

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
)

// Part is what one process of a test left behind.
type Part struct {
	Result    *Result
	Ledger    *account.Ledger
	Recording *recording.Recording
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

// Merge joins what the processes of one test found out: what was measured is that of their joined recordings, and the account
// is exact, message by message. Parts that are not of one test, or not of one time, are an error, and so is what
// Siblings.Backlog gives.
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
	m.several = m.ambiguous()
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
		for i := range p.Result.Topics {
			m.topic(&p.Result.Topics[i])
		}
	}
	m.result.Environment["processes"] = fmt.Sprint(len(parts))
	m.result.Measure(m.recording())
	if err := m.account(); err != nil {
		return nil, err
	}
	m.apart()
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
	if i := slices.IndexFunc(parts, func(p Part) bool { return p.Recording == nil }); i >= 0 {
		return 0, fmt.Errorf("merge: %s has no recording", parts[i].Result.Name)
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
	several   bool // a process has one topic on several brokers: then topics are told apart by address too

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

// recording joins those of the processes, with the addresses that the whole knows the brokers by.
func (m *merger) recording() *recording.Recording {
	all := make([]*recording.Recording, len(m.parts))
	for i, p := range m.parts {
		all[i] = p.Recording.Renamed(func(k recording.Key) recording.Key {
			if n := m.find(k.Broker, k.Driver, k.Topic); n >= 0 {
				k.Broker = m.result.Topics[n].Broker
			}
			return k
		})
	}
	return recording.Join(all...)
}

// find returns the place of a topic, or -1.
func (m *merger) find(broker, driver, topic string) int {
	key := m.key(broker, driver, topic)
	return slices.IndexFunc(m.result.Topics, func(t Topic) bool { return m.key(t.Broker, t.Driver, t.Topic) == key })
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

// topic adds what one process knows of a topic besides what it measured.
func (m *merger) topic(t *Topic) {
	i := m.find(t.Broker, t.Driver, t.Topic)
	if i < 0 {
		i = len(m.result.Topics)
		m.result.Topics = append(m.result.Topics, Topic{
			Broker: t.Broker, Driver: t.Driver, Topic: t.Topic, Info: t.Info, Proofs: []Proof{}, Options: Uses{}, Counts: map[string]int64{}, Groups: []Group{},
		})
	}
	to := &m.result.Topics[i]
	to.OnlySends = t.OnlySends
	to.OpenLoop, to.ClosedLoop, to.Declared = to.OpenLoop || t.OpenLoop, to.ClosedLoop || t.ClosedLoop, to.Declared || t.Declared
	to.Proves(t.Proofs...)
	for of, all := range t.Options {
		for _, options := range all {
			to.Options.Add(of, options)
		}
	}
	for name := range t.Counts {
		to.Counts[name] = 0 // though it be of nothing
	}
	for i := range t.Groups {
		g := to.group(t.Groups[i].Group)
		g.Members += t.Groups[i].Members
		if g.Group == account.ReadBack { // no ledger knows of it
			g.Sum(t.Groups[i].Account)
		}
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
