package postgres

import (
	"cmp"
	"context"
	"sync"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver/outbox"
)

const (
	// maxBody is the largest value, 1 GiB, without the server's overhead.
	maxBody = 1<<30 - 1<<12
	// maxBytes is the size of bodies at which a transaction gets no further message.
	maxBytes = 16 << 20
)

// producer inserts over a connection of its own, one transaction at a time, which keeps the order.
// Messages sent meanwhile go with the next one.
type producer struct {
	conn  *conn
	topic topic
	line  *line
	out   *outbox.Workers[outgoing]

	proving sync.Mutex
	proven  proof
}

// outgoing is a message with its encoded headers.
type outgoing struct {
	*driver.Message
	headers *string
}

// NewProducer connects, and fails if the topic does not exist.
func (c *conn) NewProducer(ctx context.Context, config driver.ProducerConfig) (driver.Producer, error) {
	t, err := c.topic(config.Topic)
	if err != nil {
		return nil, err
	}
	p := &producer{conn: c, topic: t, proven: proof{commit: config.Options.String("synchronousCommit")}}
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
	in := &inserting{topic: p.topic}
	most := int(config.Options.Int("transaction"))
	size := func(o outgoing) int { return len(o.Body) }
	p.out = outbox.Start(
		1, most, maxBytes, size, func(ctx context.Context, all []outbox.Item[outgoing]) { p.insert(ctx, in, all) },
	)
	return p, nil
}

// Send queues the batch.
func (p *producer) Send(_ context.Context, b driver.Batch, done driver.Done) {
	p.out.Send(b, done, func(m *driver.Message) (outgoing, error) {
		if len(m.Body) > maxBody {
			return outgoing{}, errLarge
		}
		headers, err := encodeHeaders(m.Headers)
		return outgoing{m, headers}, err
	})
}

// insert inserts messages with one transaction.
func (p *producer) insert(ctx context.Context, in *inserting, all []outbox.Item[outgoing]) {
	confirmed := false
	err := p.line.do(ctx, func(ctx context.Context, s *session) error {
		return in.insert(ctx, s, all, func() {
			confirmed = true
			report(all, nil)
		})
	})
	if !confirmed { // else the error is of the notification
		if err != nil {
			err = cmp.Or(context.Cause(ctx), err)
		}
		report(all, err)
	}
}

func report(all []outbox.Item[outgoing], err error) {
	for _, item := range all {
		item.Done(err)
	}
}

// Close waits for the messages sent. The rest fails with ctx's error when ctx ends.
func (p *producer) Close(ctx context.Context) error {
	p.out.Close(ctx)
	return p.line.close(ctx)
}
