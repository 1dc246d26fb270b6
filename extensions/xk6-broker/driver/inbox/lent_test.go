package inbox_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver/inbox"
)

// What is lent takes room until it is settled, its settlement fails, or its time is over, whichever comes first, and once.
func TestLent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		room := inbox.NewRoom(5)
		l := inbox.NewLent[string](room, time.Minute)
		add := func(one string) { room.Take(1); l.Add(one, driver.Now()) }
		free := func(when string, want int) {
			t.Helper()
			synctest.Wait()
			if got := room.Free(); got != want {
				t.Errorf("%s: %d have room, want %d", when, got, want)
			}
		}
		for _, one := range []string{"settled", "doubted", "old"} {
			add(one)
		}
		time.Sleep(50 * time.Second)
		add("late")
		free("all is held", 1)
		if !l.Settled("settled") || l.Settled("settled") {
			t.Error("settled once, and not again")
		}
		l.Doubted("doubted")
		free("one is settled, and of one nobody knows", 3)
		time.Sleep(14 * time.Second)
		free("one is lent to others", 4)
		if !l.Has("old") || !l.Has("doubted") || l.Has("settled") {
			t.Error("what may be settled late is held")
		}
		l.Settled("old")
		free("which is settled late", 4)
		time.Sleep(time.Minute)
		free("and the other, too", 5)
		add("again")
		free("held again", 4)
		time.Sleep(2 * time.Minute)
		free("and over again", 5)
		if all := l.Clear(); len(all) != 3 || !slices.Contains(all, "again") || len(l.All()) != 0 {
			t.Errorf("held at the end %q, and then %q", all, l.All())
		}
	})
}
