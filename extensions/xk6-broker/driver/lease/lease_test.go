package lease_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver/lease"
)

type delivery = lease.Delivery[int]

var errSettled = errors.New("settled already")

// queue is a broker that has messages 0, 1, 2, ... for ever.
type queue struct{ next int }

func (q *queue) fetch(_ context.Context, most int) ([]*delivery, error) {
	all := make([]*delivery, most)
	for i := range all {
		all[i] = &delivery{Handle: q.next, Message: driver.Message{Received: driver.Now()}}
		q.next++
	}
	return all, nil
}

func fates(err error) func(all []*delivery) []error {
	return func(all []*delivery) []error { return slices.Repeat([]error{err}, len(all)) }
}

// A message takes room until it is settled, its settlement fails or its lease expires, and once.
func TestConsumer_Prefetch_CountsLeasedMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &queue{}
		c := lease.New[int](lease.Config{Prefetch: 4, Time: time.Minute, Settled: errSettled})
		c.Poll(4, q.fetch)
		fetched := func(when string, want int) {
			t.Helper()
			synctest.Wait()
			if q.next != want {
				t.Errorf("%s: %d fetched, want %d", when, q.next, want)
			}
		}
		b := make(driver.Batch, 4)
		if n, err := c.Receive(t.Context(), b); n != 4 || err != nil {
			t.Fatal(n, err)
		}
		fetched("all held", 4)
		if err := c.Settle(b[:1], fates(nil)); err != nil {
			t.Error(err)
		}
		fetched("one settled", 5)
		if err := c.Settle(b[:1], fates(nil)); !errors.Is(err, errSettled) {
			t.Errorf("settled twice: %v", err)
		}
		if err := c.Settle(b[1:2], fates(errors.New("no answer"))); err == nil {
			t.Error("no error")
		}
		fetched("one failed", 6)
		time.Sleep(70 * time.Second)
		fetched("two expired", 8)
		if err := c.Settle(b[1:3], fates(nil)); err != nil {
			t.Errorf("settled late: %v", err)
		}
		fetched("two settled late", 8)
		var held, unseen []int
		err := c.Close(t.Context(), func(h, u []*delivery) error {
			for _, d := range h {
				held = append(held, d.Handle)
			}
			for _, d := range u {
				unseen = append(unseen, d.Handle)
			}
			return nil
		})
		if err != nil || !slices.Equal(held, []int{3}) || !slices.Equal(unseen, []int{4, 5, 6, 7}) {
			t.Errorf("gave back %v and %v, %v", held, unseen, err)
		}
		if _, err := c.Receive(t.Context(), b); !errors.Is(err, driver.ErrClosed) {
			t.Error(err)
		}
	})
}

func TestCount_SomeSettled_RestHasError(t *testing.T) {
	var part *driver.PartError
	if err := driver.JoinSettled(lease.Count(3, 2, nil, errSettled)...); !errors.As(err, &part) || part.Settled != 2 {
		t.Error(err)
	}
}
