package sqs

import (
	"context"
	"hash/maphash"
	"strconv"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver/outbox"
)

// outgoing is a message that is not done.
type outgoing struct {
	entry types.SendMessageBatchRequestEntry
	size  int // bytes, of the body and the attributes
	done  driver.Done
	i     int
}

// producer sends by as many goroutines as it may have requests under way, each of which takes up to ten of the messages that wait. Of a standard queue all
// take from one outbox; of a FIFO queue each has its own, to which a message group keeps, as two requests under way may overtake each other.
type producer struct {
	conn   *conn
	url    string
	client *client
	config driver.ProducerConfig
	marks  *marks // of a FIFO queue
	outs   []*outbox.Outbox[outgoing]
	seed   maphash.Seed

	life    context.Context // ends when Close gives up waiting
	stop    context.CancelCauseFunc
	sending sync.WaitGroup
}

// NewProducer fails where the queue does not exist.
func (c *conn) NewProducer(ctx context.Context, config driver.ProducerConfig) (driver.Producer, error) {
	url, err := c.queue(ctx, config.Topic)
	if err != nil {
		return nil, err
	}
	requests := int(config.Options.Int("inFlight"))
	p := &producer{conn: c, url: url, client: c.endpoint.client(requests), config: config, seed: maphash.MakeSeed()}
	outs := 1
	if c.kind == fifo {
		outs, p.marks = requests, newMarks(config.Options.Int("messageGroups"))
	}
	p.life, p.stop = context.WithCancelCause(context.Background())
	for range outs {
		p.outs = append(p.outs, outbox.New(func(o outgoing) int { return o.size }))
	}
	for i := range requests {
		p.sending.Go(func() { p.run(p.outs[i%outs]) })
	}
	return p, nil
}

// Send hands the batch to the goroutines that send.
func (p *producer) Send(_ context.Context, b driver.Batch, done driver.Done) {
	if len(p.outs) == 1 {
		add := make([]outgoing, 0, len(b))
		for i := range b {
			if o, ok := p.outgoing(&b[i], done, i); ok {
				add = append(add, o)
			}
		}
		put(p.outs[0], add...)
		return
	}
	for i := range b {
		if o, ok := p.outgoing(&b[i], done, i); ok {
			put(p.outs[maphash.String(p.seed, *o.entry.MessageGroupId)%uint64(len(p.outs))], o)
		}
	}
}

// put fails the messages of a producer that is closed.
func put(out *outbox.Outbox[outgoing], all ...outgoing) {
	if len(all) == 0 || out.Put(len(all), func(i int) outgoing { return all[i] }) {
		return
	}
	for _, o := range all {
		o.done(o.i, driver.ErrClosed)
	}
}

// outgoing is false of a message that cannot be sent, which is told.
func (p *producer) outgoing(m *driver.Message, done driver.Done, i int) (outgoing, bool) {
	o := outgoing{done: done, i: i}
	err := p.encode(m, &o)
	if err != nil {
		done(i, err)
	}
	return o, err == nil
}

// run sends what comes to an outbox, until that is closed and empty.
func (p *producer) run(out *outbox.Outbox[outgoing]) {
	var all []outgoing
	for {
		if all = out.Next(all, maxEntries, maxBytes); len(all) == 0 {
			return
		}
		for i := range all {
			all[i].entry.Id = ids[i]
		}
		p.send(all)
	}
}

// Close waits for what was sent. What remains when ctx ends fails with its error.
func (p *producer) Close(ctx context.Context) error {
	for _, out := range p.outs {
		out.Close()
	}
	defer context.AfterFunc(ctx, func() { p.stop(ctx.Err()) })()
	p.sending.Wait()
	p.stop(driver.ErrClosed)
	p.client.hangUp()
	return nil
}

// maxEntries is how many messages a request may have.
const maxEntries = 10

// ids name the entries of a request.
var ids = func() (all [maxEntries]*string) {
	for i := range all {
		id := strconv.Itoa(i)
		all[i] = &id
	}
	return all
}()
