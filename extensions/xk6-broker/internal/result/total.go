package result

import (
	"slices"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
)

// Total is all topics as one: counts, errors and accounts are summed up, and distributions are pooled. What is sent in a closed loop
// stays apart. A percentile that cannot be believed of the topics of more than a tenth of its values cannot be of all.
func (r *Result) Total() Topic {
	total := Topic{Options: Uses{}, Counts: map[string]int64{}, Trends: map[string]*hist.Histogram{}, Errors: []ErrorCount{}, Groups: []Group{}, of: r}
	total.OnlySends = len(r.Topics) > 0 && !slices.ContainsFunc(r.Topics, func(t Topic) bool { return !t.OnlySends })
	for i := range r.Topics {
		t := &r.Topics[i]
		total.OpenLoop, total.ClosedLoop = total.OpenLoop || t.OpenLoop, total.ClosedLoop || t.ClosedLoop
		total.Proves(t.Proofs...)
		for name, n := range t.Counts {
			total.Counts[name] += n
		}
		for _, e := range t.Errors {
			total.AddErrors(e)
		}
		for _, g := range t.Groups {
			total.sum(&g)
		}
	}
	named := func(t *Topic, name string) string {
		if total.OpenLoop && !t.OpenLoop { // its closed loop has the plain names to itself
			return recording.InClosed(name)
		}
		return name
	}
	total.lacks = map[string]uint64{}
	for i := range r.Topics {
		t := &r.Topics[i]
		for its, h := range t.Trends {
			name := named(t, its)
			total.Trends[name] = hist.Merged(total.Trends[name], h)
			for k := range t.Groups {
				total.lacks[name] += t.missing(its, &t.Groups[k])
			}
		}
	}
	total.Seen = r.Platform.Seen()
	total.Describe()
	for name, of := range total.Percentiles {
		for k := range of {
			doubted := uint64(0)
			for i := range r.Topics {
				t := &r.Topics[i]
				for its, all := range t.Percentiles {
					if named(t, its) == name && k < len(all) && all[k].Supported && !all[k].Believed {
						doubted += t.Trends[its].Count()
					}
				}
			}
			if float64(doubted) > absentShare*float64(total.Trends[name].Count()) {
				of[k].Believed = false
			}
		}
	}
	return total
}

// sum adds a group to the one account of all.
func (t *Topic) sum(g *Group) {
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
