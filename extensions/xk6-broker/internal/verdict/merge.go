package verdict

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// Part is the output of one process of a test.
type Part struct {
	Result    *result.Result
	Ledger    *account.Ledger
	Recording *recording.Recording
}

// Ended returns when the process's result was made.
func (p Part) Ended() time.Time {
	return p.Result.Started.Add(time.Duration(p.Result.Seconds * float64(time.Second)))
}

// Siblings are facts about the processes of a test that their parts do not have.
type Siblings struct {
	Processes int      // how many there were; 0 if only the results have it
	Absent    []string // names of processes that are missing
	Killed    bool     // a killed process is no reason against the test
}

// merger joins the parts of a test.
type merger struct {
	parts     []Part
	processes int // of the test; 0 if not known
	siblings  Siblings
	result    *result.Result
	byBroker  bool              // a process has topics of one name on several brokers, so topics differ by address
	absent    map[uint32]uint64 // messages from processes that are not here, by instance
}

// Merge joins the results of the processes of one test. It measures their joined recordings, and
// computes the account of all ledgers. Parts of different tests or times are an error.
func Merge(parts []Part, siblings Siblings) (*result.Result, error) {
	parts = slices.Clone(parts)
	slices.SortStableFunc(parts, func(a, b Part) int { return a.Result.Started.Compare(b.Result.Started) })
	processes, err := mergeable(parts, siblings.Processes)
	if err != nil {
		return nil, fmt.Errorf("merge: %w", err)
	}
	m := &merger{parts: parts, processes: processes, siblings: siblings, result: &result.Result{
		Version: result.Version, Run: parts[0].Result.Run, Started: parts[0].Result.Started, Processes: processes,
		Environment: map[string]string{"processes": fmt.Sprint(len(parts))}, Topics: []result.Topic{},
		Test: result.Test{Scenarios: []result.Scenario{}}, Thresholds: []result.Threshold{},
		Checks: []result.Check{}, Marks: []result.Annotation{},
	}}
	c := Circumstances{}
	for _, p := range parts {
		for _, t := range topicsOf(p.Result) {
			m.byBroker = m.byBroker || t.name != t.Topic.Topic
		}
	}
	for _, p := range parts {
		c.Dropped += p.Result.Dropped
		c.Unserved += p.Result.Unserved
		c.CPU = max(c.CPU, p.Result.CPU)
		m.add(p.Result)
	}
	slices.SortStableFunc(m.result.Marks, func(a, b result.Annotation) int { return cmp.Compare(a.At, b.At) })
	m.result.Measure(m.recording())
	m.account()
	m.compareClocks()
	Judge(m.result, c)
	m.judge(&judge{Verdict: &m.result.Verdict, result: m.result})
	return m.result, nil
}

// mergeable checks that the parts, in the order of their start, are of one test, and returns how
// many processes it had; 0 if that is not known.
func mergeable(parts []Part, processes int) (int, error) {
	instances, counted := map[uint32]bool{}, 0
	var ended time.Time
	for _, p := range parts {
		r, first := p.Result, parts[0].Result
		switch {
		case r.Run != first.Run:
			return 0, fmt.Errorf("%s and %s are not of one test: give all its processes the same BROKER_RUN", first.Name, r.Name)
		case p.Ledger == nil || p.Recording == nil || p.Ledger.Run != r.Run || p.Ledger.Instance != r.Instance:
			return 0, fmt.Errorf("%s has no ledger or no recording of its own: run its process with BROKER_RUN", r.Name)
		case instances[r.Instance]:
			return 0, fmt.Errorf("%s is there twice", r.Name)
		case len(instances) > 0 && r.Started.After(ended.Add(recording.ClockSkew)):
			return 0, fmt.Errorf("%s began after the others had ended: give each test its own BROKER_RUN", r.Name)
		case counted != 0 && r.Processes != 0 && r.Processes != counted:
			return 0, fmt.Errorf("%s has another number of processes: give all the same BROKER_PROCESSES", r.Name)
		}
		instances[r.Instance] = true
		if p.Ended().After(ended) {
			ended = p.Ended()
		}
		counted = cmp.Or(counted, r.Processes)
	}
	processes = cmp.Or(processes, counted)
	switch {
	case len(parts) == 0 || len(parts) == 1 && processes == 0:
		return 0, errors.New("there must be two results or more")
	case processes != 0 && len(parts) > processes:
		return 0, fmt.Errorf("there are %d results of a test of %d processes", len(parts), processes)
	}
	return processes, nil
}

