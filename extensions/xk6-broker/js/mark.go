package js

import (
	"time"

	"go.k6.io/k6/v2/metrics"
)

// mark gives k6 a sample that stands for something that happened, which dashboards show as an annotation.
func (r *run) mark(what string, at time.Time) {
	state := r.state.Load()
	r.push(metrics.Samples{{
		TimeSeries: metrics.TimeSeries{Metric: r.metrics.marks, Tags: state.runTags.With("mark", tagValue(what))}, Time: at, Value: 1,
	}})
}

// mark notes that a script did something, such as to stop a broker.
func (in *instance) mark(what string) error {
	if tagValue(what) == "" {
		return errNoMark
	}
	if _, err := in.use(); err != nil {
		return err
	}
	now := time.Now()
	in.run.mark(what, now)
	in.run.remember(what, now)
	return nil
}
