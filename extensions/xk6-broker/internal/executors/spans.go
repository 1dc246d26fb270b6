package executors

import "slices"

// spans are times that a script waited for answers, which may overlap: in their order, those that overlap as one.
type spans []Span

// maxSpans is how many are told apart. Of more, the oldest are one.
const maxSpans = 1024

// add adds one. Mostly it is the last.
func (all *spans) add(from, to int64) {
	if to <= from {
		return
	}
	s := *all
	end := len(s)
	for end > 0 && s[end-1].From > to {
		end--
	}
	begin := end
	for begin > 0 && s[begin-1].To >= from {
		begin--
		from, to = min(from, s[begin].From), max(to, s[begin].To)
	}
	s = slices.Replace(s, begin, end, Span{from, to})
	if len(s) > maxSpans {
		s[1].From = s[0].From
		s = slices.Delete(s, 0, 1)
	}
	*all = s
}

// length is how long they are together, in ns.
func (all spans) length() (ns int64) {
	for _, s := range all {
		ns += s.To - s.From
	}
	return ns
}
