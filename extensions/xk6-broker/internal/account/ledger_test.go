package account

import (
	"math"
	"testing"
)

func TestHowFarAProducerHadCome(t *testing.T) {
	c := Course{{At: 10, Next: 0}, {At: 16, Next: 100}, {At: 20, Next: 100}, {At: 23, Next: 300}, {At: 23, Next: 310}, {At: 29, Next: 400}}
	for at, want := range map[int64][2]uint64{
		5: {0, 0}, 10: {0, 0}, 11: {0, 100}, 15: {0, 100}, 16: {100, 100}, 20: {100, 100}, 21: {100, 300}, 23: {300, 310}, 24: {310, 400}, 28: {310, 400}, 29: {400, 400},
	} {
		if least, most := c.handedOut(at, 400); least != want[0] || most != want[1] {
			t.Errorf("at %d: %d to %d, want %d to %d", at, least, most, want[0], want[1])
		}
	}
}

func TestWhatABacklogSaysOfTheMissing(t *testing.T) {
	for _, c := range []struct {
		missing                      uint64
		waiting, other               int64
		lost, undelivered, uncertain uint64
	}{
		{0, 50, 10, 0, 0, 0},
		{100, 100, 0, 0, 100, 0},
		{100, 70, 0, 30, 70, 0},
		{100, 70, 20, 30, 50, 20},
		{100, 70, 90, 30, 0, 70},
		{100, -5, 0, 100, 0, 0},
	} {
		lost, undelivered := Backlog{Messages: c.waiting}.divide(c.missing, 0, 0, c.other)
		if lost != c.lost || undelivered != c.undelivered || c.missing-lost-undelivered != c.uncertain {
			t.Errorf("%+v: lost %d, undelivered %d", c, lost, undelivered)
		}
	}
}

// Where the broker keeps nothing, what was sent after a killed process's last checkpoint may have come to its consumers.
func TestCompute_SubscriberKilled_LaterMessagesUncertain(t *testing.T) {
	sender, receiver := NewTopic(), NewTopic()
	p := sender.Producer(1 << 32)
	reader := receiver.Group("g", false).Reader()
	second := int64(1e9)
	for i := range int64(10) { // one each second, of which those of the first five came before the checkpoint
		p.Sent(100*second+i*second, p.Next())
		p.Expect(uint64(i)) //gosec:disable G115 -- a small count
		if i < 5 {
			reader.Received(p.ID(), uint64(i), 0, 1) //gosec:disable G115 -- a small count
		}
	}
	sent, came := sender.Snapshot(), receiver.Snapshot()
	whole := Compute([]*Ledger{
		{Instance: 1, Clock: "one", Ended: 110 * second, Topics: []TopicLedger{{Topic: "t", Producers: sent.Producers}}},
		{Instance: 2, Clock: "one", Ended: 105 * second, Unfinished: true, Topics: []TopicLedger{{Topic: "t", Groups: []GroupLedger{{
			GroupSnapshot: came.Groups[0], There: []Presence{{From: 99 * second, Until: math.MaxInt64}},
		}}}}},
	}, Options{Complete: true})
	if a := whole.Topics[0].Groups[0]; a.Expected != 10 || a.Received != 5 || a.Lost != 0 || a.Why[Killed] != 5 {
		t.Errorf("%+v", a)
	}
}
