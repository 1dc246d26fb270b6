package result

import (
	"math"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/track"
)

func TestHowFarAProducerHadCome(t *testing.T) {
	c := Course{Width: 5, Marks: []Mark{{At: 10, Next: 0}, {At: 20, Next: 100}, {At: 23, Next: 300}}}
	for at, want := range map[int64][2]uint64{
		5: {0, 0}, 10: {0, 0}, 11: {0, 100}, 15: {0, 100}, 16: {100, 100}, 20: {100, 100}, 21: {100, 300}, 23: {300, 300}, 24: {300, 400}, 28: {300, 400}, 29: {400, 400},
	} {
		if least, most := c.HandedOut(at, 400); least != want[0] || most != want[1] {
			t.Errorf("at %d: %d to %d, want %d to %d", at, least, most, want[0], want[1])
		}
	}
}

// The broker took a while to say what it has, and a producer sent on: what it had sent when the answer was there may be in it.
func TestWhatWasSentBeforeTheAnswerIsNoLeftover(t *testing.T) {
	sending, receiving := track.NewTopic(), track.NewTopic()
	receiving.Share()
	p, reader := sending.Producer(1), receiving.Group("workers", track.Earliest).Reader()
	for range 200 {
		seq := p.Next()
		p.Expect(seq)
		reader.Received(1, seq, 0, 1)
	}
	producer, consumer := &Ledger{Instance: 1}, &Ledger{Instance: 2}
	w := &wholeTopic{producers: sending.Snapshot().Producers, senders: map[uint64]sender{1: {
		by: producer, next: 200, course: Course{Width: 1000, Marks: []Mark{{At: 10}, {At: 1000, Next: 100}, {At: 2001, Next: 200}}},
	}}}
	producer.Clock, consumer.Clock = "one", "one"
	g := GroupLedger{
		GroupSnapshot: receiving.Snapshot().Groups[0], Kept: true, Earliest: true, There: []Presence{{900, math.MaxInt64}}, Leftovers: 150, Looked: 1500,
	}
	if n, err := w.leftovers([]groupShare{{GroupLedger: &g, by: consumer}}); n != 0 || err != nil {
		t.Errorf("%d are of nobody: %v", n, err)
	}
	g.Looked = 950
	if n, err := w.leftovers([]groupShare{{GroupLedger: &g, by: consumer}}); n != 50 || err != nil {
		t.Errorf("%d are of nobody, want 50: %v", n, err)
	}
}

// A producer sends each 10 ns, from 0 on, and a process that takes what it sent last wrote at 1000, and was killed.
func TestWhatAProcessThatWasKilledMayHaveHad(t *testing.T) {
	sending, receiving := track.NewTopic(), track.NewTopic()
	receiving.Share()
	p, reader := sending.Producer(7), receiving.Group("workers", track.New).Reader()
	course := Course{}
	for n := range uint64(200) {
		course.Marks = append(course.Marks, Mark{At: int64(10 * n), Next: n})
		p.Expect(p.Next())
		if n < 90 || n == 95 {
			reader.Received(7, n, 0, 1)
		}
	}
	had := receiving.Snapshot().Groups[0]
	there := []Presence{{5, math.MaxInt64}}
	for name, c := range map[string]struct {
		GroupLedger
		finished bool
		slowest  time.Duration
		from     uint64
		none     bool
	}{
		"the broker keeps them":           {GroupLedger: GroupLedger{GroupSnapshot: had, Kept: true, There: there}},
		"it had none of the producer's":   {GroupLedger: GroupLedger{There: there}},
		"after the last that it had":      {GroupLedger: GroupLedger{GroupSnapshot: had, There: there}, slowest: 10, from: 96},
		"so late that others took longer": {GroupLedger: GroupLedger{GroupSnapshot: had, There: there}, slowest: 150, from: 85},
		"it went on to its end":           {GroupLedger: GroupLedger{GroupSnapshot: had, There: there}, finished: true, none: true},
		"it had no members":               {GroupLedger: GroupLedger{GroupSnapshot: had}, none: true},
	} {
		w := &wholeTopic{senders: map[uint64]sender{7: {by: &Ledger{}, next: 200, course: course}}}
		by := &Ledger{Ended: 1000, Unfinished: !c.finished}
		all, err := w.untold([]groupShare{{GroupLedger: &c.GroupLedger, by: by, slowest: c.slowest}})
		if err != nil || len(all[7]) > 0 == c.none || !c.none && all[7][0] != (track.Bounds{From: c.from, Until: math.MaxUint64}) {
			t.Errorf("%s: %v, %v", name, all, err)
		}
	}
}

func TestWhatABacklogSaysOfTheMissing(t *testing.T) {
	for _, c := range []struct {
		missing, sure, possible      uint64
		Waiting, strange             int64
		lost, undelivered, uncertain uint64
	}{
		{0, 0, 0, 50, 10, 0, 0, 0},
		{100, 100, 100, 100, 0, 0, 100, 0},
		{100, 100, 100, 70, 0, 30, 70, 0},
		{100, 100, 100, 70, 20, 30, 50, 20},
		{100, 100, 100, 70, 90, 30, 0, 70},
		{100, 100, 100, -5, 0, 100, 0, 0},
		{100, 40, 60, 30, 0, 10, 30, 60},
		{100, 40, 60, 90, 0, 0, 60, 40},
		{100, 0, 0, 90, 0, 0, 0, 100},
	} {
		said := Waiting{Backlog: Backlog{Messages: c.Waiting}, Strange: c.strange}
		lost, undelivered, uncertain := Divide(c.missing, c.sure, c.possible, said)
		if lost != c.lost || undelivered != c.undelivered || uncertain != c.uncertain {
			t.Errorf("%+v: lost %d, undelivered %d, uncertain %d", c, lost, undelivered, uncertain)
		}
	}
}
