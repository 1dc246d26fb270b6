package result

import (
	"cmp"
	"errors"
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

// ClockSkew is how far the clocks of a test's machines may be apart, and how much later than the first its processes may begin.
const ClockSkew = 5 * time.Second

// Part is the output of one process of a test.
type Part struct {
	Result    *Result
	Ledger    *account.Ledger
	Recording *recording.Recording
}

// Ended returns when the process's result was made.
func (p Part) Ended() time.Time {
	return p.Result.Started.Add(time.Duration(p.Result.Seconds * float64(time.Second)))
}

// Siblings are facts about the processes of a test that their parts do not have.
type Siblings struct {
	Processes int      // how many there were; 0 if only the results say it
	Absent    []string // names of processes that are missing
	Killed    bool     // a killed process is no reason against the test
}

// Merge joins the results of the processes of one test: measurements are those of their joined recordings, and the
// account is that of all ledgers. Parts of different tests or times are an error.
func Merge(parts []Part, known Siblings) (*Result, error) {
	parts = slices.Clone(parts)
	slices.SortStableFunc(parts, func(a, b Part) int { return a.Result.Started.Compare(b.Result.Started) })
	processes, err := mergeable(parts, known.Processes)
	if err != nil {
		return nil, err
	}
	m := &merger{parts: parts, processes: processes, known: known, result: &Result{
		Version: Version, Run: parts[0].Result.Run, Started: parts[0].Result.Started, Processes: processes,
		Environment: map[string]string{"processes": fmt.Sprint(len(parts))}, Topics: []Topic{},
		Test: Test{Scenarios: []Scenario{}}, Thresholds: []Threshold{}, Checks: []Check{}, Marks: []Annotation{},
	}}
	m.byBroker = slices.ContainsFunc(parts, func(p Part) bool { return p.Result.sameTopics() })
	c := Circumstances{}
	for _, p := range parts {
		c.Dropped += p.Result.Dropped
		c.Unserved += p.Result.Unserved
		c.CPU = max(c.CPU, p.Result.CPU)
		m.add(p)
	}
	slices.SortStableFunc(m.result.Marks, func(a, b Annotation) int { return cmp.Compare(a.At, b.At) })
	m.result.Measure(m.recording())
	m.account()
	m.compareClocks()
	m.result.Describe()
	m.result.Judge(c)
	m.judge(&m.result.Verdict)
	return m.result, nil
}

// mergeable checks that the parts, in the order of their start, are of one test, and returns how many processes it had; 0
// if that is not known.
func mergeable(parts []Part, processes int) (int, error) {
	if len(parts) == 0 || len(parts) == 1 && cmp.Or(processes, parts[0].Result.Processes) == 0 {
		return 0, errors.New("merge: there must be two results or more")
	}
	seen := map[uint32]bool{}
	last, counted := parts[0], parts[0]
	for _, p := range parts {
		name := p.Result.Name
		switch {
		case p.Result.Run != parts[0].Result.Run:
			return 0, fmt.Errorf("merge: %s and %s are not of one test: give all its processes the same BROKER_RUN", parts[0].Result.Name, name)
		case p.Ledger == nil:
			return 0, fmt.Errorf("merge: %s has no ledger: run its process with BROKER_RUN", name)
		case p.Recording == nil:
			return 0, fmt.Errorf("merge: %s has no recording", name)
		case p.Ledger.Run != p.Result.Run || p.Ledger.Instance != p.Result.Instance:
			return 0, fmt.Errorf("merge: the ledger of %s is of another run", name)
		case seen[p.Result.Instance]:
			return 0, fmt.Errorf("merge: %s is there twice", name)
		case p.Result.Started.After(last.Ended().Add(ClockSkew)):
			return 0, fmt.Errorf("merge: %s ended at %s, and %s began at %s: give each test its own BROKER_RUN, and set the machines' clocks",
				last.Result.Name, instant(last.Ended()), name, instant(p.Result.Started))
		case counted.Result.Processes != 0 && p.Result.Processes != 0 && p.Result.Processes != counted.Result.Processes:
			return 0, fmt.Errorf("merge: the test has %d processes in %s and %d in %s: give them the same BROKER_PROCESSES",
				counted.Result.Processes, counted.Result.Name, p.Result.Processes, name)
		}
		seen[p.Result.Instance] = true
		if p.Ended().After(last.Ended()) {
			last = p
		}
		if p.Result.Processes != 0 {
			counted = p
		}
	}
	processes = cmp.Or(processes, counted.Result.Processes)
	if processes != 0 && len(parts) > processes {
		return 0, fmt.Errorf("merge: there are %d results of a test of %d processes: give --processes or BROKER_PROCESSES their number", len(parts), processes)
	}
	return processes, nil
}

func instant(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }

type merger struct {
	parts     []Part
	processes int // of the test; 0 if not known
	known     Siblings
	result    *Result
	byBroker  bool // topics are told apart by address: a process has one topic on several brokers

	absent     map[uint32]uint64 // messages from processes that are not here, by instance
	uncompared bool              // two processes exchanged messages, and their clocks were not compared
}

// sameTopics reports whether two brokers have a topic of one name.
func (r *Result) sameTopics() bool {
	seen := map[[2]string]bool{}
	for _, t := range r.Topics {
		key := [2]string{t.Driver, t.Topic}
		if seen[key] {
			return true
		}
		seen[key] = true
	}
	return false
}

// same reports whether an address, driver and name are those of a topic. Machines may know one broker by different
// addresses.
func (m *merger) same(t *Topic, broker, driver, topic string) bool {
	return t.Driver == driver && t.Topic == topic && (!m.byBroker || t.Broker == broker)
}

// find returns a topic, or nil.
func (m *merger) find(broker, driver, topic string) *Topic {
	i := slices.IndexFunc(m.result.Topics, func(t Topic) bool { return m.same(&t, broker, driver, topic) })
	if i < 0 {
		return nil
	}
	return &m.result.Topics[i]
}

// recording joins the recordings of the processes, with one address of each broker.
func (m *merger) recording() *recording.Recording {
	all := make([]*recording.Recording, len(m.parts))
	for i, p := range m.parts {
		all[i] = p.Recording.Renamed(func(k recording.Key) recording.Key {
			if t := m.find(k.Broker, k.Driver, k.Topic); t != nil {
				k.Broker = t.Broker
			}
			return k
		})
	}
	return recording.Join(all...)
}

// add adds a part, without its measurements.
func (m *merger) add(p Part) {
	all, r := m.result, p.Result
	shift := r.Started.Sub(all.Started).Seconds()
	all.Seconds = max(all.Seconds, shift+r.Seconds)
	all.Platform = all.Platform.join(r.Platform)
	all.Test.merge(r.Test)
	all.Checks = mergeChecks(all.Checks, r.Checks)
	for name, value := range r.Environment {
		if have, ok := all.Environment[name]; ok && have != value {
			value = have + "; " + value
		}
		all.Environment[name] = value
	}
	for _, a := range r.Marks {
		all.Marks = append(all.Marks, Annotation{At: a.At + shift, What: a.What})
	}
	for i := range r.Topics {
		m.addTopic(&r.Topics[i])
	}
}

func (m *merger) addTopic(t *Topic) {
	to := m.find(t.Broker, t.Driver, t.Topic)
	if to == nil {
		m.result.Topics = append(m.result.Topics, Topic{
			Broker: t.Broker, Driver: t.Driver, Topic: t.Topic, Info: t.Info, Proofs: []Proof{}, Options: Uses{}, Counts: map[string]int64{}, Groups: []Group{},
		})
		to = &m.result.Topics[len(m.result.Topics)-1]
	}
	to.OnlySends = t.OnlySends
	to.OpenLoop, to.ClosedLoop, to.Declared = to.OpenLoop || t.OpenLoop, to.ClosedLoop || t.ClosedLoop, to.Declared || t.Declared
	to.Proves(t.Proofs...)
	for use, all := range t.Options {
		for _, options := range all {
			to.Options.Add(use, options)
		}
	}
	for name := range t.Counts {
		to.Counts[name] = 0 // the measurement adds them up
	}
	for i := range t.Groups {
		g := to.group(t.Groups[i].Group)
		g.Members += t.Groups[i].Members
		if g.Group == account.ReadBack { // it is in no ledger
			g.Sum(t.Groups[i].Account)
		}
	}
}

// group returns a group, which it adds if there is none of that name.
func (t *Topic) group(name string) *Group {
	i := slices.IndexFunc(t.Groups, func(g Group) bool { return g.Group == name })
	if i < 0 {
		i = len(t.Groups)
		t.Groups = append(t.Groups, Group{Account: account.Account{Group: name}, Trends: map[string]*hist.Histogram{}})
	}
	return &t.Groups[i]
}

// account sets the account of all ledgers.
func (m *merger) account() {
	ledgers := make([]*account.Ledger, len(m.parts))
	of := map[*account.Ledger]*Result{}
	for i, p := range m.parts {
		ledgers[i] = p.Ledger
		of[p.Ledger] = p.Result
	}
	options := account.Options{Complete: len(m.parts) == m.processes, ClockGap: func(a, b *account.Ledger) time.Duration {
		if c, ok := ahead(of[a], of[b]); ok {
			return time.Duration(c.apart())
		}
		return ClockSkew
	}}
	all := account.Compute(ledgers, options)
	m.absent = all.Absent
	for i := range all.Topics {
		a := &all.Topics[i]
		t := m.find(a.Broker, a.Driver, a.Topic)
		if t == nil {
			continue
		}
		m.setStrangers(t, a)
		for _, g := range a.Groups {
			to := t.group(g.Group)
			to.Account, to.Kept = g, m.keepsUnsettled(t, g.Group)
		}
	}
}

// keepsUnsettled reports whether a broker that counts its backlog delivers a group's unsettled messages again.
func (m *merger) keepsUnsettled(t *Topic, group string) bool {
	return slices.ContainsFunc(m.parts, func(p Part) bool {
		return slices.ContainsFunc(p.Ledger.Topics, func(l account.TopicLedger) bool {
			return m.same(t, l.Broker, l.Driver, l.Topic) &&
				slices.ContainsFunc(l.Groups, func(g account.GroupLedger) bool { return g.Name == group && g.Kept && g.Asked > 0 })
		})
	})
}

// setStrangers sets the counts of messages that are in no account of the topic. A process's siblings are none.
func (m *merger) setStrangers(t *Topic, a *account.TopicAccount) {
	all := []map[string]int64{t.Counts}
	for _, w := range t.Phases {
		all = append(all, w.Counts)
	}
	for _, p := range t.History {
		all = append(all, p.Counts)
	}
	for _, counts := range all {
		delete(counts, recording.Sibling.String())
	}
	for counter, n := range map[recording.Counter]uint64{recording.Sibling: a.Absent, recording.Routed: a.Routed, recording.Aliased: a.Aliased} {
		if n > 0 {
			t.Counts[counter.String()] += int64(n) //gosec:disable G115 -- a count, far below the limit
		}
	}
}

// judge adds the reasons that only a merge can find, and the worst of each process's own.
func (m *merger) judge(v *Verdict) {
	m.judgeMissing(v)
	m.judgeLoads(v)
	m.judgePhases(v)
	if len(m.parts) > 1 && (m.uncompared || len(m.result.Clocks) == 0) {
		v.note(subject{}, reason.Clocks, reason.Values{"why": "not-compared", "count": len(m.parts)})
	}
	var all []reason.Reason
	for i, p := range m.parts {
		for _, r := range p.Result.Verdict.Reasons {
			// The end of a killed process is not that of the test.
			killed := p.Ledger.Unfinished && r.Level == reason.Invalid
			if !killed && !r.ByMerge() && !slices.ContainsFunc(v.Reasons, func(have reason.Reason) bool { return have.Covers(r) }) {
				r.Process = m.process(i)
				all = append(all, r)
			}
		}
	}
	for _, r := range reason.Worst(all) {
		v.Add(r)
	}
}

// judgeMissing adds the processes that are missing or were killed.
func (m *merger) judgeMissing(v *Verdict) {
	if here := len(m.parts); m.processes > here {
		v.invalid(subject{}, reason.ProcessMissing, reason.Values{
			"why": "absent", "count": m.processes - here, "processes": m.processes, "names": strings.Join(m.known.Absent, ", "),
		})
	}
	if m.processes == 0 {
		v.note(subject{}, reason.ProcessMissing, reason.Values{"why": "unknown", "count": len(m.parts)})
	}
	for _, instance := range slices.Sorted(maps.Keys(m.absent)) {
		v.invalid(subject{}, reason.ProcessMissing, reason.Values{"why": "unmerged", "count": m.absent[instance], "name": fmt.Sprintf("instance %d", instance)})
	}
	for i, p := range m.parts {
		if !p.Ledger.Unfinished {
			continue
		}
		level := reason.Invalid
		if m.known.Killed {
			level = reason.Note
		}
		v.Add(subject{}.reason(reason.ProcessMissing, level, reason.Values{"why": "killed", "name": m.process(i), "after": p.Ended().Sub(p.Result.Started)}))
	}
}

// startedTogether is how far apart processes may begin a phase.
const startedTogether = time.Second

// judgePhases adds the first phase that the processes did not begin together. A killed process lacks later ones.
func (m *merger) judgePhases(v *Verdict) {
	for _, phase := range slices.DeleteFunc(m.result.PhaseNames(), func(name string) bool { return name == Starting }) {
		all := begins(m.result.Recording)
		for i := range all {
			for k := range all {
				a, b := all[i][phase], all[k][phase]
				lacks := len(a) > len(b) && !m.parts[k].Ledger.Unfinished
				var apart time.Duration
				for n := range min(len(a), len(b)) {
					apart = max(apart, time.Duration(b[n]-a[n]))
				}
				if !lacks && apart <= startedTogether {
					continue
				}
				values := reason.Values{"why": "phase", "detail": phase, "names": m.parts[i].Result.Name + " and " + m.parts[k].Result.Name}
				if apart > startedTogether {
					values["apart"] = apart
				}
				v.invalid(subject{}, reason.ProcessesDiffer, values)
				return
			}
		}
	}
}
