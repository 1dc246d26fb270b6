package executors

import (
	"fmt"
	"math"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/schedule"
)

// seldom is one in so many arrivals: that fewer of them waited is chance, where there are VUs enough for the mean.
const seldom = 1000

// insufficient says that there were too few VUs, and how many the whole scenario needs; "" where there were enough. Arrivals that
// waited since the generator itself was late tell nothing of that.
func (p *pool) insufficient(t ScenarioTotals, stranded bool) string {
	kept := uint64(p.kept.Load()) //gosec:disable G115 -- a count, far below the limit
	if stranded {
		kept += t.Unserved
	}
	iterations := p.ended.Load()
	if kept == 0 || iterations == 0 {
		return ""
	}
	plan, _ := p.config.plan() // both were validated
	arrivals, _ := plan.Schedule()
	peak, mean := schedule.Peak(arrivals), time.Duration(p.spent.Load()/iterations)
	busy := peak * mean.Seconds()
	needed, allowance := busy, ""
	if p.config.Arrivals.String == "poisson" {
		needed, allowance = busy+3*math.Sqrt(busy), fmt.Sprintf(" (%.3g busy on average, and three times its root, as they come at random)", busy)
	}
	text := fmt.Sprintf("Insufficient VUs, reached %d active VUs and cannot initialize more: %d of %d arrivals waited for one to be free, "+
		"and were late. ", p.allocated.Load(), kept, t.Due)
	reckoned := fmt.Sprintf("at %.4g arrivals/s and %v an iteration", peak, mean.Round(10*time.Microsecond))
	switch {
	case math.Ceil(needed) > float64(p.config.maxVUs()):
		return fmt.Sprintf("%sGive a greater maxVUs: %s, at least %.0f are needed%s", text, reckoned, math.Ceil(needed), allowance)
	case kept*seldom < t.Due:
		return ""
	}
	return fmt.Sprintf("%sOn average they suffice (%s, %.0f), and not while iterations take longer: a greater maxVUs lets fewer wait then", text, reckoned,
		math.Ceil(needed))
}
