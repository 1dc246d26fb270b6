package sqs

import (
	"context"
	"hash/maphash"
	"strconv"
	"sync"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// producer sends by as many goroutines as it may have requests under way, each of which takes up to ten of the messages that wait. Of a standard queue all
// take from one lane; of a FIFO queue each has its own, to which a message group keeps, as two requests under way may overtake each other.
type producer struct {
	conn   *conn
	url    string
	client *client
	config driver.ProducerConfig
	marks  *marks // of a FIFO queue
	lanes  []*lane
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
	lanes := 1
	if c.kind == fifo {
		lanes, p.marks = requests, newMarks(config.Options.Int("messageGroups"))
	}
	p.life, p.stop = context.WithCancelCause(context.Background())
	for range lanes {
		p.lanes = append(p.lanes, newLane())
	}
	for i := range requests {
		p.sending.Go(func() { p.run(p.lanes[i%lanes]) })
	}
	return p, nil
}

// Send hands the batch to the goroutines that send.
func (p *producer) Send(_ context.Context, b driver.Batch, done driver.Done) {
	if len(p.lanes) == 1 {
		add := make([]outgoing, 0, len(b))
		for i := range b {
			if o, ok := p.outgoing(&b[i], done, i); ok {
				add = append(add, o)
			}
		}
		p.lanes[0].add(add...)
		return
	}
	for i := range b {
		if o, ok := p.outgoing(&b[i], done, i); ok {
			p.lanes[maphash.String(p.seed, *o.entry.MessageGroupId)%uint64(len(p.lanes))].add(o)
		}
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

// run sends what comes to a lane, until that is closed and empty.
func (p *producer) run(l *lane) {
	var all []outgoing
	for {
		clear(all) // they must not live on here
		if all = l.take(all[:0]); len(all) == 0 {
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
	for _, l := range p.lanes {
		l.close()
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
