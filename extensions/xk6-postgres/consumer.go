package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver/inbox"
)

// maxFetch is how many messages one statement takes at most: more would keep those that come first waiting for the last.
const maxFetch = 1000

// consumer has two connections: one takes messages and waits for notifications, the other one settles.
type consumer struct {
	topic        topic
	me           string // names this consumer in the column receiver
	lease, delay time.Duration
	dead         topic // where rejected messages go; its name is empty where they go nowhere
	in           *inbox.Inbox[*delivery]
	room         *inbox.Room
	fetching     *line
	settling     *line

	work  context.Context // ends when Close gives up waiting for what is being fetched
	stop  context.CancelFunc
	loops sync.WaitGroup

	dry  bool      // the last fetch left nothing: wait for a notification
	look time.Time // when to look without one, as a lease may be over

	held *inbox.Lent[*delivery] // received and not settled

	leaving atomic.Bool
	closing sync.Mutex
	closed  bool
}

// delivery is one message as it was delivered once. The number of the attempt tells its deliveries apart.
type delivery struct {
	id      int64
	attempt int32
	message driver.Message
}

// NewConsumer connects, listens, and begins to take messages.
func (c *conn) NewConsumer(ctx context.Context, config driver.ConsumerConfig) (driver.Consumer, error) {
	if config.Group != "" {
		return nil, fmt.Errorf("groups: %w", errors.ErrUnsupported)
	}
	if config.Start != driver.StartEarliest {
		return nil, fmt.Errorf("start %v: %w", config.Start, errors.ErrUnsupported)
	}
	t, err := c.topic(config.Topic)
	if err != nil {
		return nil, err
	}
	r := &consumer{
		topic: t, me: c.name + " " + rand.Text(),
		lease: config.Options.Duration("lease"), delay: config.Options.Duration("requeueDelay"),
		room: inbox.NewRoom(config.Prefetch),
	}
	if name := config.Options.String("deadLetter"); name != "" {
		if r.dead, err = c.topic(name); err != nil {
			return nil, err
		}
	}
	r.held = inbox.NewLent[*delivery](r.room, r.lease)
	r.in = inbox.New(r.hand)
	r.work, r.stop = context.WithCancel(context.Background())
	commit := config.Options.String("synchronousCommit")
	r.fetching = c.newLine(r.prepareFetch)
	r.settling = c.newLine(func(ctx context.Context, s *session) error { return r.prepareSettle(ctx, s, commit) })
	for _, l := range []*line{r.fetching, r.settling} {
		if err := l.do(ctx, func(context.Context, *session) error { return nil }); err != nil {
			_ = r.fetching.close(ctx)
			_ = r.settling.close(ctx)
			return nil, err
		}
	}
	r.loops.Go(func() { r.in.Poll(r.room, maxFetch, r.fetch) })
	return r, nil
}

// hand gives out what has come, and notes it as held.
func (r *consumer) hand(b driver.Batch, came []*delivery) {
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

// Close gives back what is not settled.
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
	r.loops.Wait() // what is being fetched would else be nobody's for a lease
	stop()
	err := r.giveBack(ctx)
	r.stop()
	r.room.Close()
	return errors.Join(err, r.fetching.close(ctx), r.settling.close(ctx))
}
