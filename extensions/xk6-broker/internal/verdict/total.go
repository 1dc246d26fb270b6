package verdict

import (
	"slices"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// Total returns all topics as one: counts, errors and accounts are added up, distributions are pooled. A percentile that
// is not reliable of one topic is not reliable of all.
func Total(r *result.Result) result.Topic {
	total := result.Topic{
		Options: result.Uses{}, Counts: map[string]int64{}, Trends: map[string]*hist.Histogram{}, Errors: []result.ErrorCount{},
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
	lacks, unreliable := map[string]uint64{}, map[string]float64{} // by trend: missing values, the least quantile
	for _, t := range topicsOf(r) {
		for own, h := range t.Trends {
			name := own
			if total.OpenLoop && !t.OpenLoop { // its closed loop has the plain names
				name = recording.InClosed(own)
			}
			total.Trends[name] = hist.Merged(total.Trends[name], h)
			lacks[name] += Failed(t.Topic, own)
			for k := range t.Groups {
				lacks[name] += t.missing(&t.Groups[k], own)
			}
			for _, p := range t.Percentiles[own] {
				if least, ok := unreliable[name]; p.Supported && !p.Believed && (!ok || p.Q < least) {
					unreliable[name] = p.Q
				}
			}
		}
	}
	view := topic{Topic: &total}
	total.Percentiles = view.percentiles(total.Trends, func(name string) float64 { return lacking(lacks[name], view.measured(name)) })
	for name, least := range unreliable {
		for k, p := range total.Percentiles[name] {
			total.Percentiles[name][k].Believed = p.Believed && p.Q < least
		}
	}
	return total
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
