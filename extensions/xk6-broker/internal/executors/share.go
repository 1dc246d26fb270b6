package executors

import (
	"time"

	"go.k6.io/k6/v2/lib"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/pace"
)

// share is the arrivals of one execution segment. k6's own executors stripe by a sequence of segments that is first scaled to maxVUs,
// which changes how many arrivals each segment gets; this is striped by the segments as they are, so that together they have the
// arrivals of the whole, each once.
type share struct {
	schedule pace.Schedule
	first    uint64   // the number of the share's first arrival in the whole
	within   []uint64 // the numbers of the arrivals of one cycle, from the first
	cycle    uint64
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
	start, offsets, _ := et.GetStripedOffsets()
	s := &share{schedule: whole, first: uint64(start), within: make([]uint64, len(offsets))} //gosec:disable G115 -- a time or a rate, not negative
	for i, o := range offsets {
		s.within[i] = s.cycle
		s.cycle += uint64(o) //gosec:disable G115 -- a time or a rate, not negative
	}
	if start != 0 || s.cycle != uint64(len(offsets)) {
		s.schedule = pace.Stripe(whole, start, offsets)
	}
	return s, nil
}

// at is when the share's arrival n is due after the start.
func (s *share) at(n uint64) (time.Duration, bool) { return s.schedule.At(n) }

// index is the number in the whole of the share's arrival n.
func (s *share) index(n uint64) uint64 {
	length := uint64(len(s.within))
	return s.first + n/length*s.cycle + s.within[n%length]
}
