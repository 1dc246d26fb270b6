package executors

import "context"

// Arrival is the arrival that an iteration serves. Times are in ns since the Unix epoch, by Now of package driver.
type Arrival struct {
	Index    uint64 // in the scenario, from 0 over all execution segments
	Due      int64
	Started  int64
	Free     int64 // when a VU was free for it, Due or later
	Scenario string
}

// seat has a VU's present arrival. Only the goroutine that runs the VU touches it, so that an iteration costs neither an
// allocation nor a lock.
type seat struct {
	Arrival

	local   uint64 // the arrival's number within this process's share
	running bool
	free    int64         // since when the VU is free
	call    chan struct{} // wakes the VU; holds one
	next    *seat         // of the idle ones
}

type seatKey struct{}

// FromContext returns the arrival of the iteration that is running in a VU. It is false outside the iterations of an
// open-arrival-rate scenario. Only the VU's own goroutine may call it.
func FromContext(ctx context.Context) (Arrival, bool) {
	s, ok := ctx.Value(seatKey{}).(*seat)
	if !ok || !s.running {
		return Arrival{}, false
	}
	return s.Arrival, true
}
