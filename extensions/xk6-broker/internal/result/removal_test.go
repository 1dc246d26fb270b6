package result

import (
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/track"
)

func TestWhatTheTestCanHaveRemoved(t *testing.T) {
	for _, c := range []struct {
		name                     string
		lacked, meanwhile        uint64
		has, left                *Waiting
		came                     uint64 // of those that it lacked
		removed, lost, uncertain uint64
	}{
		{name: "the broker had all", lacked: 100, has: &Waiting{Backlog: Backlog{Messages: 100}}, removed: 100},
		{name: "the broker had some", lacked: 100, has: &Waiting{Backlog: Backlog{Messages: 97}}, removed: 97, lost: 3},
		{name: "the broker had none", lacked: 3, has: &Waiting{}, lost: 3},
		{name: "it had what was held too", lacked: 100, has: &Waiting{Backlog: Backlog{Messages: 107}, Held: Held{10, 10}}, removed: 97, lost: 3},
		{name: "it had messages of others", lacked: 100, has: &Waiting{Backlog: Backlog{Messages: 107}, Strange: 10}, removed: 97, uncertain: 3},
		{name: "it has some of it left", lacked: 100, has: &Waiting{Backlog: Backlog{Messages: 100}}, left: &Waiting{Backlog: Backlog{Messages: 30}}, removed: 70, uncertain: 30},
		{name: "it does not tell", lacked: 100, uncertain: 100},
		{name: "some came after all", lacked: 100, has: &Waiting{Backlog: Backlog{Messages: 97}}, came: 20, removed: 77, uncertain: 3},
		{name: "some were under way", lacked: 100, meanwhile: 5, has: &Waiting{Backlog: Backlog{Messages: 90}}, removed: 90, lost: 5, uncertain: 5},
	} {
		a := Account{Tally: track.Tally{Removed: c.lacked - c.came}}
		a.DivideRemoved(RemovalOf(c.lacked, c.meanwhile, c.has, c.left))
		if a.Removed != c.removed || a.Lost != c.lost || a.Uncertain != c.uncertain || a.Missing != c.lost+c.uncertain {
			t.Errorf("%s: %+v", c.name, a)
		}
	}
}
