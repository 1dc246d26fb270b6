package engine

import (
	"maps"
	"slices"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/engine/summary"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/machine"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
)

// Measured returns the summary and the recording of the run so far. The recording must be read
// only.
func (c *Collector) Measured() (*summary.Run, *recording.Recording) {
	s := c.Summary() // first, so that no account has more than the distributions
	c.mu.Lock()
	defer c.mu.Unlock()
	c.taken = append(c.taken, c.collect(true)...)
	return s, &c.recording
}

// Summary returns the summary of the run so far.
func (c *Collector) Summary() *summary.Run {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.run
	all := account.Compute([]*account.Ledger{r.Ledger()}, account.Options{Complete: !r.shared})
	accounts := map[[2]string][]account.Account{} // by broker and topic
	for _, t := range all.Topics {
		accounts[[2]string{t.Broker, t.Topic}] = t.Groups
	}
	processes, _ := r.Processes()
	s := &summary.Run{
		ID: r.ID, Instance: r.instance, Processes: processes, Shared: r.shared, Machine: c.platform.summary(),
		Started: time.Unix(0, r.Started).UTC(), Elapsed: time.Duration(driver.Now() - r.Started),
	}
	r.siblings.Range(func(any, any) bool {
		s.Siblings++
		return true
	})
	for _, t := range r.Topics() {
		s.Topics = append(s.Topics, t.summary(accounts[[2]string{t.broker, t.Name}]))
	}
	return s
}

// summary returns the topic's part of the summary, with the accounts of its groups.
func (t *Topic) summary(accounts []account.Account) summary.Topic {
	members := map[string]summary.Group{}
	for _, g := range t.everyGroup() {
		g.addTo(members)
	}
	s := summary.Topic{Address: t.Address, Name: t.Name, Declared: t.declared.Load()}
	for _, series := range t.series() {
		sent := series.Count(recording.Sent) // first: a message has its lag before it counts as sent
		scheduled := series.scheduled()
		s.OpenLoop = s.OpenLoop || scheduled > 0
		s.ClosedLoop = s.ClosedLoop || sent > scheduled
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	s.Info, s.Options, s.Proofs = t.info, maps.Clone(t.uses), slices.Collect(maps.Values(t.proofs))
	if t.readBack.Expected > 0 {
		s.Groups = append(s.Groups, summary.Group{Account: t.readBack})
	}
	for _, a := range accounts {
		g := members[a.Group]
		g.Account = a
		s.Groups = append(s.Groups, g)
	}
	return s
}

// addTo adds the group's members and strangers to the summary of its label.
func (g *group) addTo(all map[string]summary.Group) {
	label := g.key().Group
	s := all[label]
	s.Strangers += g.strangers.Load()
	if !g.topic.run.shared { // else messages of other processes may be of this topic
		s.Strangers += int64(g.track.Tally().Foreign) //gosec:disable G115 -- a count
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	s.Members += g.most
	all[label] = s
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
		Broker: t.broker, Driver: t.Address.Driver.Name, Topic: t.Name, Producers: all.Producers,
		Slowest: slowest, Removed: slices.Clone(t.removed), Failed: t.failed.Load(),
		Selected: t.selected.Load(), Unordered: t.unordered.Load(), Spends: t.spends.Load(),
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

// scheduled returns the number of messages that were sent by a schedule: each has a schedule lag.
func (s *Series) scheduled() int64 {
	lag := s.Trend(recording.Open, recording.ScheduleLag)
	return int64(lag.Count()) //gosec:disable G115 -- a count
}

// series lists the series of the topic.
func (t *Topic) series() []*Series {
	return slices.DeleteFunc(slices.Clone(t.run.All()), func(s *Series) bool {
		return s.Broker != t.broker || s.Topic != t.Name
	})
}
