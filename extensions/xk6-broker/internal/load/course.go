package load

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// course is when a producer had handed out how many of its numbers: of each send, as long as there are not many, and then of marks that are further and
// further apart, up to a second. So it takes little room, and of a short test everything is known.
type course struct {
	last  atomic.Int64 // when the last number was handed out
	until atomic.Int64 // what is sent by then the last mark tells of

	mu    sync.Mutex
	width int64         // what a mark tells of, in ns
	marks []result.Mark // ascending
	noted []result.Mark // those that are never left out, ascending
}

const (
	mostMarks = 2048
	narrowest = int64(time.Millisecond)
	widening  = 4 // times
	widest    = 1024 * int64(time.Millisecond)
)

// sent notes that numbers from first on are handed out. One goroutine at a time may call it. It may be nil.
func (c *course) sent(at int64, first uint64) {
	if c == nil {
		return
	}
	c.last.Store(at)
	if at <= c.until.Load() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.marks = append(c.marks, result.Mark{At: at, Next: first})
	for len(c.marks) >= mostMarks && c.width < widest {
		c.widen()
	}
	c.until.Store(c.marks[len(c.marks)-1].At + c.width)
}

// widen leaves marks out, as far as those before them tell of what they told.
func (c *course) widen() {
	width := max(narrowest, widening*c.width)
	kept := c.marks[:1]
	for _, m := range c.marks[1:] {
		if m.At+c.width > kept[len(kept)-1].At+width {
			kept = append(kept, m)
		}
	}
	c.marks, c.width = kept, width
}

// note keeps how many numbers had been handed out at a time, for good.
func (c *course) note(at int64, next uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.noted = append(c.noted, result.Mark{At: at, Next: next})
}

// told is what a ledger says of it, which says that next numbers were handed out.
func (c *course) told(next uint64) result.Course {
	last := c.last.Load()
	c.mu.Lock()
	defer c.mu.Unlock()
	marks := slices.DeleteFunc(slices.Concat(c.marks, c.noted), func(m result.Mark) bool { return m.Next > next }) // it goes on, perhaps
	if last != 0 {
		marks = append(marks, result.Mark{At: last + 1, Next: next})
	}
	slices.SortStableFunc(marks, func(a, b result.Mark) int { return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Next, b.Next)) })
	return result.Course{Width: c.width, Marks: marks}
}
