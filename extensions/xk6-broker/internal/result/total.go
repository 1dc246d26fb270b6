package result

import (
	"slices"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
)

// Total returns all topics as one: counts, errors and accounts are added up, distributions are pooled. A percentile that
// is not reliable of one topic is not reliable of all.
func (r *Result) Total() Topic {
	total := Topic{
		Options: Uses{}, Counts: map[string]int64{}, Trends: map[string]*hist.Histogram{}, Errors: []ErrorCount{}, Groups: []Group{},
		total: r, lacks: map[string]uint64{}, Seen: r.Platform.Seen(),
		OnlySends: len(r.Topics) > 0 && !slices.ContainsFunc(r.Topics, func(t Topic) bool { return !t.OnlySends }),
	}
	for _, t := range r.Topics {
		total.OpenLoop, total.ClosedLoop = total.OpenLoop || t.OpenLoop, total.ClosedLoop || t.ClosedLoop
	}
	unreliable := map[string]float64{} // by trend, the least quantile
	for i := range r.Topics {
		t := &r.Topics[i]
		total.Proves(t.Proofs...)
		for name, n := range t.Counts {
			total.Counts[name] += n
		}
		for _, e := range t.Errors {
			total.AddErrors(e)
		}
		for k := range t.Groups {
			total.addGroup(&t.Groups[k])
		}
		for own, h := range t.Trends {
			name := own
			if total.OpenLoop && !t.OpenLoop { // its closed loop has the plain names
				name = recording.InClosed(own)
			}
			total.Trends[name] = hist.Merged(total.Trends[name], h)
			for k := range t.Groups {
				total.lacks[name] += t.missing(&t.Groups[k], own)
			}
			for _, p := range t.Percentiles[own] {
				if least, ok := unreliable[name]; p.Supported && !p.Believed && (!ok || p.Q < least) {
					unreliable[name] = p.Q
				}
			}
		}
	}
	total.Describe()
	for name, least := range unreliable {
		for k, p := range total.Percentiles[name] {
			total.Percentiles[name][k].Believed = p.Believed && p.Q < least
		}
	}
	return total
}

// addGroup adds a group to the one account of all topics.
func (t *Topic) addGroup(g *Group) {
	if len(t.Groups) == 0 {
		t.Groups = append(t.Groups, Group{Trends: map[string]*hist.Histogram{}})
	}
	all := &t.Groups[0]
	if t.OnlySends {
		all.Group = account.ReadBack
	}
	subscribers := all.Subscribers + g.Subscribers
	all.Join(g.Account)
	all.Subscribers, all.Ranges = subscribers, nil
	all.Members += g.Members
}
