package executors

import (
	"time"

	"go.k6.io/k6/v2/lib"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/schedule"
)

// segmentShare is which arrivals are those of one execution segment. k6's own executors stripe by a sequence of segments that is first scaled to
// maxVUs, which changes how many arrivals each segment gets; this is striped by the segments as they are, so that together they have the
// arrivals of the whole, each once.
func segmentShare(et *lib.ExecutionTuple) schedule.Share {
	start, offsets, _ := et.GetStripedOffsets()
	return schedule.Stripe(start, offsets)
}

// share is the arrivals of one execution segment.
type share struct {
	schedule schedule.Schedule
	of       schedule.Share
}

// newShare makes a share that is for one goroutine.
func newShare(c *Config, et *lib.ExecutionTuple) (*share, error) {
	plan, err := c.plan()
	if err != nil {
		return nil, err
	}
	whole, err := plan.Schedule()
	if err != nil {
		return nil, err
	}
	of := segmentShare(et)
	return &share{schedule: of.Of(whole), of: of}, nil
}

// at is when the share's arrival n is due after the start.
func (s *share) at(n uint64) (time.Duration, bool) { return s.schedule.At(n) }

// index is the number in the whole of the share's arrival n.
func (s *share) index(n uint64) uint64 { return s.of.Index(n) }
