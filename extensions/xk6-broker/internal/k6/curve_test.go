package k6

import (
	"testing"
	"time"

	"go.k6.io/k6/v2/metrics"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/k6/samples"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

func constant(at time.Duration, n int) *hist.Histogram {
	h := &hist.Histogram{}
	for range n {
		h.Record(int64(at))
	}
	return h
}

// trends of a topic that one group received at 1 ms and another at 3 ms, in an open loop, and the
// first in a closed one too.
func trendsOfGroups() result.Topic {
	all := constant(time.Millisecond, 100)
	all.Merge(constant(3*time.Millisecond, 300))
	return result.Topic{
		Driver: "memory", Topic: "orders", OpenLoop: true, ClosedLoop: true,
		Trends: map[string]*hist.Histogram{
			"e2e_latency": all, "e2e_latency_closed": constant(9*time.Millisecond, 50), "publish_latency": constant(time.Millisecond, 400),
			"settle_time": constant(time.Millisecond, 400),
		},
		Groups: []result.Group{
			{Account: account.Account{Group: "fast"}, Trends: map[string]*hist.Histogram{
				"e2e_latency": constant(time.Millisecond, 100), "e2e_latency_closed": constant(9*time.Millisecond, 50),
			}},
			{Account: account.Account{Group: "slow"}, Trends: map[string]*hist.Histogram{"e2e_latency": constant(3*time.Millisecond, 300)}},
		},
	}
}

func TestCurves(t *testing.T) {
	registry := metrics.NewRegistry()
	m, err := registerMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	r := &run{metrics: m}
	r.state.Store(&testState{runTags: registry.RootTagSet()})
	closed := result.Topic{
		Driver: "memory", Topic: "closed", ClosedLoop: true, Trends: map[string]*hist.Histogram{"publish_latency": constant(time.Millisecond, 40)},
	}
	b := &samples.Bundle{}
	(&flusher{run: r}).curves(&result.Result{Topics: []result.Topic{trendsOfGroups(), closed}}, b)

	for name, c := range map[string]struct {
		tags map[string]string
		last float64 // in milliseconds
		n    int     // series
	}{
		"a group":                         {map[string]string{"topic": "orders", "trend": "e2e_latency", "consumer_group": "fast", "loop": "open"}, 1, 1},
		"no group":                        {map[string]string{"topic": "orders", "trend": "e2e_latency", "consumer_group": ""}, 3, 1},
		"the closed loop":                 {map[string]string{"topic": "orders", "trend": "e2e_latency", "loop": "closed"}, 9, 1},
		"of producers":                    {map[string]string{"topic": "orders", "trend": "publish_latency", "consumer_group": "", "loop": "open"}, 1, 1},
		"no loop is known of":             {map[string]string{"topic": "orders", "trend": "settle_time", "loop": ""}, 1, 1},
		"a topic with a closed loop only": {map[string]string{"topic": "closed", "trend": "publish_latency", "loop": "closed"}, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			last, n := 0.0, 0
			for _, s := range b.Close() {
				if q, _ := s.Tags.Get("one_in"); q != "2" {
					continue
				}
				matches := true
				for key, want := range c.tags {
					got, _ := s.Tags.Get(key)
					matches = matches && got == want
				}
				if matches {
					last, n = s.Value, n+1
				}
			}
			if n != c.n || last < c.last*0.999 || last > c.last*1.001 {
				t.Errorf("%d series, the last %v ms; want %d and %v ms", n, last, c.n, c.last)
			}
		})
	}
}
