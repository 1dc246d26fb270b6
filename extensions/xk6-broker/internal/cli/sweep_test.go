package cli

import (
	"bytes"
	"os"
	"strings"
	"syscall"
	"testing"

	"go.k6.io/k6/v2/cmd/state"
)

// The first Ctrl-C stops after the cell, the second ends it, and a SIGTERM does at once.
func TestWhatEndsAStudy(t *testing.T) {
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
		var said bytes.Buffer
		gs.Stderr.Writer = &said
		var to chan<- os.Signal
		gs.SignalNotify = func(c chan<- os.Signal, _ ...os.Signal) { to = c }
		gs.SignalStop = func(chan<- os.Signal) {}
		ctx, stop, done := interruptible(gs)
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
		done()
	}
}

// What can be known of a sweep before a script is read is told then.
func TestMistakesOfASweep(t *testing.T) {
	for want, o := range map[string]sweeping{
		"nothing varies":                     {repeat: 1},
		"--pause -1ns":                       {sets: []string{"A=1"}, repeat: 1, runs: running{pause: -1}},
		"write NAME=VALUE,VALUE":             {sets: []string{"A"}, repeat: 1},
		`--column: there is no "late"`:       {sets: []string{"A=1"}, repeat: 1, columns: []string{"late"}},
		`--column "broker_lost" is given tw`: {sets: []string{"A=1"}, repeat: 1, columns: []string{"lost", "broker_lost"}},
	} {
		if _, _, err := o.check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
	o := sweeping{sets: []string{"A=1,2", "B=3"}, repeat: 2}
	if plan, columns, err := o.check(); err != nil || len(plan.Combinations()) != 2 || len(columns) != len(defaultColumns) {
		t.Error(plan, columns, err)
	}
}
