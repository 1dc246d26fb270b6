package engine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/memory"
)

func TestAccount_SendsWithoutAnswerAtInterrupt_Uncertain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Config{})
		c := b.consumer(driver.ConsumerConfig{Group: "workers"})
		s := b.sender(100)
		b.produce(s, 10)
		b.settle(c, b.receive(c, 10), 0, 10, driver.Ack)
		b.broker.Freeze()
		for range 5 {
			s.Send(t.Context(), driver.Batch{{Body: make([]byte, StampSize)}}, Timing{}, func([]Receipt) {})
		}
		b.run.Interrupt()
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		_ = b.run.Finish(ctx, Drain{Limit: time.Second})
		if a := b.only(); a.Uncertain != 5 || a.Lost != 0 || a.Undelivered != 0 || a.Received != 10 {
			t.Errorf("%+v", a)
		}
	})
}
