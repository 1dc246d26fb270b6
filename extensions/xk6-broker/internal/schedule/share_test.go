package schedule_test

import (
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/schedule"
)

func TestShardsAreTheWhole(t *testing.T) {
	t.Parallel()
	for _, s := range schedules(t) {
		whole := all(t, s)
		for _, m := range []uint64{1, 2, 3, 7, 100} {
			merged := make([]time.Duration, len(whole))
			found := 0
			for i := range m {
				shard := schedule.Shard(i, m).Of(s)
				dues := all(t, shard)
				for n, due := range dues {
					merged[uint64(n)*m+i] = due
				}
				found += len(dues)
				if n, ok := schedule.Count(shard); ok && n != uint64(len(dues)) {
					t.Errorf("Count(%v) is %d, but there are %d", shard, n, len(dues))
				}
			}
			if found != len(whole) || !slices.Equal(merged, whole) {
				t.Errorf("%v: %d shards together have %d arrivals of %d, or others", s, m, found, len(whole))
			}
		}
	}
}

// k6 divides 10 VUs among 4 execution segments as these, and each segment has the arrivals that its numbers say.
func TestStripesAreTheWhole(t *testing.T) {
	t.Parallel()
	segments := []struct {
		start   int64
		offsets []int64
	}{{0, []int64{4, 3, 3}}, {1, []int64{5, 5}}, {2, []int64{3, 3, 4}}, {3, []int64{6, 4}}}
	for _, s := range schedules(t) {
		whole := all(t, s)
		merged := map[int64]time.Duration{}
		for _, segment := range segments {
			share := schedule.Stripe(segment.start, segment.offsets)
			stripe := share.Of(s)
			dues := all(t, stripe)
			if n := share.Count(uint64(len(whole))); n != uint64(len(dues)) {
				t.Errorf("%v: of %d arrivals %d are its own, but there are %d", stripe, len(whole), n, len(dues))
			}
			number := segment.start
			for n, due := range dues {
				if i := share.Index(uint64(n)); i != uint64(number) {
					t.Fatalf("%v: arrival %d is number %d of the whole, want %d", stripe, n, i, number)
				}
				if due != whole[number] {
					t.Fatalf("%v: arrival %d is due at %v, want that of arrival %d, %v", stripe, n, due, number, whole[number])
				}
				merged[number] = due
				number += segment.offsets[n%len(segment.offsets)]
			}
			if n, ok := schedule.Count(stripe); ok && n != uint64(len(dues)) {
				t.Errorf("Count(%v) is %d, but there are %d", stripe, n, len(dues))
			}
		}
		if len(merged) != len(whole) {
			t.Errorf("%v: all segments together have %d arrivals of %d", s, len(merged), len(whole))
		}
	}
}

func TestStripeCount(t *testing.T) {
	t.Parallel()
	for length := range time.Duration(40) {
		base := schedule.Constant(perSecond(1), length*time.Second+1)
		for start := range int64(12) {
			stripe := schedule.Stripe(start, []int64{1, 4, 2}).Of(base)
			if n, ok := schedule.Count(stripe); !ok || n != uint64(len(all(t, stripe))) {
				t.Fatalf("Count(%v) is %d, but there are %d", stripe, n, len(all(t, stripe)))
			}
		}
	}
}

// Shards share nothing that changes, also shards of shards: the race detector looks on.
func TestShardsInGoroutines(t *testing.T) {
	t.Parallel()
	s := schedule.Poisson(schedule.Constant(perSecond(1000), time.Second), 2)
	whole := all(t, s)
	var wait sync.WaitGroup
	for i := range uint64(3) {
		outer := schedule.Shard(i, 3).Of(s)
		for j := range uint64(2) {
			inner := schedule.Shard(j, 2).Of(outer)
			wait.Go(func() {
				for n := uint64(0); ; n++ {
					due, ok := inner.At(n)
					if number := (2*n+j)*3 + i; ok != (number < uint64(len(whole))) || ok && due != whole[number] {
						t.Errorf("%v: arrival %d is due at %v (%v)", inner, n, due, ok)
						return
					}
					if !ok {
						return
					}
				}
			})
		}
	}
	wait.Wait()
}

func TestShardFarOut(t *testing.T) {
	t.Parallel()
	endless := schedule.Constant(schedule.Rate{Events: 1, Per: 1}, 0)
	for _, s := range []schedule.Schedule{schedule.Shard(1, math.MaxInt64).Of(endless), schedule.Stripe(1, []int64{math.MaxInt64, 1}).Of(endless)} {
		if due, ok := s.At(0); !ok || due != 1 {
			t.Errorf("%v: arrival 0 is due at %v (%v)", s, due, ok)
		}
		for _, n := range []uint64{2, 3, math.MaxUint64} {
			if due, ok := s.At(n); ok {
				t.Errorf("%v: arrival %d is due at %v", s, n, due)
			}
		}
	}
}

func TestShardPanics(t *testing.T) {
	t.Parallel()
	panics(t, func() { schedule.Shard(4, 4) })
	panics(t, func() { schedule.Shard(0, 0) })
	panics(t, func() { schedule.Stripe(-1, []int64{1}) })
	panics(t, func() { schedule.Stripe(0, nil) })
	panics(t, func() { schedule.Stripe(0, []int64{1, 0}) })
}
