package sqs

import (
	"context"
	"hash/maphash"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver/outbox"
)

// message is an entry of a request.
type message struct {
	types.SendMessageBatchRequestEntry
	size int // bytes, of the body and the attributes
}

type outgoing = outbox.Item[message]

// producer sends several requests at a time, each with up to ten of the messages that wait. Requests
// may overtake each other, so in a FIFO queue each message group has one request at a time.
type producer struct {
	conn   *conn
	url    string
	client *client
	config driver.ProducerConfig
	marks  *marks                     // of a FIFO queue
	outs   []*outbox.Workers[message] // one, or of a FIFO queue one for each request
	seed   maphash.Seed
}

// NewProducer fails if the queue does not exist.
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
	size := func(m message) int { return m.size }
	for range outs {
		p.outs = append(p.outs, outbox.Start(requests/outs, maxEntries, maxBytes, size, p.send))
	}
	return p, nil
}

// Send queues the batch.
func (p *producer) Send(_ context.Context, b driver.Batch, done driver.Done) {
	if len(p.outs) == 1 {
		p.outs[0].Send(b, done, p.encode)
		return
	}
	for i := range b {
		m, err := p.encode(&b[i])
		if err != nil {
			done(i, err)
			continue
		}
		out := p.outs[maphash.String(p.seed, *m.MessageGroupId)%uint64(len(p.outs))]
		out.Put(outgoing{Message: m, Index: i, Report: done})
	}
}

// Close waits for the messages sent. The rest fails with ctx's error when ctx ends.
func (p *producer) Close(ctx context.Context) error {
	for _, out := range p.outs {
		out.Close(ctx)
	}
	p.client.hangUp()
	return nil
}

// maxEntries is the largest number of messages of a request.
const maxEntries = 10

// ids are the names of the entries of a request.
var ids = func() (all [maxEntries]*string) {
	for i := range all {
		id := strconv.Itoa(i)
		all[i] = &id
	}
	return all
}()
