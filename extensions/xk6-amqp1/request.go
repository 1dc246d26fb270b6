package amqp1

import (
	"context"
	"crypto/rand"
	"net/url"
	"strconv"
	"sync"

	amqp "github.com/Azure/go-amqp"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver/redial"
)

// requests are a producer's, with the link on which their replies come. It is opened by the first of them.
type requests struct {
	producer *producer
	link     *redial.Link[*inquiry]
	reading  sync.WaitGroup
}

// inquiry is a link to receive replies on, and who waits for one.
type inquiry struct {
	session  *amqp.Session
	receiver *amqp.Receiver
	on       *connection
	address  string

	mu      sync.Mutex
	count   uint64
	waiting map[string]chan<- replied // by correlation identifier
	lost    bool
}

type replied struct {
	message driver.Message
	err     error
}

// asking is what makes a request of a message.
type asking struct{ replyTo, id string }

func newRequests(p *producer) *requests {
	q := &requests{producer: p}
	q.link = redial.New(q.open, func(x *inquiry) bool {
		x.mu.Lock()
		defer x.mu.Unlock()
		return x.lost || x.on.broken()
	})
	return q
}

// open attaches to a node that the broker makes for the link, or at RabbitMQ to a queue that goes with the connection.
func (q *requests) open(ctx context.Context) (*inquiry, error) {
	x := &inquiry{waiting: map[string]chan<- replied{}}
	c := q.producer.conn
	err := c.session(ctx, func(ctx context.Context, s *amqp.Session, on *connection) (err error) {
		x.session, x.on = s, on
		o := &amqp.ReceiverOptions{Credit: replyCredit, DynamicAddress: true}
		if m, ok := c.management.(*rabbitMQ); ok {
			name := "replies." + rand.Text()
			if err := m.temporary(ctx, name); err != nil {
				return err
			}
			x.address, o.DynamicAddress = "/queues/"+url.PathEscape(name), false
		}
		if x.receiver, err = s.NewReceiver(ctx, x.address, o); err == nil && o.DynamicAddress {
			x.address = x.receiver.Address()
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	q.reading.Go(func() { x.read(q.producer.life) })
	return x, nil
}

// replyCredit is how many replies may be under way to a producer, which takes each as it comes.
const replyCredit = 1000

// read hands replies to who waits for them, until the link or the producer ends.
func (x *inquiry) read(life context.Context) {
	for {
		m, err := x.receiver.Receive(life, nil)
		now := driver.Now()
		if err != nil {
			x.fail(err)
			return
		}
		if x.receiver.AcceptMessage(life, m) != nil || m.Properties == nil {
			continue
		}
		reply := replied{message: driver.Message{Body: bodyOf(m), Headers: headersOf(m.ApplicationProperties), Topic: x.address, Received: now}}
		if id, ok := m.Properties.CorrelationID.(string); ok {
			x.answer(id, reply)
		}
	}
}

// answer gives a reply to who waits for it, if anybody does.
func (x *inquiry) answer(id string, reply replied) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if to, ok := x.waiting[id]; ok {
		delete(x.waiting, id)
		to <- reply // it has room for it
	}
}

// fail tells everybody that no reply can come.
func (x *inquiry) fail(err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.lost = true
	for id, to := range x.waiting {
		delete(x.waiting, id)
		to <- replied{err: err}
	}
}

// wait has a reply waited for.
func (x *inquiry) wait() (id string, reply <-chan replied) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.count++
	to := make(chan replied, 1)
	id = strconv.FormatUint(x.count, 10)
	x.waiting[id] = to
	return id, to
}

func (x *inquiry) forget(id string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.waiting, id)
}

// Request sends a message like any other, with where its reply goes.
func (p *producer) Request(ctx context.Context, m driver.Message) (driver.Message, error) {
	x, err := p.requests.link.Get(ctx)
	if err != nil {
		return driver.Message{}, err
	}
	id, reply := x.wait()
	defer x.forget(id)
	sent := make(chan error, 1)
	b := driver.Batch{m}
	if !p.add(b, func(_ int, err error) { sent <- err }, &asking{x.address, id}) {
		return driver.Message{}, driver.ErrClosed
	}
	for {
		select {
		case r := <-reply:
			return r.message, p.because(r.err)
		case err := <-sent:
			if err != nil {
				return driver.Message{}, err
			}
			sent = nil
		case <-ctx.Done():
			return driver.Message{}, ctx.Err()
		}
	}
}

// close ends the waiting for replies.
func (q *requests) close(ctx context.Context) {
	_ = q.link.Close(func(x *inquiry) error {
		q.reading.Wait() // the producer's life is over
		_ = x.session.Close(ctx)
		return nil
	})
}
