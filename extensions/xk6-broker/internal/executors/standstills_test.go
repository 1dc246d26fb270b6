package executors

import (
	"testing"
	"time"
)

// Standstills that follow one another count together for as long as they were, and for no longer than the process takes to recover: short ones that come
// now and then for ever do not make the generator owe what the system took.
func TestStandstillsThatFollowOneAnother(t *testing.T) {
	ms := func(n int64) int64 { return n * int64(time.Millisecond) }
	for _, c := range []struct {
		name          string
		stops, length int64 // of the first standstills, 100 ms apart
		silent        int64 // how long the system was silent after them; there is a standstill of 10 ms each 100 ms
		least, most   int64 // the generator's part
	}{
		{"one", 1, 250, 3600, 0, 20},
		{"four", 4, 250, 3600, 0, 20},
		{"four, and the answer at once", 4, 250, 0, 1000, 1000},
		{"four, and the answer before it has recovered", 4, 250, 500, 1000, 1060},
		{"none but the short ones", 0, 0, 10000, 0, 20},
	} {
		b := &blame{}
		now := int64(time.Hour)
		began := now
		run := func(d int64) {
			for end := now + d; now < end; {
				now = min(end, now+ms(5))
				b.pulse(now)
			}
		}
		run(ms(100))
		for range c.stops {
			run(ms(100))
			now += ms(c.length)
			b.pulse(now)
		}
		for end := now + ms(c.silent); now < end; {
			run(ms(90))
			now += ms(10)
			b.pulse(now)
		}
		if got := b.delayed(began, now); got < ms(c.least) || got > ms(c.most)+ms(5*(c.stops+c.silent/100+1)) {
			t.Errorf("%s: an iteration of %v was delayed by %v, want %v to %v", c.name, time.Duration(now-began), time.Duration(got), time.Duration(ms(c.least)), time.Duration(ms(c.most)))
		}
	}
}
