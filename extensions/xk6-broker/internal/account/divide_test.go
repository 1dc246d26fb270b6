package account

import "testing"

func TestDivide_HeldMessagesDropped_AreNotSubtracted(t *testing.T) {
	for name, c := range map[string]struct {
		backlog                      Backlog
		least, most                  int64
		lost, undelivered, uncertain uint64
	}{
		"those of one process":         {Backlog{Messages: 1600, Dropped: 400}, 500, 100, 0, 1500, 0},
		"and others that were missing": {Backlog{Messages: 1200, Dropped: 500}, 500, 0, 300, 1200, 0},
		"held by several processes":    {Backlog{Messages: 1600, Dropped: 400}, 500, 500, 0, 1100, 400},
	} {
		if lost, undelivered := c.backlog.divide(1500, c.least, c.most, 0); lost != c.lost || undelivered != c.undelivered || 1500-lost-undelivered != c.uncertain {
			t.Errorf("%s: lost %d, undelivered %d", name, lost, undelivered)
		}
	}
}
