package result

import (
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
)

// The time of a rate is from the first message sent to the last counted; of a phase its part of that.
func TestRateBasis_SpansAndPhases(t *testing.T) {
	for name, c := range map[string]struct {
		spans   map[string]Span
		phase   []Stretch
		of      int // processes
		counter recording.Counter
		want    float64
	}{
		"sent":                        {map[string]Span{"sent": {2, 12}, "confirmed": {2.1, 14}}, nil, 0, recording.Sent, 10},
		"confirmed later":             {map[string]Span{"sent": {2, 12}, "confirmed": {2.1, 14}}, nil, 0, recording.Confirmed, 12},
		"stopped before the load":     {map[string]Span{"sent": {2, 12}, "received": {2.1, 4}}, nil, 0, recording.Received, 10},
		"nothing sent":                {map[string]Span{"received": {3, 8}}, nil, 0, recording.Received, 5},
		"bytes":                       {map[string]Span{"sent": {2, 12}, "received": {2.1, 14}}, nil, 0, recording.BytesReceived, 12},
		"less than a second":          {map[string]Span{"sent": {2, 2.9}}, nil, 0, recording.Sent, 0},
		"nothing":                     {nil, nil, 0, recording.Sent, 0},
		"a phase":                     {map[string]Span{"sent": {2, 12}}, []Stretch{{4, 9}}, 0, recording.Sent, 5},
		"a phase that came again":     {map[string]Span{"sent": {2, 12}}, []Stretch{{0, 4}, {10, 20}}, 0, recording.Sent, 4},
		"a phase of two processes":    {map[string]Span{"sent": {2, 12}}, []Stretch{{4, 9}, {4.5, 9.5}}, 2, recording.Sent, 5},
		"little of a phase with load": {map[string]Span{"sent": {2, 12}}, []Stretch{{11.5, 20}}, 0, recording.Sent, 0},
	} {
		topic := Topic{Counts: map[string]int64{c.counter.String(): 700}, Trends: map[string]*hist.Histogram{}, Spans: c.spans}
		r := &Result{Seconds: 20, Topics: []Topic{topic}}
		if c.phase != nil {
			r.Phases = []Phase{{Name: "a", Stretches: c.phase, Processes: c.of}}
			r.Topics[0].Phases = map[string]Window{"a": {Counts: topic.Counts}}
			r = r.During("a")
		}
		total := r.Total()
		for _, basis := range []func(string) (float64, float64){r.RateBasis, r.Topics[0].RateBasis, total.RateBasis} {
			if n, seconds := basis(c.counter.String()); n != 700 || seconds != c.want {
				t.Errorf("%s: %v in %v s, want %v s", name, n, seconds, c.want)
			}
		}
	}
}
