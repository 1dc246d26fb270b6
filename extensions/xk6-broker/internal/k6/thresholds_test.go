package k6

import (
	"strings"
	"sync"
	"testing"
	"time"

	"go.k6.io/k6/v2/lib/types"
	"go.k6.io/k6/v2/metrics"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/engine"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/executors"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict"
)

func registered(t *testing.T) (*metrics.Registry, *run) {
	t.Helper()
	registry := metrics.NewRegistry()
	m, err := registerMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	queue, err := executors.RegisterMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	return registry, &run{Run: engine.NewRun("", 0), metrics: m, limits: thresholds{subjects: subjects(m, queue), noTags: registry.RootTagSet()}}
}

// Whatever k6 has of a metric, a decided threshold comes to the decision, and looks as before.
func TestADecidedThresholdComesToTheDecision(t *testing.T) {
	given := metrics.NewThresholds([]string{"p(99)<50"}).Thresholds[0]
	given.AbortOnFail, given.AbortGracePeriod = true, types.NullDurationFrom(7*time.Second)
	for _, on := range []metrics.MetricType{metrics.Trend, metrics.Counter, metrics.Gauge} {
		for _, held := range []bool{true, false} {
			decided := decided(given, on, held)
			if decided.Source != given.Source || !decided.AbortOnFail || decided.AbortGracePeriod != given.AbortGracePeriod {
				t.Errorf("%+v", decided)
			}
			sink := metrics.NewSink(on)
			for _, v := range []float64{-1, 0, 1e9} { // before the first there is nothing in it
				list := metrics.Thresholds{Thresholds: []*metrics.Threshold{decided}}
				if ok, err := list.Run(sink, time.Minute); err != nil || ok != held || decided.LastFailed == held {
					t.Errorf("%v: %v, %v, want %v", on, ok, err, held)
				}
				sink.Add(metrics.Sample{Value: v})
			}
		}
	}
}

// The place that is written to is the one that k6 evaluates, at any time.
func TestTheDecisionIsWhereK6Evaluates(t *testing.T) {
	registry, r := registered(t)
	sub, err := r.metrics.trends[recording.E2ELatency].AddSubmetric("topic:a , 'loop':open")
	if err != nil {
		t.Fatal(err)
	}
	list := metrics.NewThresholds([]string{"p(99)<50", "max<100"})
	if err := list.Parse(); err != nil {
		t.Fatal(err)
	}
	sub.Metric.Thresholds = list // a copy, as the engine makes it
	r.collector = r.NewCollector()
	all := r.limits.find()
	if len(all) != 2 || all[0].name != "broker_e2e_latency{topic:a , 'loop':open}" || all[1].among[all[1].place].Source != "max<100" ||
		all[0].tags != registry.RootTagSet().With("topic", "a").With("loop", "open") {
		t.Fatalf("%+v", all)
	}
	evaluated, stop := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { // as k6 does while the test runs, and while it ends
		for n := 0; ; n++ {
			if _, err := sub.Metric.Thresholds.Run(sub.Metric.Sink, time.Second); err != nil {
				t.Error(err)
			}
			if n == 0 {
				close(evaluated)
			}
			select {
			case <-stop:
				return
			default:
			}
		}
	})
	<-evaluated
	made := result.New(r.NewCollector().Measured())
	verdict.Judge(made, verdict.Circumstances{})
	r.decide(made)
	close(stop)
	wg.Wait()
	if ok, err := sub.Metric.Thresholds.Run(sub.Metric.Sink, time.Second); ok || err != nil {
		t.Errorf("two thresholds on nothing: %v, %v", ok, err)
	}
	for _, threshold := range sub.Metric.Thresholds.Thresholds {
		if !threshold.LastFailed {
			t.Errorf("%s has not failed", threshold.Source)
		}
	}
	if len(made.Thresholds) != 2 || !strings.Contains(made.Thresholds[1].Why, "no samples") {
		t.Errorf("%+v", made.Thresholds)
	}
}
