package account

import (
	"cmp"
	"slices"
	"sort"
	"sync"
	"sync/atomic"
)

// Mark is how many numbers a producer had handed out right before an instant, in ns since the Unix
// epoch.
type Mark struct {
	At   int64  `json:"at"`
	Next uint64 `json:"next"`
}

// Course is the progress of a producer over time, in ascending order.
type Course []Mark

// handedOut returns the least and the most numbers that a producer may have handed out right before
// an instant. next is its final count.
func (c Course) handedOut(at int64, next uint64) (least, most uint64) {
	i := sort.Search(len(c), func(i int) bool { return c[i].At >= at })
	if i > 0 {
		least = c[i-1].Next
	}
	if i == len(c) {
		return least, next
	}
	if c[i].At == at {
		least = c[i].Next
	}
	for ; i < len(c)-1 && c[i+1].At == at; i++ { // several marks of one instant
	}
	return least, c[i].Next
}

// recorder records a course: the beginning and the end of each burst of sends. If there are many,
// every second mark goes, and sends that are further apart count as one burst.
type recorder struct {
	last  atomic.Int64 // the last send
	until atomic.Int64 // sends before it need no mark

	mu    sync.Mutex
	width int64 // ns that one mark covers
	marks Course
}

const (
	mostMarks = 2048
	narrowest = 1_000_000 // ns
)

// sent records that numbers from first on are handed out. One goroutine at a time may call it.
func (r *recorder) sent(at int64, first uint64) {
	last := r.last.Swap(at)
	if at <= r.until.Load() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if last != 0 && last+1 < at {
		r.marks = append(r.marks, Mark{last + 1, first})
	}
	r.marks = append(r.marks, Mark{at, first})
	if len(r.marks) >= mostMarks {
		r.width = max(narrowest, 2*r.width)
		for i := range len(r.marks) / 2 {
			r.marks[i] = r.marks[2*i]
		}
		r.marks = r.marks[:len(r.marks)/2]
	}
	r.until.Store(at + r.width)
}

// note records how many numbers had been handed out at an instant.
func (r *recorder) note(at int64, next uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.marks = append(r.marks, Mark{at, next})
}

// course returns the course of a producer that has handed out next numbers.
func (r *recorder) course(next uint64) Course {
	last := r.last.Load()
	r.mu.Lock()
	defer r.mu.Unlock()
	all := slices.Clone(r.marks)
	if last != 0 {
		all = append(all, Mark{last + 1, next})
	}
	all = slices.DeleteFunc(all, func(m Mark) bool { return m.Next > next }) // sends may go on
	slices.SortFunc(all, func(a, b Mark) int { return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Next, b.Next)) })
	return all
}
