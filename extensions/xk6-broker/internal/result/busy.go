package result

import (
	"fmt"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason"
)

// bunch is from which lateness on a message is sent together with those that were due after it, as a matter of bunches: less of it any system is used to.
const bunch = 10 * time.Millisecond

// Bunched is how many messages of the phase that leads the generator was late with by as much as there is between two of them, and by more than any system would
// notice: they were sent in bunches that the schedule does not have.
func (r *Result) Bunched() (n int64) {
	led := r.Led()
	for i := range led.Topics {
		t := &led.Topics[i]
		lag, sent := t.Trends[recording.GeneratorLag.String()], t.Counts[recording.Sent.String()]
		if lag == nil || sent == 0 {
			continue
		}
		least := max(int64(bunch), int64(led.Seconds*float64(time.Second))/sent)
		for late, count := range lag.All() {
			if late > least {
				n += int64(count) //gosec:disable G115 -- messages of a test
			}
		}
	}
	return n
}

// Others says how many of the messages that were received belong to other tests, which are load too; "" where they are next to none.
func (r *Result) Others() string {
	led := r.Led()
	for i := range led.Topics {
		t := &led.Topics[i]
		if s := share(t.Counts[recording.Foreign.String()], t.Counts[recording.Received.String()]); s > trifle {
			return fmt.Sprintf("%s of the messages received from %s are of other tests", reason.Percent(s), t.Topic)
		}
	}
	return ""
}

// VUsAwaited tells whether arrivals can have waited for VUs because of the script rather than of the system: all that was waited for of the system, by sends,
// requests and receivers one after the other, would not have kept half of the VUs busy that there are for arrivals.
func (r *Result) VUsAwaited() bool {
	led := r.Led()
	vus := uint64(0)
	for _, s := range r.Test.Scenarios {
		if one := (&Test{Scenarios: []Scenario{s}}); one.runs("open-arrival-rate", "constant-arrival-rate", "ramping-arrival-rate") {
			vus += max(s.VUs, s.MaxVUs)
		}
	}
	system := 0.0
	for i := range led.Topics {
		for _, of := range []recording.Trend{recording.PublishTime, recording.RequestTime, recording.E2ETime} {
			if h := led.Topics[i].Trends[of.String()]; h != nil && h.Count() > 0 {
				system += h.Mean() * float64(h.Count())
			}
		}
	}
	return system < float64(vus)*led.Seconds*float64(time.Second)/2
}
