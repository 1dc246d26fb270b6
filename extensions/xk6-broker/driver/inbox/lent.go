package inbox

import (
	"math"
	"sync"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// Lent is what was received from a broker that lends messages for a time, and is not settled. A message that has been for longer than that is lent to the
// next who asks, so that it takes no [Room] any more; it stays, as it may be settled late or be given back. What waits and was not received takes room for
// as long as it does: who is too slow would else have ever more of it. It may be used by any number of goroutines.
type Lent[T comparable] struct {
	room *Room
	time time.Duration

	mu    sync.Mutex
	held  map[T]loan
	timer *time.Timer // nil while nothing takes room
}

type loan struct {
	until int64 // by [driver.Now]
	takes bool  // room
}

// NewLent is for messages that take room for so long at most.
func NewLent[T comparable](room *Room, time time.Duration) *Lent[T] {
	return &Lent[T]{room: room, time: time, held: map[T]loan{}}
}

// Add notes what is received now and came when it says.
func (l *Lent[T]) Add(one T, came int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held[one] = loan{came + int64(l.time), true}
	if l.timer == nil {
		l.timer = time.AfterFunc(l.pause(came+int64(l.time)), l.sweep)
	}
}

// pause is until when the next look is due: not for each message by itself.
func (l *Lent[T]) pause(next int64) time.Duration {
	const looks = 16 // at most, while a message is lent
	return max(time.Duration(next-driver.Now()), l.time/looks)
}

// sweep gives back the room of what has been lent for long enough.
func (l *Lent[T]) sweep() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.timer == nil {
		return
	}
	now, next, over := driver.Now(), int64(math.MaxInt64), 0
	for one, of := range l.held {
		switch {
		case !of.takes:
		case of.until <= now:
			of.takes = false
			l.held[one] = of
			over++
		default:
			next = min(next, of.until)
		}
	}
	if next == math.MaxInt64 {
		l.timer = nil
	} else {
		l.timer.Reset(l.pause(next))
	}
	l.room.Give(over)
}

// Has tells whether something is held.
func (l *Lent[T]) Has(one T) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, held := l.held[one]
	return held
}

// Settled takes what was settled from what is held, with its room, and tells whether it was.
func (l *Lent[T]) Settled(one T) bool { return l.end(one, true) }

// Doubted has that take no room which could not be settled: nobody knows whether the broker has done it.
func (l *Lent[T]) Doubted(one T) { l.end(one, false) }

func (l *Lent[T]) end(one T, settled bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	of, held := l.held[one]
	if settled {
		delete(l.held, one)
	} else if held {
		l.held[one] = loan{of.until, false}
	}
	if of.takes {
		l.room.Give(1)
	}
	return held
}

// All is what is held.
func (l *Lent[T]) All() []T {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]T, 0, len(l.held))
	for one := range l.held {
		all = append(all, one)
	}
	return all
}

// Clear gives what is held, which is held no more, and leaves its room taken: it is for the end.
func (l *Lent[T]) Clear() []T {
	all := l.All()
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.held)
	if l.timer != nil {
		l.timer.Stop()
		l.timer = nil
	}
	return all
}
