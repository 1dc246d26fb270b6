package verdict

import (
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// The time of a rate is from the first message sent to the last counted; of a phase its part of that.
func TestRateBasis_SpansAndPhases(t *testing.T) {
	for name, c := range map[string]struct {
		spans   map[string]result.Span
		phase   []result.Stretch
		of      int // processes
		counter recording.Counter
		want    float64
	}{
		"sent":                        {map[string]result.Span{"sent": {First: 2, Last: 12}, "confirmed": {First: 2.1, Last: 14}}, nil, 0, recording.Sent, 10},
		"confirmed later":             {map[string]result.Span{"sent": {First: 2, Last: 12}, "confirmed": {First: 2.1, Last: 14}}, nil, 0, recording.Confirmed, 12},
		"stopped before the load":     {map[string]result.Span{"sent": {First: 2, Last: 12}, "received": {First: 2.1, Last: 4}}, nil, 0, recording.Received, 10},
		"nothing sent":                {map[string]result.Span{"received": {First: 3, Last: 8}}, nil, 0, recording.Received, 5},
		"bytes":                       {map[string]result.Span{"sent": {First: 2, Last: 12}, "received": {First: 2.1, Last: 14}}, nil, 0, recording.BytesReceived, 12},
		"less than a second":          {map[string]result.Span{"sent": {First: 2, Last: 2.9}}, nil, 0, recording.Sent, 0},
		"nothing":                     {nil, nil, 0, recording.Sent, 0},
		"a phase":                     {map[string]result.Span{"sent": {First: 2, Last: 12}}, []result.Stretch{{From: 4, To: 9}}, 0, recording.Sent, 5},
		"a phase that came again":     {map[string]result.Span{"sent": {First: 2, Last: 12}}, []result.Stretch{{From: 0, To: 4}, {From: 10, To: 20}}, 0, recording.Sent, 4},
		"a phase of two processes":    {map[string]result.Span{"sent": {First: 2, Last: 12}}, []result.Stretch{{From: 4, To: 9}, {From: 4.5, To: 9.5}}, 2, recording.Sent, 5},
		"little of a phase with load": {map[string]result.Span{"sent": {First: 2, Last: 12}}, []result.Stretch{{From: 11.5, To: 20}}, 0, recording.Sent, 0},
	} {
		topic := result.Topic{Counts: map[string]int64{c.counter.String(): 700}, Trends: map[string]*hist.Histogram{}, Spans: c.spans}
		r := &result.Result{Seconds: 20, Topics: []result.Topic{topic}}
		if c.phase != nil {
			r.Phases = []result.Phase{{Name: "a", Stretches: c.phase, Processes: c.of}}
			r.Topics[0].Phases = map[string]result.Window{"a": {Counts: topic.Counts}}
			r = r.During("a")
		}
		total := Total(r)
		for _, basis := range []func(string) (float64, float64){r.Topics[0].RateBasis, total.RateBasis} {
			if n, seconds := basis(c.counter.String()); n != 700 || seconds != c.want {
				t.Errorf("%s: %v in %v s, want %v s", name, n, seconds, c.want)
			}
		}
	}
}
