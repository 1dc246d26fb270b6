package drivertest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// store stands for the consumer of a driver that has none: it finds what was sent where the server keeps it.
type store struct {
	k     *kit
	t     testing.TB
	topic string
	given map[string]int // how many of a body were received
}

func (k *kit) store(t testing.TB, topic string) *receiver {
	t.Helper()
	return &receiver{Consumer: &store{k: k, t: t, topic: topic, given: map[string]int{}}, k: k, seen: map[string]bool{}}
}

// glance is how long the store is left alone between two looks at it.
const glance = 5 * time.Millisecond

func (s *store) Receive(ctx context.Context, b driver.Batch) (int, error) {
	for {
		if n := s.look(b); n > 0 {
			return n, nil
		}
		select {
		case <-time.After(glance):
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// look fills b with what has come since the last look.
func (s *store) look(b driver.Batch) (n int) {
	s.t.Helper()
	now, there := driver.Now(), map[string]int{}
	for _, m := range s.k.Stored(s.t, s.topic) {
		if s.k.numbers != nil {
			m.Body = s.k.numbers.body(s.t, m.Body)
		}
		body := string(m.Body)
		if there[body]++; n < len(b) && there[body] > s.given[body] {
			s.given[body]++
			b[n] = m
			b[n].Topic, b[n].Received = s.topic, now
			n++
		}
	}
	return n
}

func (*store) Settle(context.Context, driver.Batch, driver.Outcome) error {
	return errors.ErrUnsupported
}

func (*store) Close(context.Context) error { return nil }
