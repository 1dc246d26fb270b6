package recording_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
)

// packs returns n small distributions, with negative values and overflows among them.
func packs(r *rand.Rand, n int) (all []hist.Packed) {
	for range n {
		h := &hist.Histogram{}
		for range 1 + r.IntN(20) {
			h.Record(int64(r.ExpFloat64()*1e6) - 1000)
		}
		h.RecordN(2*hist.Highest, r.Uint64N(2))
		all = append(all, h.Pack())
	}
	return all
}

// history returns n intervals, one after the other, and the entries of their phases.
func history(r *rand.Rand, n int, from []hist.Packed) (all []*recording.Interval, entries []recording.Entry) {
	pick := func(s ...string) string { return s[r.IntN(len(s))] }
	pack := func() hist.Packed { return from[r.IntN(len(from))] }
	now := time.Unix(1_700_000_000, 0).UnixNano()
	phase := ""
	for range n {
		if phase == "" || r.IntN(10) == 0 {
			phase = pick("a", "b", "c")
		}
		i := &recording.Interval{
			From: now, To: now + 1 + r.Int64N(2e9), Phase: phase, InFlight: r.Int64N(100), CPU: r.Float64(), Busiest: r.Float64(),
		}
		now = i.To
		if last := len(entries) - 1; last >= 0 && entries[last].Phase == phase {
			entries[last].To = i.To
		} else {
			entries = append(entries, recording.Entry{Phase: phase, From: i.From, To: i.To})
		}
		if r.IntN(2) == 0 {
			i.Hiccups = map[string]hist.Packed{phase: pack(), pick("a", "b", "c"): {}}
		}
		for range r.IntN(5) {
			key := recording.Key{Broker: "b", Driver: pick("d", "e"), Topic: pick("t", "u"), Group: pick("", "g"), Phase: pick(phase, "a")}
			if !slices.ContainsFunc(i.Records, func(r recording.Record) bool { return r.Key == key }) {
				i.Records = append(i.Records, randomRecord(r, key, i, pack))
			}
		}
		all = append(all, i)
	}
	return all, entries
}

func randomRecord(r *rand.Rand, key recording.Key, i *recording.Interval, pack func() hist.Packed) recording.Record {
	record := recording.Record{Key: key, Outstanding: r.Uint64N(1000)}
	for range r.IntN(4) {
		record.Counts[r.IntN(recording.NumCounters)] = r.Int64N(1000)
		record.Latencies[r.IntN(recording.NumLoops)][r.IntN(recording.NumTrends)] = pack()
	}
	if r.IntN(4) == 0 {
		record.Errors = recording.Errors{{Op: "send", Kind: fmt.Sprint("kind ", r.IntN(3))}: 1 + r.Int64N(9), {Op: "receive"}: 1}
	}
	if r.IntN(3) == 0 {
		first := i.From + r.Int64N(i.To-i.From)
		record.Spans[r.IntN(len(recording.Timed))] = recording.Span{First: first, Last: first + r.Int64N(i.To-first)}
	}
	if r.IntN(3) == 0 {
		backlog := r.Int64N(1000)
		record.Backlog = &backlog
	}
	return record
}

func sameHistograms(a, b *hist.Histogram) bool {
	if a == nil || b == nil {
		return a == b
	}
	return reflect.DeepEqual(a.Pack(), b.Pack())
}

func sameSums(a, b map[recording.Key]*recording.Sums) bool {
	return maps.EqualFunc(a, b, func(a, b *recording.Sums) bool {
		for l := range a.Latencies {
			same := func(a, b recording.Parts) bool { return sameHistograms(a.Histogram(), b.Histogram()) }
			if !slices.EqualFunc(a.Latencies[l][:], b.Latencies[l][:], same) {
				return false
			}
		}
		x, y := *a, *b
		x.Latencies, y.Latencies = recording.Sums{}.Latencies, recording.Sums{}.Latencies
		return reflect.DeepEqual(x, y)
	})
}

