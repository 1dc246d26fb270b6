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
