package sqs

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver/inbox"
)

var errGroups = fmt.Errorf("groups: a queue has one, without a name: %w", errors.ErrUnsupported)

// consumer has several long polls under way. None is broken off but by a Close that may not wait: the service would give messages to nobody.
type consumer struct {
	conn   *conn
	topic  string
	url    string
	client *client
	in     *inbox.Inbox[*delivery]
	room   *inbox.Room
	ahead  *inbox.Room // for what has come and was not received: its visibility time-out runs
	groups *numbering  // of a FIFO queue

	requests               int
	wait, visibility, hold time.Duration // hold is for what is requeued

	work  context.Context // ends when Close gives up waiting for what is being fetched
	stop  context.CancelFunc
	loops sync.WaitGroup

	held *inbox.Lent[*delivery] // received and not settled

	mu       sync.Mutex
	settling map[*delivery]struct{} // of those that are held

	leaving atomic.Bool
	closing sync.Mutex
	closed  bool
}

// delivery is a message as it was delivered once.
type delivery struct {
	handle  *string
	message driver.Message
	sent    int64 // ms since the Unix epoch
}

// NewConsumer fails where the queue does not exist, and begins to receive.
func (c *conn) NewConsumer(ctx context.Context, config driver.ConsumerConfig) (driver.Consumer, error) {
	if config.Group != "" {
		return nil, errGroups
	}
	if config.Start != driver.StartEarliest {
		return nil, fmt.Errorf("start %v: %w", config.Start, errors.ErrUnsupported)
	}
	url, err := c.queue(ctx, config.Topic)
	if err != nil {
		return nil, err
	}
	o := config.Options
	requests := int(o.Int("inFlight"))
	r := &consumer{
		conn: c, topic: config.Topic, url: url, client: c.endpoint.client(2 * requests), room: inbox.NewRoom(config.Prefetch), ahead: inbox.NewRoom(requests * maxEntries),
		requests: requests, wait: o.Duration("waitTime"), visibility: o.Duration("visibilityTimeout"), hold: o.Duration("requeueDelay"), settling: map[*delivery]struct{}{},
	}
	if c.kind == fifo {
		r.groups = &numbering{known: map[string]int32{}}
	}
	r.held = inbox.NewLent[*delivery](r.room, r.visibility)
	r.in = inbox.New(r.hand)
	r.work, r.stop = context.WithCancel(context.Background())
	for range requests {
		r.loops.Go(func() { r.in.Poll(r.room, maxEntries, r.fetch) })
	}
	return r, nil
}

// hand gives out what has come, and notes it as held.
func (r *consumer) hand(b driver.Batch, came []*delivery) {
	r.ahead.Give(len(came))
	for i, d := range came {
		r.held.Add(d, d.message.Received)
		b[i], d.message = d.message, driver.Message{}
		b[i].Token = d
	}
}

// Receive takes what has come.
func (r *consumer) Receive(ctx context.Context, b driver.Batch) (int, error) {
	return r.in.Receive(ctx, b)
}

// place is when the service took a message.
func place(m *driver.Message) driver.Place {
	d, ok := m.Token.(*delivery)
	if !ok {
		return driver.Place{}
	}
	return driver.Place{Partition: m.Partition, Timestamp: d.sent * int64(time.Millisecond)}
}

// Close waits for the long polls under way, and gives back what is not settled.
func (r *consumer) Close(ctx context.Context) error {
	r.leaving.Store(true)
	r.in.Close()
	r.closing.Lock()
	defer r.closing.Unlock()
	if r.closed {
		return nil
	}
	r.closed = true
	stop := context.AfterFunc(ctx, r.stop)
	r.loops.Wait()
	stop()
	err := r.giveBack(ctx)
	r.stop()
	r.room.Close()
	r.client.hangUp()
	return err
}
