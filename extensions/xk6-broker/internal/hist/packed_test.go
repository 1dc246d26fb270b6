package hist_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
)

// What was packed says, when it is added to something, what it said before; and it is small.
func TestPackedHistogramsAddUp(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	all, unpacked := &hist.Histogram{}, &hist.Histogram{}
	for n := range 50 {
		h := &hist.Histogram{}
		for range 100 * n {
			h.Record(int64(r.ExpFloat64() * 3e5))
		}
		switch n {
		case 10:
			h.RecordN(0, 1<<40)
		case 20:
			h.Record(-5)
		case 30:
			h.Record(hist.Highest + 7)
		}
		all.Merge(h)
		p := h.Pack()
		if p.Count() != h.Count() {
			t.Errorf("count %d, want %d", p.Count(), h.Count())
		}
		p.AddTo(unpacked)
	}
	same := func(a, b *hist.Histogram) bool {
		type bucket struct {
			v int64
			n uint64
		}
		list := func(h *hist.Histogram) (l []bucket) {
			for v, n := range h.All() {
				l = append(l, bucket{v, n})
			}
			return l
		}
		return slices.Equal(list(a), list(b)) && a.Count() == b.Count() && a.Min() == b.Min() && a.Max() == b.Max() &&
			a.Negative() == b.Negative() && a.Overflow() == b.Overflow()
	}
	if !same(all, unpacked) {
		t.Errorf("%d values from %d to %d, want %d from %d to %d", unpacked.Count(), unpacked.Min(), unpacked.Max(), all.Count(), all.Min(), all.Max())
	}
	empty := &hist.Histogram{}
	(&hist.Histogram{}).Pack().AddTo(empty)
	if !same(empty, &hist.Histogram{}) {
		t.Error("nothing became something")
	}
}
