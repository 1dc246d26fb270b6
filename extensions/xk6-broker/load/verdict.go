package load

import (
	"fmt"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/hist"
)

// Verdict says whether the numbers of a run can be believed, and why not.
type Verdict struct {
	Valid   bool     `json:"valid"`
	Reasons []string `json:"reasons"` // why not valid
	Notes   []string `json:"notes"`   // what a reader must know all the same
}

// mergeTells ends a note that holds for one process only.
const mergeTells = "k6 x broker merge tells"

// Circumstances are what the engine cannot know of a run by itself.
type Circumstances struct {
	Dropped  uint64  // arrivals that k6 dropped because no VU was free
	Unserved uint64  // arrivals of an open executor that never had an iteration
	CPU      float64 // the share of its CPUs that the process used, 0 to 1
	Asked    []Asked // percentiles that thresholds decide on
}

// Asked is a percentile that somebody decides on.
type Asked struct {
	Trend Trend
	Q     float64 // 0 to 1
}

const (
	// lagShare is how large the generator's own lateness may be against the latency that was measured with it: the 99th percentile of
	// its lag against that of the latency, beyond a floor below which no system would notice.
	lagShare = 0.1
	lagFloor = 2 * time.Millisecond
	// saturated is the share of its CPUs beyond which a generator measures itself.
	saturated = 0.9
)

// Judge sets the verdict of a result.
func (r *Result) Judge(c Circumstances) {
	v := Verdict{Reasons: []string{}, Notes: []string{}}
	r.Dropped, r.Unserved, r.CPU = c.Dropped, c.Unserved, c.CPU
	if c.Dropped > 0 {
		v.because("k6 dropped %d arrivals because no VU was free: the slowest moments are missing from the latencies; "+
			"raise preAllocatedVUs and maxVUs, or use the executor open-arrival-rate", c.Dropped)
	}
	if c.Unserved > 0 {
		v.because("%d arrivals were due and never had an iteration: raise maxVUs or gracefulStop, or lower the rate", c.Unserved)
	}
	if c.CPU > saturated {
		v.because("the generator used %.0f %% of its CPUs: it measured itself; lower the rate or give it more", 100*c.CPU)
	}
	for _, t := range r.Topics {
		t.judge(&v)
	}
	for _, asked := range c.Asked {
		if all := r.trend(asked.Trend); all.Count() > 0 && !all.Supported(asked.Q) {
			v.because("a threshold asks for p(%v) of %v, which %d samples do not support: at least 10 must lie beyond it",
				asked.Q*100, asked.Trend, all.Count())
		}
	}
	v.Valid = len(v.Reasons) == 0
	r.Verdict = v
}

func (v *Verdict) because(format string, args ...any) {
	v.Reasons = append(v.Reasons, fmt.Sprintf(format, args...))
}

func (v *Verdict) note(format string, args ...any) {
	v.Notes = append(v.Notes, fmt.Sprintf(format, args...))
}

// trend is a trend over all topics.
func (r *Result) trend(t Trend) *hist.Histogram {
	all := &hist.Histogram{}
	for _, topic := range r.Topics {
		if h := topic.Trends[t.String()]; h != nil {
			all.Merge(h)
		}
	}
	return all
}

func (t *TopicResult) judge(v *Verdict) {
	if lag, ok := t.Trends[GeneratorLag.String()]; ok {
		t.judgeLag(v, time.Duration(lag.Quantile(0.99)))
	}
	if lag, own := t.Trends[ScheduleLag.String()], t.Trends[GeneratorLag.String()]; lag != nil && own != nil &&
		lag.Quantile(0.99) > 2*max(own.Quantile(0.99), int64(lagFloor)) {
		v.note("%s: sends waited for a free VU or for room in the window; their latency counts from when they were due", t.Topic)
	}
	if n := t.Counts[Due.String()] - t.Counts[Sent.String()]; n > 0 {
		v.because("%s: %d messages were due and never sent, as the test ended first", t.Topic, n)
	}
	if len(t.Errors) > 0 && t.Counts[Sent.String()] == 0 && t.Counts[Received.String()] == 0 {
		v.because("%s: nothing was sent and nothing received: see its errors", t.Topic)
	}
	if n := t.Counts[Negative.String()]; n > 0 {
		v.because("%s: %d messages arrived before they were sent, by the clocks of two machines", t.Topic, n)
	}
	for _, g := range t.Groups {
		if g.Elsewhere > 0 {
			v.note("%s: %d messages were received by another process of the test, or lost: %s", t.Topic, g.Elsewhere, mergeTells)
		}
	}
	if t.Info.Embedded {
		v.note("%s: embedded broker: it shares this process, so its latencies say nothing of a real one", t.Topic)
	}
	if !t.OpenLoop && t.Counts[Sent.String()] > 0 {
		v.note("%s: closed loop: each send waited for room, so publish latency is service time and hides waiting", t.Topic)
	}
}

func (t *TopicResult) judgeLag(v *Verdict, late time.Duration) {
	latency := t.Trends[PublishLatency.String()]
	if latency == nil {
		latency = t.Trends[RequestLatency.String()]
	}
	if latency == nil || late <= lagFloor {
		return
	}
	if all := time.Duration(latency.Quantile(0.99)); float64(late) > lagShare*float64(all) {
		v.because("%s: the generator was late itself: its own lag has a p99 of %v, the latency one of %v; lower the rate or give it more CPU",
			t.Topic, late.Round(time.Microsecond), all.Round(time.Microsecond))
	}
}
