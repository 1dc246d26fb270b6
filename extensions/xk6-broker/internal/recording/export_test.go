package recording

// Bounded returns an empty recording of fewer intervals than usual.
func Bounded(most int) *Recording { return &Recording{most: most, width: 1} }

// RewriteNext makes the next Append write the file anew.
func (f *File) RewriteNext() { f.most = -1 }

// Bytes returns the size of the intervals in memory.
func (r *Recording) Bytes() (n int) {
	for _, i := range r.intervals {
		n += i.size()
	}
	return n
}
