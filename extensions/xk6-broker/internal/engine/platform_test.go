package engine

import (
	"math"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
)

func TestTheWorstFiveSecondsOfAShare(t *testing.T) {
	var w busyWindow
	w.add(0.5, 1)
	if w.most != nil {
		t.Errorf("of a short run: %v, want nothing", *w.most)
	}
	for i := range 60 {
		share := 0.1
		if i >= 20 && i < 25 {
			share = 0.9
		}
		w.add(share, 1)
	}
	if v := w.most; v == nil || math.Abs(*v-0.9) > 1e-9 {
		t.Errorf("%v", *v)
	}
}

// What the witness sees while nothing is sent counts for nothing.
func TestPlatform_NothingSent_HiccupsDoNotCount(t *testing.T) {
	c := NewRun("", 0).NewCollector()
	observe := func(working bool) uint64 {
		i := &recording.Interval{Phase: "phase"}
		c.platform.observe(i, working)
		return i.Hiccups["phase"].Count
	}
	if n := observe(true); n != 0 {
		t.Errorf("without a witness: %d hiccups", n)
	}
	c.Watch()
	defer c.Unwatch()
	var seen uint64
	for seen == 0 && t.Context().Err() == nil { // until the witness has woken
		time.Sleep(time.Millisecond)
		seen += observe(true)
	}
	time.Sleep(10 * time.Millisecond)
	if n := observe(false); n != 0 {
		t.Errorf("idle: %d hiccups", n)
	}
}
