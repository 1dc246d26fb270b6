package load

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/memory"
)

// spending is a broker that keeps less for groups that come later than all.
type spending struct {
	driver.Conn
	driver.Backlogger

	keeps driver.Keeping
}

func (s spending) NewConsumer(ctx context.Context, c driver.ConsumerConfig) (driver.Consumer, error) {
	consumer, err := s.Conn.NewConsumer(ctx, c)
	return spender{consumer, s.keeps}, err
}

type spender struct {
	driver.Consumer

	keeps driver.Keeping
}

func (s spender) Keeps() driver.Keeping { return s.keeps }

// A group that begins with the earliest is owed what the topic keeps for it: where that is what no other has settled, or what was wanted when it was sent,
// nothing of what was sent before it came.
func TestAGroupIsOwedWhatTheTopicKeepsForIt(t *testing.T) {
	for _, c := range []struct {
		keeps       driver.Keeping
		first, next uint64 // so many are expected of the 10 that were sent before the first group came, and the 10 before the next did
	}{
		{driver.KeepsAll, 10, 20},
		{driver.KeepsUnsettled, 10, 0},
		{driver.KeepsWanted, 0, 0},
	} {
		t.Run(fmt.Sprint(c.keeps), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, memory.Config{})
				b.conn = spending{b.conn, b.conn.(driver.Backlogger), c.keeps}
				s := b.sender(1000)
				b.produce(s, 10)
				for i, before := range []uint64{c.first, c.next} {
					b.consumer(driver.ConsumerConfig{Group: fmt.Sprint(i), Start: driver.StartEarliest})
					b.produce(s, 10)
					accounts := b.topic.accounts()
					if a := accounts[len(accounts)-1]; a.Expected != before+10 {
						t.Errorf("group %d expects %d", i, a.Expected)
					}
				}
				b.finish()
			})
		})
	}
}
