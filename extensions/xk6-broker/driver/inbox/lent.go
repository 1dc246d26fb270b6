package inbox

import (
	"math"
	"sync"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// Lent holds the unsettled messages of a broker that lends messages for a time. After that time the
// broker lends a message to another consumer, so it takes no [Room]; it stays in Lent, because it
// may be settled late or given back. Queued messages that were not received keep their room. Any
// number of goroutines may use it.
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

// NewLent returns a Lent whose messages take room for at most the given time.
func NewLent[T comparable](room *Room, time time.Duration) *Lent[T] {
	return &Lent[T]{room: room, time: time, held: map[T]loan{}}
}

// Add adds a message that is received now and arrived at came.
func (l *Lent[T]) Add(one T, came int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held[one] = loan{came + int64(l.time), true}
	if l.timer == nil {
		l.timer = time.AfterFunc(l.pause(came+int64(l.time)), l.sweep)
	}
}

// pause returns the time until the next sweep, which is not done for each message.
func (l *Lent[T]) pause(next int64) time.Duration {
	const looks = 16 // at most, while a message is lent
	return max(time.Duration(next-driver.Now()), l.time/looks)
}

// sweep gives back the room of messages whose time is over.
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

// Has reports whether a message is held.
func (l *Lent[T]) Has(one T) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, held := l.held[one]
	return held
}

// Settled removes a settled message and its room, and reports whether it was held.
func (l *Lent[T]) Settled(one T) bool { return l.end(one, true) }

// Doubted gives back the room of a message whose settlement failed: the broker may have settled it.
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

// All returns the held messages.
func (l *Lent[T]) All() []T {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]T, 0, len(l.held))
	for one := range l.held {
		all = append(all, one)
	}
	return all
}

// Clear removes and returns the held messages, at the end. Their room stays taken.
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
