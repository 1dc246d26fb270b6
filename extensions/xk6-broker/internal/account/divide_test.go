package account

import "testing"

func TestDivide_HeldMessagesDropped_AreNotSubtracted(t *testing.T) {
	for name, c := range map[string]struct {
		waiting                      Waiting
		lost, undelivered, uncertain uint64
	}{
		"those of one process":         {Waiting{Backlog: Backlog{Messages: 1600, Dropped: 400}, SureHeld: 500, Held: 100}, 0, 1500, 0},
		"and others that were missing": {Waiting{Backlog: Backlog{Messages: 1200, Dropped: 500}, SureHeld: 500}, 300, 1200, 0},
		"held by several processes":    {Waiting{Backlog: Backlog{Messages: 1600, Dropped: 400}, SureHeld: 500, Held: 500}, 0, 1100, 400},
	} {
		if lost, undelivered, uncertain := Divide(1500, 1500, 1500, c.waiting); lost != c.lost || undelivered != c.undelivered || uncertain != c.uncertain {
			t.Errorf("%s: lost %d, undelivered %d, uncertain %d", name, lost, undelivered, uncertain)
		}
	}
}
