package engine

import (
	"math"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/machine"
)

func TestTheWorstFiveSecondsOfAShare(t *testing.T) {
	known := func(v float64) machine.Share { return machine.Share{Value: v, Known: true} }
	var w worst
	if w.value() != nil {
		t.Error("a share of nothing")
	}
	w.add(machine.Share{}, 1)
	w.add(known(0.5), 1)
	if v := w.value(); v == nil || *v != 0.5 {
		t.Errorf("of a short run: %v", v)
	}
	for i := range 60 {
		share := 0.1
		if i >= 20 && i < 25 {
			share = 0.9
		}
		w.add(known(share), 1)
	}
	if v := w.value(); v == nil || math.Abs(*v-0.9) > 1e-9 {
		t.Errorf("%v", *v)
	}
}

// What the witness sees while nothing is sent counts for nothing.
func TestPlatform_NothingSent_HiccupsDoNotCount(t *testing.T) {
	c := NewRun("", 0).NewCollector()
	if h := c.platform.note(true); h != nil {
		t.Errorf("without a witness: %d hiccups", h.Count())
	}
	c.Watch()
	defer c.Unwatch()
	var seen uint64
	for seen == 0 && t.Context().Err() == nil { // until the witness has woken
		time.Sleep(time.Millisecond)
		if h := c.platform.note(true); h != nil {
			seen += h.Count()
		}
	}
	time.Sleep(10 * time.Millisecond)
	if h := c.platform.note(false); h != nil {
		t.Errorf("idle: %d hiccups", h.Count())
	}
}

// With GOMAXPROCS below the number of CPUs, k6 is busy where the machine is not, and what others used is of the machine's CPUs.
func TestWhatOthersUsedIsOfTheMachinesCPUs(t *testing.T) {
	known := func(v float64) machine.Share { return machine.Share{Value: v, Known: true} }
	for _, c := range []struct{ all, own, want machine.Share }{
		{known(0.76), known(0.33), known(0.43)},
		{known(0.5), known(0.5), known(0)},
		{known(0.4), known(0.5), known(0)},
		{known(0.4), machine.Share{}, machine.Share{}},
		{machine.Share{}, known(0.4), machine.Share{}},
	} {
		if got := others(withIn(c.all, c.own), c.own); math.Abs(got.Value-c.want.Value) > 1e-9 || got.Known != c.want.Known {
			t.Errorf("all %v, own %v: others %v, want %v", c.all, c.own, got, c.want)
		}
	}
}

// All processes use no less than one of them, however the system counts.
func TestTheWholeIsNoLessThanItsPart(t *testing.T) {
	for _, c := range []struct{ all, part, want machine.Share }{
		{machine.Share{Value: 0.27, Known: true}, machine.Share{Value: 0.38, Known: true}, machine.Share{Value: 0.38, Known: true}},
		{machine.Share{Value: 0.9, Known: true}, machine.Share{Value: 0.38, Known: true}, machine.Share{Value: 0.9, Known: true}},
		{machine.Share{}, machine.Share{Value: 0.38, Known: true}, machine.Share{}},
		{machine.Share{Value: 0.9, Known: true}, machine.Share{}, machine.Share{Value: 0.9, Known: true}},
	} {
		if got := withIn(c.all, c.part); got != c.want {
			t.Errorf("%v with %v: %v, want %v", c.all, c.part, got, c.want)
		}
	}
}
