package track_test

import (
	"slices"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/track"
)

// One subscriber takes the place of another, over and over: what each receives is compared with its own, what each lacks stays missing, and
// a page that was complete is complete.
func TestASuccessorIsJudgedByWhatItReceivedItself(t *testing.T) {
	const there, rounds = 10_000, 3
	topic := track.NewTopic()
	topic.Share()
	p, group := topic.Producer(1), topic.Group("subscriber 1", track.New)
	var want track.Tally
	var ranges []track.Range
	for round := range uint64(rounds) {
		first := round * there
		if round > 0 {
			group.Succeed()
		}
		r := group.Reader()
		if round > 0 { // the last two of the former's, which the former had and had not; it was on its way in
			for _, seq := range []uint64{first - 2, first - 1} {
				if v := r.Received(1, seq, 0, 0); v != track.First {
					t.Errorf("round %d: what another received makes it %v", round, v)
				}
				r.Settled(1, seq)
				want.Received, want.Unexpected, want.Settled = want.Received+1, want.Unexpected+1, want.Settled+1
			}
			if v := r.Received(1, first-1, 0, 0); v != track.Duplicated {
				t.Errorf("round %d: its own copy is %v", round, v)
			}
			want.Duplicated++
		}
		group.Ready()
		expect(p, there)
		want.Expected += there
		for seq := first; seq < first+there-2; seq++ {
			r.Received(1, seq, 0, 0)
			r.Settled(1, seq)
			want.Received, want.Settled = want.Received+1, want.Settled+1
		}
		r.Received(1, first+there-2, 0, 0)
		want.Received++
		group.Close()
		if r.Drained(1, first-1) {
			t.Error("it drained what it did not expect")
		}
		if round == 0 {
			r.Drained(1, first+there-1)
			want.Drained++
		} else {
			want.Missing++
			ranges = append(ranges, track.Range{ID: 1, From: first + there - 1, To: first + there - 1})
		}
		if got := group.Tally(); got != want {
			t.Errorf("round %d:\n got %+v\nwant %+v", round, got, want)
		}
		if got := group.MissingRanges(10); !slices.Equal(got, ranges) || group.Outstanding() != want.Missing {
			t.Errorf("round %d: missing %v, want %v", round, got, ranges)
		}
	}
	l := recoded(t, topic.Snapshot())
	got := merged(t, l.Producers, l.Groups, func(uint64) track.Terms {
		return track.Terms{Spans: l.Groups[0].Sources[0].Spans, Certain: l.Groups[0].Sources[0].Spans}
	}, 10)
	if got.Expected != want.Expected || got.Missing != want.Missing || got.Duplicated != want.Duplicated || !slices.Equal(got.Ranges, ranges) {
		t.Errorf("of several processes: %+v\nwant %+v, missing %v", got, want, ranges)
	}
	if n := topic.Memory(); n > 64<<10 {
		t.Errorf("%d bytes", n)
	}
}
