package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver/inbox"
)

// queue stands for a client library that is asked for messages, and waits for the first of them until its context ends.
type queue chan string

func (q queue) get(ctx context.Context, most int) (all []string, err error) {
	for len(all) < most {
		select {
		case s := <-q:
			all = append(all, s)
			continue
		default:
			if len(all) > 0 {
				return all, nil
			}
		}
		select {
		case s := <-q:
			all = append(all, s)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return all, nil
}

// consumer is a driver's consumer over such a client.
type consumer struct {
	*inbox.Inbox[driver.Message] // which has Receive
	room                         *inbox.Room
	queue                        queue
	polling                      sync.WaitGroup
}

func newConsumer(q queue, config driver.ConsumerConfig) *consumer {
	c := &consumer{room: inbox.NewRoom(config.Prefetch), queue: q}
	c.Inbox = inbox.New(func(b driver.Batch, came []driver.Message) { copy(b, came) })
	c.polling.Go(func() { c.Poll(c.room, 10, c.fetch) })
	return c
}

// fetch asks the client. A client that says it got nothing without an error is simply asked again.
func (c *consumer) fetch(ctx context.Context, most int) (some []driver.Message, err error) {
	all, err := c.queue.get(ctx, most)
	now := driver.Now()
	for _, s := range all {
		some = append(some, driver.Message{Body: []byte(s), Received: now, Token: s})
	}
	return some, err
}

func (c *consumer) Settle(_ context.Context, b driver.Batch, o driver.Outcome) error {
	if o != driver.Ack {
		return errors.ErrUnsupported
	}
	c.room.Give(len(b)) // after the broker was told
	return nil
}

func (c *consumer) Close(context.Context) error {
	if !c.Inbox.Close() {
		return nil
	}
	c.polling.Wait()
	for _, m := range c.Waiting() { // nobody will receive these: they go back
		c.queue <- string(m.Body)
	}
	return nil
}

func Example() {
	q := make(queue, 100)
	for i := range 5 {
		q <- fmt.Sprint("message ", i)
	}
	ctx := context.Background()
	c := newConsumer(q, driver.ConsumerConfig{Prefetch: 2})
	b := make(driver.Batch, 2)
	for range 2 {
		n, err := c.Receive(ctx, b[:1])
		fmt.Println(string(b[0].Body), err)
		_ = c.Settle(ctx, b[:n], driver.Ack)
	}
	_ = c.Close(ctx)
	_, err := c.Receive(ctx, b)
	fmt.Println(err, len(q))
	// Output:
	// message 0 <nil>
	// message 1 <nil>
	// closed 3
}
