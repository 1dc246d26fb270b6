package engine

import (
	"maps"
	"slices"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/machine"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// Result returns the result so far.
func (c *Collector) Result() *result.Result {
	r := c.Unmeasured() // first, so that no account has more than the distributions
	c.mu.Lock()
	defer c.mu.Unlock()
	c.taken = append(c.taken, c.collect(true)...)
	r.Measure(&c.recording)
	r.Topics = slices.DeleteFunc(r.Topics, func(t result.Topic) bool { return !t.Used() })
	return r
}

// Unmeasured returns the result so far without what the recording has.
func (c *Collector) Unmeasured() *result.Result {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := account.Compute([]*account.Ledger{c.run.Ledger()}, account.Options{Complete: !c.run.shared})
	groups := map[topicKey][]account.Account{}
	for _, t := range all.Topics {
		groups[topicKey{t.Broker, t.Topic}] = t.Groups
	}
	processes, _ := c.run.Processes()
	r := &result.Result{
		Version: result.Version, Run: c.run.ID, Instance: c.run.instance, Processes: processes,
		Started: time.Unix(0, c.run.Started).UTC(),
		Seconds: seconds(driver.Now() - c.run.Started),
		Test:    result.Test{Scenarios: []result.Scenario{}}, Thresholds: []result.Threshold{}, Checks: []result.Check{},
		Marks: []result.Annotation{}, Topics: []result.Topic{}, Platform: c.platform.result(),
	}
	c.run.siblings.Range(func(any, any) bool {
		r.Siblings++
		return true
	})
	for _, t := range c.run.Topics() {
		r.Topics = append(r.Topics, t.result(groups[topicKey{t.Address.String(), t.Name}]))
	}
	return r
}

// result returns the topic's part of the result, with the accounts of its groups.
func (t *Topic) result(accounts []account.Account) result.Topic {
	f := t.Address.Driver.Features
	series, members, strangers := t.series(), map[string]int{}, map[string]int64{}
	kept := map[string]bool{}
	for _, g := range t.everyGroup() {
		label := g.label()
		strangers[label] += g.strangers.Load()
		if !t.run.shared { // else messages of other processes may be of this topic
			strangers[label] += int64(g.track.Tally().Foreign) //gosec:disable G115 -- a count
		}
		b := g.final.Load()
		kept[label] = g.kept && (b == nil || !b.Estimate) // an estimate may count settled messages as unsettled
		g.mu.Lock()
		members[label] += g.most
		g.mu.Unlock()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	r := result.Topic{
		Broker: t.Address.String(), Driver: t.Address.Driver.Name, Topic: t.Name, OnlySends: f.Start == 0,
		HeldUnseen: f.HeldUnseen, Proofs: []result.Proof{}, Options: maps.Clone(t.uses), Counts: map[string]int64{},
		Trends: map[string]*hist.Histogram{}, Info: result.Server(t.info), Errors: []result.ErrorCount{},
		Groups: []result.Group{}, Shared: t.run.shared, Alone: !t.run.shared,
		Declared: t.declared.Load(),
	}
	r.Proves(t.proven()...)
	for _, s := range series {
		r.OpenLoop = r.OpenLoop || s.sent[recording.Open].Load()
		r.ClosedLoop = r.ClosedLoop || s.sent[recording.Closed].Load()
	}
	if t.readBack.Expected > 0 {
		accounts = append([]account.Account{t.readBack}, accounts...)
	}
	for _, a := range accounts {
		r.Groups = append(r.Groups, result.Group{
			Account: a, Members: members[a.Group], Trends: map[string]*hist.Histogram{},
			Kept: kept[a.Group], Strangers: strangers[a.Group],
		})
	}
	return r
}

// Ledger returns the run's ledger. It is complete once the run has finished.
func (r *Run) Ledger() *account.Ledger {
	l := &account.Ledger{Version: account.LedgerVersion, Run: r.ID, Instance: r.instance, Clock: machine.Machine()}
	for _, t := range r.Topics() {
		topic := t.ledger()
		if len(topic.Producers)+len(topic.Groups)+len(topic.Removed) > 0 { // a script may not use it
			l.Topics = append(l.Topics, topic)
		}
	}
	l.Ended = driver.Now()
	return l
}

func (t *Topic) ledger() account.TopicLedger {
	all, slowest := t.track.Snapshot(), t.slowest()
	t.mu.Lock()
	defer t.mu.Unlock()
	l := account.TopicLedger{
		Broker: t.Address.String(), Driver: t.Address.Driver.Name, Topic: t.Name, Producers: all.Producers, Slowest: slowest,
		Failed: t.failed.Load(), Selected: t.selected.Load(), Unordered: t.unordered.Load(), Spends: t.spends.Load(),
	}
	if !t.complete() {
		l.Removed = slices.Clone(t.removed)
	}
	for _, g := range t.order {
		i := slices.IndexFunc(all.Groups, func(a account.GroupSnapshot) bool { return a.Name == g.account })
		l.Groups = append(l.Groups, g.ledger(all.Groups[i]))
	}
	return l
}

// slowest returns the longest time of a send or request of the topic, in ns.
func (t *Topic) slowest() (longest int64) {
	for _, s := range t.series() {
		all := s.Distributions()
		for l := range recording.Loop(recording.NumLoops) {
			for _, trend := range []recording.Trend{recording.PublishTime, recording.RequestTime} {
				longest = max(longest, all.Trend(l, trend).Max())
			}
		}
	}
	return longest
}

// series lists the series of the topic.
func (t *Topic) series() []*Series {
	broker := t.Address.String()
	return slices.DeleteFunc(slices.Clone(t.run.All()), func(s *Series) bool {
		return s.Broker != broker || s.Topic != t.Name
	})
}
