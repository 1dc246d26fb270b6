package track_test

import (
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/track"
)

func TestVerdicts(t *testing.T) {
	topic := track.NewTopic()
	group := topic.Group("workers", track.Earliest)
	p := topic.Producer(7)
	for range 10 {
		p.Expect(p.Next())
	}
	a, b := group.Reader(), group.Reader()
	for _, step := range []struct {
		what      string
		reader    *track.Reader
		id, seq   uint64
		partition int32
		attempt   int32
		settle    bool
		want      track.Verdict
	}{
		{"the first", a, 7, 0, 0, 1, true, track.First},
		{"a later one", a, 7, 3, 0, 1, false, track.First},
		{"one that was overtaken", a, 7, 2, 0, 1, true, track.First | track.Reordered},
		{"one in another partition", a, 7, 1, 1, 1, true, track.First},
		{"one in a partition that is no index", a, 7, 5, -1, 1, true, track.First},
		{"one overtaken there", a, 7, 4, -1, 0, true, track.First | track.Reordered},
		{"a copy of one that is not settled", b, 7, 3, 0, 0, true, track.Redelivered},
		{"a copy of one that is", b, 7, 3, 0, 0, true, track.Duplicated},
		{"the broker repeats one that is settled", a, 7, 0, 0, 2, true, track.Duplicated | track.Redelivered},
		{"one that a dead consumer had", b, 7, 6, 0, 2, true, track.First | track.Redelivered},
		{"a redelivery overtakes nothing", b, 7, 1, 0, 2, true, track.Duplicated | track.Redelivered},
		{"nor is it a measure of what comes first", b, 7, 7, 0, 1, false, track.First},
		{"an unknown producer", b, 8, 0, 0, 1, true, track.Foreign},
		{"a number that was not handed out", b, 7, 10, 0, 1, true, track.Foreign},
	} {
		if got := step.reader.Received(step.id, step.seq, step.partition, step.attempt); got != step.want {
			t.Errorf("%s: got %v, want %v", step.what, got, step.want)
		}
		if step.settle {
			step.reader.Settled(step.id, step.seq)
		}
	}
	want := track.Tally{Expected: 10, Received: 8, Missing: 2, Settled: 7, Duplicated: 3, Redelivered: 4, Reordered: 2, Foreign: 2}
	if got := group.Tally(); got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}
