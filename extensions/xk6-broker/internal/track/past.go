package track

// past is what became of a producer's messages with those subscribers whose place in a group another has taken over. What they were there
// for are different messages, for each came when the one before had left.
type past struct {
	received, settled     bitmap // of what each was there for
	strays, settledStrays uint64 // how many more: received by one who was not there yet when they were numbered
	spans                 int    // how many of the delivery's spans are theirs
}

// own is what the present subscriber is there for. The lock is held.
func (d *delivery) own() []Bounds {
	if d.past == nil {
		return d.spans
	}
	return d.spans[d.past.spans:]
}

// succeed gives the delivery of one who takes over. It shares with d what is past, so that d is not to be used any more.
func (d *delivery) succeed() *delivery {
	d.mu.Lock()
	defer d.mu.Unlock()
	next := &delivery{producer: d.producer, foreign: d.foreign, past: d.past, spans: d.spans}
	own := d.own()
	if d.foreign {
		own = Everything()
	}
	if next.past == nil {
		next.past = &past{}
	}
	next.past.strays += next.past.received.addAll(&d.received, own)
	next.past.settledStrays += next.past.settled.addAll(&d.settled, own)
	next.past.spans = len(d.spans)
	next.drained.addAll(&d.drained, Everything())
	next.removed.addAll(&d.removed, Everything())
	return next
}

func (p *past) page(i uint64) *page {
	if p == nil {
		return empty
	}
	return p.received.page(i)
}

func (p *past) len() int {
	if p == nil {
		return 0
	}
	return p.received.len()
}

func (p *past) memory() int64 {
	if p == nil {
		return 0
	}
	return p.received.memory() + p.settled.memory()
}
