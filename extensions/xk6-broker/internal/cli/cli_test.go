package cli

import (
	"os"
	"syscall"
	"testing"

	"go.k6.io/k6/v2/cmd/state"
)

// The first Ctrl-C stops after the cell. The second ends the cell, and so does SIGTERM at once.
func TestInterruptible(t *testing.T) {
	for _, c := range []struct {
		signals []os.Signal
		stops   bool
		ends    bool
	}{
		{[]os.Signal{os.Interrupt}, true, false},
		{[]os.Signal{os.Interrupt, os.Interrupt}, true, true},
		{[]os.Signal{syscall.SIGTERM}, false, true},
		{[]os.Signal{os.Interrupt, syscall.SIGTERM}, true, true},
	} {
		gs := state.NewGlobalState(t.Context())
		var to chan<- os.Signal
		gs.SignalNotify = func(c chan<- os.Signal, _ ...os.Signal) { to = c }
		gs.SignalStop = func(chan<- os.Signal) {}
		ctx, stop, release := interruptible(gs)
		for _, s := range c.signals {
			to <- s
		}
		if c.stops {
			<-stop
		}
		if c.ends {
			<-ctx.Done()
		} else if ctx.Err() != nil {
			t.Errorf("%v end the cell", c.signals)
		}
		release()
	}
}
