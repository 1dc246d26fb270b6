package account

import (
	"cmp"
	"slices"
	"sort"
	"sync"
	"sync/atomic"
)

// Mark is how many numbers a producer had handed out right before a time, in ns since the Unix
// epoch.
type Mark struct {
	At   int64  `json:"at"`
	Next uint64 `json:"next"`
}

// Course is when a producer had handed out how many numbers. What it handed out between two marks
// was within Width of the first of them, in ns.
type Course struct {
	Width int64  `json:"width,omitempty"`
	Marks []Mark `json:"marks"` // ascending
}

// HandedOut is how many numbers a producer had handed out right before a time: at least, and at
// most. next is how many there were in the end.
func (c Course) HandedOut(at int64, next uint64) (least, most uint64) {
	i := sort.Search(len(c.Marks), func(i int) bool { return c.Marks[i].At >= at })
	if i < len(c.Marks) {
		next = c.Marks[i].Next
	}
	switch {
	case i < len(c.Marks) && c.Marks[i].At == at:
		most = next
		for ; i < len(c.Marks) && c.Marks[i].At == at; i++ { // several may have one time
			most = c.Marks[i].Next
		}
		return next, most
	case i == 0:
		return 0, next
	case at > c.Marks[i-1].At+c.Width:
		return next, next
	}
	return min(c.Marks[i-1].Next, next), next
}

// Recorder records a producer's course: each send while they are few, and then marks that are
// further and further apart, up to a second.
type Recorder struct {
	last  atomic.Int64 // when the last number was handed out
	until atomic.Int64 // sends up to then the last mark covers

	mu    sync.Mutex
	width int64  // what a mark covers, in ns
	marks []Mark // ascending
	noted []Mark // never dropped, ascending
}

const (
	mostMarks = 2048
	narrowest = 1_000_000 // ns
	widening  = 4         // times
	widest    = 1024 * narrowest
)

// Sent records that numbers from first on are handed out. One goroutine at a time may call it.
func (r *Recorder) Sent(at int64, first uint64) {
	r.last.Store(at)
	if at <= r.until.Load() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.marks = append(r.marks, Mark{At: at, Next: first})
	for len(r.marks) >= mostMarks && r.width < widest {
		r.widen()
	}
	r.until.Store(r.marks[len(r.marks)-1].At + r.width)
}

// widen drops the marks that those before them cover.
func (r *Recorder) widen() {
	width := max(narrowest, widening*r.width)
	kept := r.marks[:1]
	for _, m := range r.marks[1:] {
		if m.At+r.width > kept[len(kept)-1].At+width {
			kept = append(kept, m)
		}
	}
	r.marks, r.width = kept, width
}

// Note keeps how many numbers had been handed out at a time.
func (r *Recorder) Note(at int64, next uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.noted = append(r.noted, Mark{At: at, Next: next})
}

// Course is the course so far of a producer that has handed out next numbers.
func (r *Recorder) Course(next uint64) Course {
	last := r.last.Load()
	r.mu.Lock()
	defer r.mu.Unlock()
	marks := slices.DeleteFunc(slices.Concat(r.marks, r.noted), func(m Mark) bool { return m.Next > next }) // it goes on, perhaps
	if last != 0 {
		marks = append(marks, Mark{At: last + 1, Next: next})
	}
	slices.SortStableFunc(marks, func(a, b Mark) int { return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Next, b.Next)) })
	return Course{Width: r.width, Marks: marks}
}
