package track_test

import (
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/track"
)

// What a group has is what it received and did not hand on: rejected, or given back and not settled since. Only what both were there for counts.
func TestWhatTwoGroupsHaveInCommon(t *testing.T) {
	topic := track.NewTopic()
	p, passing := topic.Producer(1), topic.Producer(2)
	workers, copies := topic.Group("workers", track.Earliest), topic.Group("copies", track.New)
	expect(p, 100)
	expect(passing, 10)
	copies.Ready()
	copies.ExpectFrom(1, 20)
	a, b := workers.Reader(), copies.Reader()
	for seq := range uint64(60) {
		a.Received(1, seq, 0, 1)
	}
	for seq := uint64(10); seq < 100; seq++ { // the first ten came by chance
		b.Seen(1, seq)
	}
	a.RejectedN(1, 30, 5)
	a.SettledN(1, 0, 50)
	a.Doubted(1, 40) // and it was settled
	a.Doubted(1, 59)
	if both, mine, theirs := copies.Common(workers); both != 34 || mine != 90 || theirs != 34 {
		t.Errorf("both %d, the one %d, the other %d", both, mine, theirs)
	}
	copies.Close()
	expect(p, 10_000) // when nobody was there for them
	for seq := uint64(100); seq < 10_100; seq++ {
		a.Received(1, seq, 0, 1)
	}
	if both, _, theirs := copies.Common(workers); both != 34 || theirs != 34 {
		t.Errorf("after it has gone: both %d, the other %d", both, theirs)
	}
	copies.Succeed()
	if both, mine, _ := copies.Common(workers); both != 34 || mine != 80 { // those by chance are none of what it was there for
		t.Errorf("with a successor: both %d, the one %d", both, mine)
	}
}

// A group that begins late expects from the first of each producer that it got; what another of them got instead is missed by neither.
func TestWhatIsMissingFromAll(t *testing.T) {
	topic := track.NewTopic()
	p, q := topic.Producer(1), topic.Producer(2)
	expect(p, 20_000)
	expect(q, 10)
	left, right := topic.Group("left", track.New), topic.Group("right", track.New)
	left.Ready()
	right.Ready()
	left.ExpectFrom(1, 10_000)
	right.ExpectFrom(1, 9_000)
	if l, r := left.Outstanding(), right.Outstanding(); l != 10_000 || r != 11_000 {
		t.Errorf("%d and %d are outstanding", l, r)
	}
	expect(q, 5)
	a, b := left.Reader(), right.Reader()
	for seq := uint64(10_000); seq < 15_000; seq++ {
		a.Seen(1, seq)
	}
	b.Seen(1, 9_000)
	for seq := uint64(14_000); seq < 19_990; seq++ {
		b.Seen(1, seq)
	}
	right.Close()
	right.Succeed()            // what the former one got was got
	left.ExpectFrom(1, 12_000) // it expects more already
	for name, n := range map[string][2]uint64{
		"left alone":  {left.MissingFromAll(), 5_005},
		"left":        {left.MissingFromAll(right), 15},
		"right":       {right.MissingFromAll(left), 999 + 15},
		"right alone": {right.MissingFromAll(), 11_000 - 1 - 5_990 + 5},
	} {
		if n[0] != n[1] {
			t.Errorf("%s: %d are missing, want %d", name, n[0], n[1])
		}
	}
}

// It does not expect what was numbered while it had gone, whatever comes.
func TestABeginningDoesNotReachBeyondAnAbsence(t *testing.T) {
	topic := track.NewTopic()
	p, g := topic.Producer(1), topic.Group("copies", track.New)
	g.ExpectFrom(1, 0) // nobody was there
	g.Ready()
	expect(p, 10)
	g.Close()
	expect(p, 10)
	g.Ready()
	g.ExpectFrom(1, 5)
	g.ExpectFrom(2, 0) // nobody knows it
	if n := g.Tally().Expected; n != 20 {
		t.Errorf("it expects %d", n)
	}
}