// find returns a topic, or nil. A broker may have another address on each machine.
func (m *merger) find(broker, driver, topic string) *result.Topic {
	i := slices.IndexFunc(m.result.Topics, func(t result.Topic) bool {
		return t.Driver == driver && t.Topic == topic && (!m.byBroker || t.Broker == broker)
	})
	if i < 0 {
		return nil
	}
	return &m.result.Topics[i]
}

// recording joins the recordings of the processes, with one address of each broker.
func (m *merger) recording() *recording.Recording {
	all := make([]*recording.Recording, len(m.parts))
	for i, p := range m.parts {
		all[i] = p.Recording
	}
	return recording.Join(all, func(k recording.Key) recording.Key {
		if t := m.find(k.Broker, k.Driver, k.Topic); t != nil {
			k.Broker = t.Broker
		}
		return k
	})
}

// add adds everything that a process has beside its measurements and its accounts.
func (m *merger) add(r *result.Result) {
	all := m.result
	shift := r.Started.Sub(all.Started).Seconds()
	all.Seconds = max(all.Seconds, shift+r.Seconds)
	if p99(r.Platform) > p99(all.Platform) {
		machine := *r.Platform
		all.Platform = &machine
	}
	for name, value := range r.Environment {
		if have, ok := all.Environment[name]; ok && have != value {
			value = have + "; " + value
		}
		all.Environment[name] = value
	}
	all.Test.Script = cmp.Or(all.Test.Script, r.Test.Script)
	for _, s := range r.Test.Scenarios {
		if !slices.ContainsFunc(all.Test.Scenarios, func(have result.Scenario) bool { return reflect.DeepEqual(have, s) }) {
			all.Test.Scenarios = append(all.Test.Scenarios, s)
		}
	}
	for _, c := range r.Checks {
		i := slices.IndexFunc(all.Checks, func(have result.Check) bool { return have.Name == c.Name })
		if i < 0 {
			all.Checks = append(all.Checks, c)
			continue
		}
		all.Checks[i].Passes += c.Passes
		all.Checks[i].Fails += c.Fails
	}
	for _, a := range r.Marks {
		all.Marks = append(all.Marks, result.Annotation{At: a.At + shift, What: a.What})
	}
	for i := range r.Topics {
		m.addTopic(&r.Topics[i])
	}
}

// p99 returns the hiccup of a machine that one in a hundred exceeds; -1 if it was not watched.
func p99(p *result.Platform) int64 {
	if p.Seen() == nil {
		return -1
	}
	return p.Hiccups.Quantile(0.99)
}

func (m *merger) addTopic(t *result.Topic) {
	to := m.find(t.Broker, t.Driver, t.Topic)
	if to == nil {
		m.result.Topics = append(m.result.Topics, result.Topic{
			Broker: t.Broker, Driver: t.Driver, Topic: t.Topic, Info: t.Info, OnlySends: t.OnlySends, Proofs: []result.Proof{},
			Options: result.Uses{}, Counts: map[string]int64{}, Groups: []result.Group{},
		})
		to = &m.result.Topics[len(m.result.Topics)-1]
	}
	to.OpenLoop, to.ClosedLoop = to.OpenLoop || t.OpenLoop, to.ClosedLoop || t.ClosedLoop
	to.Declared = to.Declared || t.Declared
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
		g := groupOf(to, t.Groups[i].Group)
		g.Members += t.Groups[i].Members
		if g.Group == account.ReadBack { // it is in no ledger
			g.Sum(t.Groups[i].Account)
		}
	}
}

// groupOf returns a group, which it adds if there is none of that name.
func groupOf(t *result.Topic, name string) *result.Group {
	i := slices.IndexFunc(t.Groups, func(g result.Group) bool { return g.Group == name })
	if i < 0 {
		i = len(t.Groups)
		t.Groups = append(t.Groups, result.Group{Account: account.Account{Group: name}, Trends: map[string]*hist.Histogram{}})
	}
	return &t.Groups[i]
}

