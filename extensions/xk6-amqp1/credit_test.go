package amqp1

import (
	"slices"
	"testing"
)

// Credit is given for the whole prefetch at first, then for a quarter of it at a time, and for less only where nothing could come and nothing waits.
func TestCredit(t *testing.T) {
	var given []uint32
	c := newCredit(8, func(n uint32) error { given = append(given, n); return nil })
	check := func(when string, want ...uint32) {
		t.Helper()
		if !slices.Equal(given, want) {
			t.Fatalf("%s: gave %v, want %v", when, given, want)
		}
		given = nil
	}
	c.settled(0)
	check("at the start", 8)
	c.arrived(4)
	c.received(4)
	c.settled(1)
	check("one of four settled, and four to come")
	c.settled(1)
	check("a quarter of the prefetch", 2)
	c.arrived(6)
	c.settled(1)
	check("nothing to come, but six wait")
	c.received(6)
	check("nothing to come and none waits", 1)
	c.arrived(1)
	c.received(1)
	c.settled(1)
	check("nothing to come and none waits", 1)

	one := newCredit(1, func(n uint32) error { given = append(given, n); return nil })
	one.settled(0)
	one.arrived(1)
	one.received(1)
	check("a prefetch of one", 1)
	one.settled(1)
	check("a prefetch of one, settled", 1)
}
