package engine

import (
	"slices"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/machine"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
)

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
		Removed: slices.Clone(t.removed), Failed: t.failed.Load(), Selected: t.selected.Load(), Unordered: t.unordered.Load(), Spends: t.spends.Load(),
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
