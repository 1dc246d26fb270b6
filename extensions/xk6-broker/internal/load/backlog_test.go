package load

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/memory"
)

// keeping is a connection that keeps what is settled on it until it is asked, as a client that commits now and then.
type keeping struct {
	driver.Conn

	settled int64  // and kept
	broker  *int64 // what the broker has not been told of
	asked   int
	err     error
}

func (k *keeping) Backlog(context.Context, string, string) (driver.Backlog, error) {
	k.asked++
	*k.broker -= k.settled
	k.settled = 0
	return driver.Backlog{Messages: *k.broker}, k.err
}

// What each connection keeps is told by the time when the last one is asked.
func TestTheLastAnswerCounts(t *testing.T) {
	broken := errors.New("broken")
	for _, c := range []struct {
		whole bool
		err   error
		left  int64
		asked int
	}{
		{false, nil, 100, 4},
		{true, nil, 1000 - 225, 1}, // one speaks for all
		{false, broken, 0, 0},      // of one is one of all
	} {
		synctest.Test(t, func(t *testing.T) {
			f := memory.Full()
			f.BacklogWhole = c.whole
			b := newBench(t, memory.Config{Features: f})
			plain, broker := b.conn, int64(1000)
			conns := make([]*keeping, 4)
			for i := range conns {
				conns[i] = &keeping{Conn: plain, broker: &broker}
				b.conn = conns[i]
				b.consumer(driver.ConsumerConfig{Group: "workers"})
			}
			for _, k := range conns {
				k.settled, k.asked = 225, 0
			}
			conns[1].err = c.err
			broker = 1000
			left, err := b.run.Backlog(t.Context(), b.topic, "workers", plain)
			if !errors.Is(err, c.err) || err == nil && left != c.left {
				t.Errorf("%d, %v; want %d, %v", left, err, c.left, c.err)
			}
			asked := 0
			for _, k := range conns {
				asked += k.asked
			}
			if c.err == nil && asked != c.asked {
				t.Errorf("asked %d times, want %d", asked, c.asked)
			}
		})
	}
}
