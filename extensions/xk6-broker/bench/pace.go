package bench

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/machine"
)

// PacedCost is the CPU time of this process, in µs, that it takes the client library to send one message at a time at a steady pace:
// what remains when the cost of the same loop without sending is taken off.
func (s *Session) PacedCost(perSecond int, duration time.Duration, m Sending) (float64, error) {
	producer, err := s.open().NewProducer(context.Background(), s.sending(m))
	if err != nil {
		return 0, err
	}
	count := int(duration.Seconds() * float64(perSecond))
	var confirmed atomic.Int64
	var failure atomic.Pointer[error]
	batch := driver.Batch{{Body: make([]byte, m.Size)}}
	empty := paced(perSecond, count, func() {})
	sending := paced(perSecond, count, func() {
		producer.Send(context.Background(), batch, func(_ int, err error) {
			if err != nil {
				failure.Store(&err)
			}
			confirmed.Add(1)
		})
	})
	if err := producer.Close(context.Background()); err != nil {
		return 0, err
	}
	if err := failure.Load(); err != nil {
		return 0, *err
	}
	if n := confirmed.Load(); n != int64(count) {
		return 0, fmt.Errorf("%d of %d messages have an outcome", n, count)
	}
	return float64((sending - empty).Nanoseconds()) / 1e3 / float64(count), nil
}

// paced calls do at a steady pace and gives the CPU time that all took.
func paced(perSecond, count int, do func()) time.Duration {
	before := machine.CPU()
	start := time.Now()
	for i := range count {
		time.Sleep(time.Until(start.Add(time.Duration(i) * time.Second / time.Duration(perSecond))))
		do()
	}
	return machine.CPU() - before
}
