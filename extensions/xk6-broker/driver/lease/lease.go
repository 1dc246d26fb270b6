// Package lease is the consumer of a broker that leases messages for a time: a message that is not
// settled in that time is delivered again. The driver fetches, settles and gives back.
package lease

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver/inbox"
)

// Config describes a consumer.
type Config struct {
	Prefetch int
	// Ahead is the most messages that wait to be received; 0 is Prefetch.
	Ahead int
	// Time is the time of a lease. A message whose lease has expired takes no room of Prefetch, but
	// it may still be settled or given back.
	Time time.Duration
	// Settled is the error for a message that was settled already.
	Settled error
}

// Delivery is one delivery of a message, with the driver's handle to settle it. It is the message's
// token.
type Delivery[H any] struct {
	Handle  H
	Message driver.Message // empty once it is received

	until  int64 // by [driver.Now]
	counts bool  // takes room
}

// Consumer has messages that wait to be received, and the received messages until they are settled.
type Consumer[H any] struct {
	*inbox.Inbox[*Delivery[H]]
	config Config
	room   *inbox.Room
	ahead  *inbox.Room

	open     context.Context // ends with Close
	leave    context.CancelFunc
	fetching context.Context // ends when Close no longer waits for fetches
	stop     context.CancelFunc
	loops    sync.WaitGroup

	mu      sync.Mutex
	held    map[*Delivery[H]]struct{} // without those whose settlement is with the broker
	closing sync.Once
}

// New returns a consumer that fetches nothing yet.
func New[H any](config Config) *Consumer[H] {
	c := &Consumer[H]{config: config, room: inbox.NewRoom(config.Prefetch), held: map[*Delivery[H]]struct{}{}}
	c.ahead = inbox.NewRoom(cmp.Or(config.Ahead, config.Prefetch))
	c.Inbox = inbox.New(c.hand)
	c.open, c.leave = context.WithCancel(context.Background())
	c.fetching, c.stop = context.WithCancel(context.Background())
	c.Go(c.expire)
	return c
}

// Go runs a function until Close, which ends its context and waits for it.
func (c *Consumer[H]) Go(do func(open context.Context)) {
	c.loops.Go(func() { do(c.open) })
}

// Poll calls fetch for at most so many messages whenever there is room, until Close. open ends with
// Close, and stops waiting for messages; [Consumer.Fetching] is for the request that leases them.
func (c *Consumer[H]) Poll(most int, fetch func(open context.Context, most int) ([]*Delivery[H], error)) {
	c.loops.Go(func() {
		c.Inbox.Poll(c.room, most, func(open context.Context, most int) ([]*Delivery[H], error) {
			most, err := c.ahead.Reserve(open, most, most)
			if err != nil {
				return nil, err
			}
			all, err := fetch(open, most)
			c.ahead.Give(most - len(all))
			return all, err
		})
	})
}

// Fetching returns a context that ends when Close no longer waits for fetches. Messages of a fetch
// that is given up are not available to any consumer for the time of a lease.
func (c *Consumer[H]) Fetching() context.Context { return c.fetching }

// hand fills a batch and holds its messages.
func (c *Consumer[H]) hand(b driver.Batch, arrived []*Delivery[H]) {
	c.ahead.Give(len(arrived))
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, d := range arrived {
		b[i], d.Message = d.Message, driver.Message{}
		b[i].Token = d
		d.until, d.counts = b[i].Received+int64(c.config.Time), true
		c.held[d] = struct{}{}
	}
}

// expire gives back the room of messages whose lease has expired.
func (c *Consumer[H]) expire(open context.Context) {
	const looks = 16 // in the time of a lease
	tick := time.NewTicker(max(c.config.Time/looks, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-open.Done():
			return
		}
		now := driver.Now()
		c.mu.Lock()
		for d := range c.held {
			if d.until <= now {
				c.free(d)
			}
		}
		c.mu.Unlock()
	}
}

func (c *Consumer[H]) free(d *Delivery[H]) {
	if d.counts {
		d.counts = false
		c.room.Give(1)
	}
}

// Settle calls end for the messages of a batch that are not settled yet. end returns the error of
// each. A message whose settlement failed takes no room; it may be settled again or given back.
func (c *Consumer[H]) Settle(b driver.Batch, end func(all []*Delivery[H]) []error) error {
	if c.open.Err() != nil {
		return driver.ErrClosed
	}
	all := c.claim(b)
	errs := end(all)
	c.mu.Lock()
	for i, d := range all {
		c.free(d)
		if errs[i] != nil {
			c.held[d] = struct{}{}
		}
	}
	c.mu.Unlock()
	for range len(b) - len(all) {
		errs = append(errs, c.config.Settled)
	}
	return driver.JoinSettled(errs...)
}

// claim takes the messages of a batch that are not settled.
func (c *Consumer[H]) claim(b driver.Batch) []*Delivery[H] {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]*Delivery[H], 0, len(b))
	for i := range b {
		d, _ := b[i].Token.(*Delivery[H])
		if _, held := c.held[d]; held {
			delete(c.held, d)
			all = append(all, d)
		}
	}
	return all
}

// Count returns the errors of n messages for [Consumer.Settle], if the broker only returns how many
// of them it settled.
func Count(n int, settled int64, err, rest error) []error {
	errs := make([]error, n)
	for i := range errs {
		errs[i] = err
		if err == nil && int64(i) >= settled {
			errs[i] = rest
		}
	}
	return errs
}

// Close waits for the fetches under way until ctx ends, and calls giveBack once with the messages
// that were received and not settled, and with those that were never received.
func (c *Consumer[H]) Close(ctx context.Context, giveBack func(held, unseen []*Delivery[H]) error) (err error) {
	c.leave()
	c.Inbox.Close()
	c.closing.Do(func() {
		defer context.AfterFunc(ctx, c.stop)()
		c.loops.Wait()
		unseen := c.Waiting()
		c.Clear()
		c.mu.Lock()
		held := slices.Collect(maps.Keys(c.held))
		c.mu.Unlock()
		err = giveBack(held, unseen)
		c.stop()
	})
	return err
}
