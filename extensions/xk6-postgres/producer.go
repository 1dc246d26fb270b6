package postgres

import (
	"context"
	"sync"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver/outbox"
)

const (
	// maxBody is what a value may have, 1 GiB, less what the server needs of that beside it.
	maxBody = 1<<30 - 1<<12
	// maxBytes is of how many bytes of bodies a transaction has no second message.
	maxBytes = 16 << 20
)

// producer inserts over a connection of its own, one transaction after the other, which keeps the order. What comes meanwhile goes with the next.
type producer struct {
	conn  *conn
	topic topic
	line  *line
	most  int

	life context.Context // ends when Close gives up waiting
	stop context.CancelCauseFunc
	over chan struct{} // closed when nothing will be inserted any more
	out  *outbox.Outbox[outgoing]

	proving sync.Mutex
	proven  proof
}

// outgoing is a message that is not done.
type outgoing struct {
	message *driver.Message
	headers *string
	done    driver.Done
	i       int
}

// NewProducer connects, and fails where the topic does not exist.
func (c *conn) NewProducer(ctx context.Context, config driver.ProducerConfig) (driver.Producer, error) {
	t, err := c.topic(config.Topic)
	if err != nil {
		return nil, err
	}
	p := &producer{
		conn: c, topic: t, most: int(config.Options.Int("transaction")),
		over: make(chan struct{}), out: outbox.New(func(o outgoing) int { return len(o.message.Body) }),
		proven: proof{commit: config.Options.String("synchronousCommit")},
	}
	p.life, p.stop = context.WithCancelCause(context.Background())
	first := true
	p.line = c.newLine(func(ctx context.Context, s *session) error {
		err := p.prepare(ctx, s, first)
		first = first && err != nil
		return err
	})
	if err := p.line.do(ctx, func(context.Context, *session) error { return nil }); err != nil {
		_ = p.line.close(ctx)
		return nil, err
	}
	go p.run()
	return p, nil
}

// Send hands the batch to the goroutine that inserts.
func (p *producer) Send(_ context.Context, b driver.Batch, done driver.Done) {
	add := make([]outgoing, 0, len(b))
	for i := range b {
		headers, err := encodeHeaders(b[i].Headers)
		if len(b[i].Body) > maxBody {
			err = errLarge
		}
		if err != nil {
			done(i, err)
			continue
		}
		add = append(add, outgoing{&b[i], headers, done, i})
	}
	if !p.out.Put(len(add), func(i int) outgoing { return add[i] }) {
		for _, o := range add {
			done(o.i, driver.ErrClosed)
		}
	}
}

// run inserts until Close, and what came before it.
func (p *producer) run() {
	defer close(p.over)
	in := &inserting{topic: p.topic}
	var all []outgoing
	for {
		if all = p.out.Next(all, p.most, maxBytes); len(all) == 0 {
			return
		}
		told := false // that they are confirmed
		err := p.line.do(p.life, func(ctx context.Context, s *session) error {
			return in.insert(ctx, s, all, func() {
				told = true
				tell(all, nil)
			})
		})
		if told {
			continue // what came after that, the notification, is nobody's but ours
		}
		if cause := context.Cause(p.life); cause != nil {
			err = cause
		}
		tell(all, err)
	}
}

// tell says what became of messages.
func tell(all []outgoing, err error) {
	for _, o := range all {
		o.done(o.i, err)
	}
}

// Close waits for what was sent. What remains when ctx ends fails with its error.
func (p *producer) Close(ctx context.Context) error {
	p.out.Close()
	select {
	case <-p.over:
	case <-ctx.Done():
		p.stop(ctx.Err())
		<-p.over
	}
	p.stop(driver.ErrClosed)
	return p.line.close(ctx)
}
