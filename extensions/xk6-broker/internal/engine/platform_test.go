package engine

import (
	"math"
	"testing"
	"time"
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
	if h := c.platform.add(true); h != nil {
		t.Errorf("without a witness: %d hiccups", h.Count())
	}
	c.Watch()
	defer c.Unwatch()
	var seen uint64
	for seen == 0 && t.Context().Err() == nil { // until the witness has woken
		time.Sleep(time.Millisecond)
		if h := c.platform.add(true); h != nil {
			seen += h.Count()
		}
	}
	time.Sleep(10 * time.Millisecond)
	if h := c.platform.add(false); h != nil {
		t.Errorf("idle: %d hiccups", h.Count())
	}
}
