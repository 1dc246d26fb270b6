package verdict

import (
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

func TestTheTotalOfSeveralTopics(t *testing.T) {
	const ms = 1_000_000
	group := func(name string, lost uint64) result.Group {
		a := accounted(1000, 1000-lost)
		a.Group, a.Lost = name, lost
		return result.Group{Account: a, Members: 2}
	}
	topic := func(name string, open bool, latency, lag int64, groups ...result.Group) result.Topic {
		return result.Topic{
			Topic: name, OpenLoop: open, ClosedLoop: !open, Confirm: "replicated", Proofs: []result.Proof{{Confirm: "replicated", How: "acks=all, 3 replicas, min.insync.replicas 2"}}, Counts: map[string]int64{"sent": 1000, "confirmed": 999},
			Errors: []result.ErrorCount{{Op: "send", Kind: "timeout", Count: 1}}, Groups: groups,
			Trends: map[string]*hist.Histogram{"publish_latency": spread(1000, latency), "generator_lag": spread(1000, lag)},
		}
	}
	r := &result.Result{Topics: []result.Topic{
		topic("a", true, 10*ms, ms/10, group("x", 1)), topic("b", true, 20*ms, 15*ms, group("x", 0), group("y", 2)), topic("c", false, 90*ms, ms/10),
	}}
	Describe(r)
	total := Total(r)
	if total.Counts["sent"] != 3000 || total.Counts["confirmed"] != 2997 || len(total.Errors) != 1 || total.Errors[0].Count != 3 || total.Confirm != "replicated" {
		t.Errorf("%+v", total)
	}
	if g := total.Groups[0]; len(total.Groups) != 1 || g.Expected != 3000 || g.Lost != 3 || g.Members != 6 || g.Subscribers != 0 {
		t.Errorf("%+v", total.Groups)
	}
	open, closed := total.Trends["publish_latency"], total.Trends["publish_latency"+recording.ClosedSuffix]
	if open.Count() != 2000 || open.Max() != 20*ms || closed.Count() != 1000 || closed.Min() != 90*ms {
		t.Errorf("open %v, closed %v", open, closed)
	}
	if lag := total.Trends["generator_lag"]; lag.Count() != 3000 {
		t.Errorf("lag %v", lag)
	}
	if r.Topics[0].Trends["publish_latency"].Count() != 1000 {
		t.Error("the topic's own distribution has changed")
	}
	// The median of b is the generator's, so that of all is not believed either.
	if p := total.Percentiles["publish_latency"][0]; p.Q != 0.5 || p.Believed {
		t.Errorf("%+v", p)
	}
}
