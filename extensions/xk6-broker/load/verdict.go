package load

import (
	"fmt"
	"time"
)

// Verdict says whether the numbers of a run can be believed, and why not.
type Verdict struct {
	Valid   bool     `json:"valid"`
	Reasons []string `json:"reasons"` // why not valid
	Notes   []string `json:"notes"`   // what a reader must know all the same
}

// lagShare is how large the generator's own lateness may be against the latency that was measured with it: the 99th
// percentile of schedule lag against that of the latency, beyond a floor below which no system would notice.
const (
	lagShare = 0.1
	lagFloor = 2 * time.Millisecond
)

// Judge sets the verdict of a result.
func (r *Result) Judge() {
	v := Verdict{}
	if r.Dropped > 0 {
		v.Reasons = append(v.Reasons, fmt.Sprintf("k6 dropped %d arrivals because no VU was free: "+
			"the slowest moments are missing from the latencies; raise maxVUs", r.Dropped))
	}
	for _, t := range r.Topics {
		t.judge(&v)
	}
	v.Valid = len(v.Reasons) == 0
	r.Verdict = v
}

func (t *TopicResult) judge(v *Verdict) {
	if lag, ok := t.Trends[ScheduleLag.String()]; ok {
		latency := t.Trends[PublishLatency.String()]
		if latency == nil {
			latency = t.Trends[RequestLatency.String()]
		}
		late := time.Duration(lag.Quantile(0.99))
		if late > lagFloor && latency != nil && float64(late) > lagShare*float64(latency.Quantile(0.99)) {
			v.Reasons = append(v.Reasons, fmt.Sprintf("%s: the generator was late itself: schedule lag p99 is %v of %v of latency p99; "+
				"lower the rate or give it more CPU", t.Topic, late.Round(time.Microsecond),
				time.Duration(latency.Quantile(0.99)).Round(time.Microsecond)))
		}
	}
	if n := t.Counts[Due.String()] - t.Counts[Sent.String()]; n > 0 {
		v.Reasons = append(v.Reasons, fmt.Sprintf("%s: %d messages were due and never sent, as the test ended first", t.Topic, n))
	}
	if n := t.Counts[Negative.String()]; n > 0 {
		v.Reasons = append(v.Reasons, fmt.Sprintf("%s: %d messages arrived before they were sent, by the clocks of two machines", t.Topic, n))
	}
	if t.Info.Embedded {
		v.Notes = append(v.Notes, t.Topic+": embedded broker: it shares this process, so its latencies say nothing of a real one")
	}
	if !t.OpenLoop && t.Counts[Sent.String()] > 0 {
		v.Notes = append(v.Notes, t.Topic+": closed loop: each send waited for room, so publish latency is service time and hides waiting")
	}
}
