package executors

import "context"

// Arrival is what an iteration was started for.
type Arrival struct {
	// Index is the arrival's number in the scenario, counted from 0 over all execution segments.
	Index uint64
	// Due is when the iteration was due and Started when it began, both in ns since the Unix epoch, by Now of package driver.
	Due, Started int64
	// Free is when it would have begun had this process never been late itself, nor scripts been busy with themselves, on the same clock: from Due to Free
	// it waited for a VU that the system kept busy, from Free to Started for the generator.
	Free int64
	// Scenario is the name of the scenario.
	Scenario string
}

// seat is where a VU's present arrival is found. It is made once for each activation of a VU and only touched by the goroutine that
// runs the VU, so that an iteration costs neither an allocation nor a lock.
type seat struct {
	Arrival

	local   uint64 // the arrival's number within this process's share
	running bool
	ended   int64 // when the VU's last iteration did, or else when the VU was made; as Due
	own     int64 // how late that iteration began by the generator's own fault, in ns
	stalled int64 // likewise, by that of the process alone
	granted int64 // when it would have begun had only the process been in time; as Due
	rested  bool  // it waits for an arrival
	line    *line // that it belongs to

	touched int64  // when this module last did something for the script of this iteration; as Due
	waits   []wait // of this iteration, for one answer each: those that a standstill may have come in
	awaits  int    // what the script waits for
	since   int64  // when it began to wait for the first of these; as Due
	spans   spans  // in which it has waited for answers since then
	awaited int64  // how long it had waited for answers in this iteration before, in ns

	call chan struct{} // wakes the VU; holds one
	next *seat         // of those idle
}

type seatKey struct{}

// FromContext is the arrival of the iteration that is running in a VU, whose context ctx is or comes from. It is false outside
// the iterations of an open-arrival-rate scenario. It may only be called on the VU's own goroutine.
func FromContext(ctx context.Context) (Arrival, bool) {
	s, ok := ctx.Value(seatKey{}).(*seat)
	if !ok || !s.running {
		return Arrival{}, false
	}
	return s.Arrival, true
}