// account sets the account of all ledgers.
func (m *merger) account() {
	ledgers, results := make([]*account.Ledger, len(m.parts)), map[*account.Ledger]*result.Result{}
	for i, p := range m.parts {
		ledgers[i], results[p.Ledger] = p.Ledger, p.Result
	}
	all := account.Compute(ledgers, account.Options{
		Complete: len(m.parts) == m.processes,
		ClockGap: func(a, b *account.Ledger) time.Duration {
			if c, ok := compare(results[a], results[b]); ok {
				return time.Duration(c.Most())
			}
			return recording.ClockSkew
		},
	})
	m.absent = all.Absent
	for i := range all.Topics {
		a := &all.Topics[i]
		t := m.find(a.Broker, a.Driver, a.Topic)
		if t == nil {
			continue
		}
		setStrangers(t, a)
		for _, g := range a.Groups {
			groupOf(t, g.Group).Account = g
		}
	}
}

// setStrangers sets the counts of messages that are in no account of the topic. The processes'
// siblings are among the parts, except for the absent ones.
func setStrangers(t *result.Topic, a *account.TopicAccount) {
	delete(t.Counts, recording.Sibling.String())
	counts := map[recording.Counter]uint64{
		recording.Sibling: a.Absent, recording.Routed: a.Routed, recording.Aliased: a.Aliased,
	}
	for counter, n := range counts {
		if n > 0 {
			t.Counts[counter.String()] += int64(n) //gosec:disable G115 -- a count, far below the limit
		}
	}
}

// Total returns all topics as one: counts, errors and accounts are added up, distributions are
// pooled. A percentile that is not reliable of one topic is not reliable of all.
func Total(r *result.Result) result.Topic {
	total := result.Topic{
		Options: result.Uses{}, Counts: map[string]int64{}, Trends: distributions{}, Errors: []result.ErrorCount{},
		Groups: []result.Group{}, Spans: map[string]result.Span{}, Hiccups: r.Platform.Seen(),
		OnlySends: len(r.Topics) > 0 && !slices.ContainsFunc(r.Topics, func(t result.Topic) bool { return !t.OnlySends }),
	}
	for _, t := range r.Topics {
		total.OpenLoop, total.ClosedLoop = total.OpenLoop || t.OpenLoop, total.ClosedLoop || t.ClosedLoop
		total.During = t.During
		total.Proves(t.Proofs...)
		for name, n := range t.Counts {
			total.Counts[name] += n
		}
		for _, e := range t.Errors {
			total.Errors = recording.AddErrors(total.Errors, e)
		}
		for k := range t.Groups {
			addGroup(&total, &t.Groups[k])
		}
		recording.JoinExtents(total.Spans, t.Spans)
	}
	for _, t := range topicsOf(r) {
		for name, h := range t.Trends {
			name = pooledName(&total, t, name)
			total.Trends[name] = hist.Merged(total.Trends[name], h)
		}
	}
	total.Percentiles = topic{Topic: &total}.percentiles(total.Trends, func(string) float64 { return 0 })
	for _, t := range topicsOf(r) {
		for name := range t.Trends {
			missing, pooled := t.absent(name), total.Percentiles[pooledName(&total, t, name)]
			for k, own := range t.Percentiles[name] {
				reliable := own.Believed || !own.Supported && t.flaw(name, own.Percentile, missing) == ""
				pooled[k].Believed = pooled[k].Believed && reliable
			}
		}
	}
	return total
}

// pooledName returns the total's name of a topic's trend. A closed loop alone has the plain names.
func pooledName(total *result.Topic, t topic, name string) string {
	if total.OpenLoop && !t.OpenLoop {
		return recording.InClosed(name)
	}
	return name
}

// addGroup adds a group to the one account of all topics.
func addGroup(t *result.Topic, g *result.Group) {
	if len(t.Groups) == 0 {
		t.Groups = append(t.Groups, result.Group{Trends: map[string]*hist.Histogram{}})
	}
	all := &t.Groups[0]
	if t.OnlySends {
		all.Group = account.ReadBack
	}
	all.Sum(g.Account)
	all.Subscribers += g.Subscribers
	all.Members += g.Members
}
