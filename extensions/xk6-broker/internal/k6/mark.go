package k6

import (
	"time"

	"github.com/grafana/sobek"
	"go.k6.io/k6/v2/metrics"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// mark gives k6 a sample that stands for something that happened, which dashboards show as an annotation.
func (r *run) mark(what string, at time.Time) {
	state := r.state.Load()
	r.push(metrics.Samples{{
		TimeSeries: metrics.TimeSeries{Metric: r.metrics.marks, Tags: state.runTags.With("mark", tagValue(what))}, Time: at, Value: 1,
	}})
}

// mark notes that a script did something, such as to stop a broker.
func (in *instance) mark(text sobek.Value) error {
	what, err := textOf("mark", "the text", text)
	if err != nil {
		return err
	}
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

// marked are the texts that a script has given to mark, with their times.
func (r *run) marked() []result.Annotation {
	r.marksLock.Lock()
	defer r.marksLock.Unlock()
	return append([]result.Annotation{}, r.marks...)
}

// mostMarks bounds what is remembered of a script that marks each iteration.
const mostMarks = 1000

func (r *run) remember(what string, at time.Time) {
	r.marksLock.Lock()
	defer r.marksLock.Unlock()
	if len(r.marks) < mostMarks {
		r.marks = append(r.marks, result.Annotation{At: at.Sub(time.Unix(0, r.Started)).Seconds(), What: what})
	}
}
