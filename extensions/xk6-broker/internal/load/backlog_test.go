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

// guessing is a connection that can only guess what there is.
type guessing struct{ driver.Conn }

func (g guessing) Backlog(ctx context.Context, topic, group string) (driver.Backlog, error) {
	b, err := g.Conn.(driver.Backlogger).Backlog(ctx, topic, group)
	b.Estimate = true
	return b, err
}

// Of what is missing by an estimate nothing is known: it may be lost, or still there.
func TestByAnEstimateNothingIsLost(t *testing.T) {
	for _, estimate := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, memory.Config{})
			if estimate {
				b.conn = guessing{b.conn}
			}
			c := b.consumer(driver.ConsumerConfig{Group: "workers", Prefetch: 10})
			b.produce(b.sender(100), 100)
			b.settle(c, b.receive(c, 10), 0, 10, driver.Ack)
			b.steal(5)
			b.close(c)
			b.run.noteBacklogs(t.Context(), b.run.Topics())
			a := b.run.Topics()[0].accounts()[0]
			if !estimate && (a.Lost != 5 || a.Uncertain != 0) || estimate && (a.Lost != 0 || a.Undelivered != 0 || a.Uncertain != 90) {
				t.Errorf("an estimate: %v: %+v", estimate, a)
			}
			b.finish()
		})
	}
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