// sameAsPlain reports what a recording says differently from the plain list of the intervals.
func sameAsPlain(t *testing.T, r *recording.Recording, plain []*recording.Interval, entries []recording.Entry) {
	t.Helper()
	for _, match := range []func(recording.Key) bool{nil, func(k recording.Key) bool { return k.Topic == "t" && k.Phase == "a" }} {
		if !sameSums(recording.Sum(r.Intervals(), match), recording.Sum(plain, match)) {
			t.Error("the sums differ")
		}
	}
	for _, phase := range []string{"a", "b", "c", "none"} {
		is := func(name string) bool { return name == phase }
		if !sameHistograms(recording.Hiccups(r.Intervals(), is), recording.Hiccups(plain, is)) {
			t.Errorf("the hiccups of phase %s differ", phase)
		}
	}
	if !sameHistograms(recording.Hiccups(r.Intervals(), nil), recording.Hiccups(plain, nil)) {
		t.Error("the hiccups differ")
	}
	if !slices.Equal(r.Entries(), entries) {
		t.Errorf("entries %v, want %v", r.Entries(), entries)
	}
}

func TestRecording_JoinedIntervals_SameSums(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	from := packs(random, 50)
	for n := range 200 {
		plain, entries := history(random, random.IntN(150), from)
		most := 4 + random.IntN(30)
		r := recording.Bounded(most)
		var inFlight int64
		for _, i := range plain {
			r.Add(i)
			inFlight = max(inFlight, i.InFlight)
			if len(r.Intervals()) > most {
				t.Fatalf("history %d: %d intervals, want at most %d", n, len(r.Intervals()), most)
			}
		}
		sameAsPlain(t, r, plain, entries)
		var seen int64
		for k, i := range r.Intervals() {
			seen = max(seen, i.InFlight)
			if i.From >= i.To || k > 0 && i.From != r.Intervals()[k-1].To {
				t.Errorf("history %d: interval %d is from %d to %d", n, k, i.From, i.To)
			}
		}
		if seen != inFlight {
			t.Errorf("history %d: %d in flight, want %d", n, seen, inFlight)
		}
		if t.Failed() {
			t.Fatalf("history %d of %d intervals, at most %d", n, len(plain), most)
		}
	}
}

// Joined intervals share the memory of those that were added, which must stay as they were.
func TestRecording_JoinedIntervals_AddedOnesUnchanged(t *testing.T) {
	plain, _ := history(rand.New(rand.NewPCG(3, 4)), 100, packs(rand.New(rand.NewPCG(3, 4)), 50))
	again, _ := history(rand.New(rand.NewPCG(3, 4)), 100, packs(rand.New(rand.NewPCG(3, 4)), 50))
	r, unjoined := recording.Bounded(5), recording.Bounded(1000)
	for n := range plain {
		r.Add(plain[n])
		unjoined.Add(again[n])
	}
	recording.Sum(r.Intervals(), nil)
	if !sameSums(recording.Sum(plain, nil), recording.Sum(again, nil)) {
		t.Error("the intervals changed")
	}
}

func TestJoin_TwoProcesses_SumsOfBoth(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	from := packs(random, 50)
	a, _ := history(random, 60, from)
	b, _ := history(random, 40, from)
	one, two := recording.Bounded(16), recording.Bounded(1000)
	for _, i := range a {
		one.Add(i)
	}
	for _, i := range b {
		two.Add(i)
	}
	joined := recording.Join([]*recording.Recording{one, two}, func(k recording.Key) recording.Key { return k })
	if !sameSums(recording.Sum(joined.Intervals(), nil), recording.Sum(append(a, b...), nil)) {
		t.Error("the sums differ")
	}
	if len(joined.Intervals()) != len(one.Intervals())+len(two.Intervals()) || len(joined.Entries()) != len(one.Entries())+len(two.Entries()) {
		t.Errorf("%d intervals, %d entries", len(joined.Intervals()), len(joined.Entries()))
	}
	if !slices.IsSortedFunc(joined.Intervals(), func(a, b *recording.Interval) int { return int(a.To - b.To) }) {
		t.Error("the intervals are not in order")
	}
	for _, i := range one.Intervals() {
		if i.Process != 0 {
			t.Error("an interval was changed")
		}
	}
}
