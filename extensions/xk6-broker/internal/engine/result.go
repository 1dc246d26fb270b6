package engine

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// Result returns what the run has found out so far.
func (c *Collector) Result() (*result.Result, error) {
	r, err := c.Unmeasured() // before what was measured, so that no account has what the distributions have not
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.taken = append(c.taken, c.collect(true)...)
	r.Measure(&c.recording)
	r.Topics = slices.DeleteFunc(r.Topics, func(t result.Topic) bool { return !t.Used() }) // a script may describe what it then does not use
	for i := range r.Topics {
		of := &r.Topics[i]
		t := c.run.known(topicKey{of.Broker, of.Topic})
		if over := t.over.Load(); over != nil && t.forgets() {
			of.After = of.Counts[recording.Confirmed.String()] - over.confirmed
		}
		settles(of, t.Address.Driver.Features)
	}
	r.Describe()
	return r, nil
}

// Unmeasured returns what the run has found out so far without what the recording has.
func (c *Collector) Unmeasured() (*result.Result, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	whole, err := account.Of([]*account.Ledger{c.run.Ledger()}, account.Known{Complete: !c.run.shared})
	if err != nil {
		return nil, err // of sets in memory there is none
	}
	groups := map[topicKey][]account.Account{}
	for _, t := range whole.Topics {
		groups[topicKey{t.Broker, t.Topic}] = t.Groups
	}
	processes, _ := c.run.Processes()
	r := &result.Result{
		Version: result.Version, Run: c.run.ID, Instance: c.run.instance, Processes: processes, Siblings: c.run.heardOf(),
		Started: time.Unix(0, c.run.Started).UTC(),
		Seconds: seconds(driver.Now() - c.run.Started),
		Test:    result.Test{Scenarios: []result.Scenario{}}, Thresholds: []result.Threshold{}, Checks: []result.Check{}, Marks: []result.Annotation{}, Topics: []result.Topic{},
		Platform: c.platform.result(),
	}
	for _, t := range c.run.Topics() {
		key := topicKey{t.Address.String(), t.Name}
		of := t.result(groups[key])
		for _, s := range c.run.All() {
			if (topicKey{s.Broker, s.Topic}) == key {
				of.OpenLoop = of.OpenLoop || s.sent[recording.Open].Load()
				of.ClosedLoop = of.ClosedLoop || s.sent[recording.Closed].Load()
			}
		}
		r.Topics = append(r.Topics, of)
	}
	return r, nil
}

// drops lists the options in use by which the broker drops messages, received or not.
func drops(d *driver.Driver, uses result.Uses) (all []string) {
	for _, o := range d.Options {
		unlimited, err := o.Parse(o.Default)
		if !o.Drops || err != nil {
			continue
		}
		for _, used := range slices.Concat(uses["topic"], uses["producer"], uses["consumer"]) {
			value, ok := used[o.Name]
			if ok && value != d.Redact(driver.Values{o.Name: unlimited})[o.Name] {
				all = append(all, fmt.Sprintf("%s %v", o.Name, value))
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (t *Topic) result(accounts []account.Account) result.Topic {
	members, strangers := t.members(), t.strangers()
	t.mu.Lock()
	defer t.mu.Unlock()
	of := result.Topic{
		Broker: t.Address.String(), Driver: t.Address.Driver.Name, Topic: t.Name, OnlySends: t.Address.Driver.Features.Start == 0, HeldUnseen: t.Address.Driver.Features.HeldUnseen, Drops: drops(t.Address.Driver, t.uses), Proofs: []result.Proof{},
		Options: t.uses.Sorted(), Counts: map[string]int64{}, Trends: map[string]*hist.Histogram{},
		Info: result.Server(t.info), Errors: []result.ErrorCount{}, Groups: []result.Group{},
		Shared: t.shared(), Alone: !t.shared(), Routed: t.routed.Load(), Declared: t.declared.Load(),
		Interrupted: maps.Clone(t.interrupted),
	}
	for _, p := range slices.AppendSeq(slices.Clone(t.proven), maps.Values(t.proofs)) {
		select {
		case <-p.known:
			of.Proves(p.Proof)
		default:
		}
	}
	if t.readBack.Expected > 0 {
		accounts = append([]account.Account{t.readBack}, accounts...)
	}
	for _, a := range accounts {
		of.Groups = append(of.Groups, result.Group{
			Account: a, Members: members[a.Group], Trends: map[string]*hist.Histogram{},
			Kept: a.Subscribers == 0 && a.Group != account.ReadBack && t.groups[a.Group].keepsUnsettled(), Strangers: strangers[a.Group],
		})
	}
	return of
}

// connected keeps a connection that the topic is used by, and what that says of the broker.
func (t *Topic) connected(conn driver.Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.conn = conn
	if informer, ok := conn.(driver.Informer); ok {
		t.info = informer.Info()
	}
}

// settles makes the count of acknowledgements one of those that are there, though it be 0, where the broker takes them.
func settles(t *result.Topic, f driver.Features) {
	if f.Settle.Has(driver.Ack) && t.Counts[recording.Received.String()] > 0 {
		t.Counts[recording.Acked.String()] += 0
	}
}

// Use notes the options in force for one that uses the topic, defaults included and secrets masked: of a connection ("connect"), of
// the topic's creation ("topic"), of a "producer" or a "consumer", or of a loop ("produce", "consume").
func (t *Topic) Use(of string, options map[string]any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.uses.Add(of, options)
}
