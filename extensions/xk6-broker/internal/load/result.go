package load

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/metric"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// Result sums up the run. The caller adds what it knows of the environment, and asks for the verdict.
func (c *Collector) Result() (*result.Result, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	open, accounts, topics := c.open(), map[*Topic]result.Topic{}, c.run.Topics() // before what was measured, so that no account has what the distributions have not
	whole, err := account.Of([]*account.Ledger{c.run.Ledger()}, account.Known{Complete: !c.run.shared})
	if err != nil {
		return nil, err // of sets in memory there is none
	}
	groups := map[topicKey][]account.Account{}
	for _, t := range whole.Topics {
		groups[topicKey{t.Broker, t.Topic}] = t.Groups
	}
	for _, t := range topics {
		accounts[t] = t.result(groups[topicKey{t.Address.String(), t.Name}])
	}
	now, all := driver.Now(), c.run.measured()
	processes, _ := c.run.Processes()
	r := &result.Result{
		Version: result.Version, Run: c.run.ID, Instance: c.run.instance, Processes: processes, Siblings: c.run.heardOf(),
		Started: time.Unix(0, c.run.Started).UTC(),
		Seconds: seconds(now - c.run.Started),
		Test:    result.Test{Scenarios: []result.Scenario{}}, Thresholds: []result.Threshold{}, Checks: []result.Check{}, Marks: []result.Annotation{}, Topics: []result.Topic{},
		Platform: c.platform.result(),
		LogsCut:  c.logs.cut,
	}
	phases, during, began := c.phases.used(all)
	for _, p := range phases {
		r.Phases = append(r.Phases, c.phases.described(p, now, c.run.Started))
	}
	r.Lead()
	for _, t := range c.run.Topics() {
		of, ok := accounts[t]
		if !ok {
			continue // it is new
		}
		key := topicKey{t.Address.String(), t.Name}
		open := open[key]
		timeline := c.timelines[key].all()
		if open != nil {
			open.at, open.intervals = now, timeline
		}
		for s, m := range all {
			if (topicKey{s.Broker, s.Topic}) == key {
				sumUp(&of, s, m)
			}
		}
		active := c.run.activities(key)
		of.Spans = active.spans(c.run.Started)
		for i, p := range phases {
			if of.Phases == nil {
				of.Phases = map[string]result.Window{}
			}
			w := c.phases.window(p, began, key, c.run.edges.of(key), open, of.Driver, of.Groups, during[p])
			w.Pauses = c.phases.pauses(p, key, active, of.Spans, r.Phases[i].Stretches)
			w.Befall(p.hiccups, p.befallen.of(key))
			of.Phases[p.name] = w
		}
		of.Befall(r.Platform.Seen(), c.befallen.of(key))
		if u := open.until(now); u != (result.Underway{}) {
			of.Underway = &u
			of.Counts[metric.Due.String()] += int64(u.Arrivals) //gosec:disable G115 -- a count
		}
		if !of.Used() {
			continue // a script may describe what it then does not use
		}
		if over := t.over.Load(); over != nil && t.forgets() {
			of.After = of.Counts[metric.Confirmed.String()] - over.confirmed
		}
		settles(&of, t.Address.Driver.Features)
		of.PlainNames()
		of.Seen = r.Platform.Seen()
		of.History, of.OverTime = []result.Point{}, map[string][]result.Summary{}
		if timeline != nil {
			of.History, of.OverTime = history(timeline, c.run.Started, c.run.edges.of(key), open), overTime(timeline, c.run.Started, of.OpenLoop)
		}
		r.Topics = append(r.Topics, of)
	}
	r.Describe()
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

// sumUp adds what a series measured.
func sumUp(t *result.Topic, s *Series, m *Measured) {
	t.OpenLoop = t.OpenLoop || s.sent[metric.Open].Load()
	t.ClosedLoop = t.ClosedLoop || s.sent[metric.Closed].Load()
	for i, n := range m.Counters {
		if n != 0 {
			t.Counts[metric.Counter(i).String()] += n
		}
	}
	g := slices.IndexFunc(t.Groups, func(g result.Group) bool { return g.Group == s.Group })
	for l := range metric.Loop(metric.NumLoops) {
		for i := range metric.Trend(metric.NumTrends) {
			all := m.Trends[l][i]
			if all == nil {
				continue
			}
			name := i.In(l)
			t.Trends[name] = hist.Merged(t.Trends[name], all)
			if g >= 0 && i.Consumers() {
				of := t.Groups[g].Trends
				of[name] = hist.Merged(of[name], all)
			}
		}
	}
	for labels, n := range m.Errors {
		t.AddErrors(result.ErrorCount{Op: labels.Op, Kind: string(labels.Kind), Count: n})
	}
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
	if f.Settle.Has(driver.Ack) && t.Counts[metric.Received.String()] > 0 {
		t.Counts[metric.Acked.String()] += 0
	}
}

// Use notes the options in force for one that uses the topic, defaults included and secrets masked: of a connection ("connect"), of
// the topic's creation ("topic"), of a "producer" or a "consumer", or of a loop ("produce", "consume").
func (t *Topic) Use(of string, options map[string]any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.uses.Add(of, options)
}
