package amqp

import (
	"context"
	"strconv"
	"sync"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// replyTo is RabbitMQ's direct reply-to: replies arrive at the requesting channel, through no
// queue.
const replyTo = "amq.rabbitmq.reply-to"

// requests is a producer's channel for requests and their replies, opened by the first request.
type requests struct {
	producer *producer

	mu      sync.Mutex
	current *exchange
}

// exchange is an open channel with the requests that wait for a reply.
type exchange struct {
	*channel
	returns    chan amqp.Return
	deliveries <-chan amqp.Delivery

	mu      sync.Mutex
	count   uint64
	table   amqp.Table
	waiting map[string]chan<- answer // by correlation identifier; nil once the channel is lost
}

type answer struct {
	message driver.Message
	err     error
}

func (p *producer) Request(ctx context.Context, m driver.Message) (driver.Message, error) {
	if len(m.Body) > p.limit {
		return driver.Message{}, p.tooLarge(m.Body)
	}
	x, err := p.requests.open(ctx)
	if err != nil {
		return driver.Message{}, err
	}
	if err := x.conn.socket.ready(ctx); err != nil {
		return driver.Message{}, err
	}
	id, reply, err := x.ask(p, &m)
	if err != nil {
		return driver.Message{}, err
	}
	select {
	case a := <-reply:
		return a.message, a.err
	case <-ctx.Done():
		x.mu.Lock()
		delete(x.waiting, id)
		x.mu.Unlock()
		return driver.Message{}, ctx.Err()
	}
}

// open returns the channel, and opens one if necessary.
func (q *requests) open(ctx context.Context) (*exchange, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.producer.life.Err() != nil {
		return nil, driver.ErrClosed
	}
	if q.current != nil && !q.current.IsClosed() {
		return q.current, nil
	}
	x := &exchange{returns: make(chan amqp.Return, 64), table: amqp.Table{}, waiting: map[string]chan<- answer{}}
	ch, err := q.producer.conn.publishing.channel(ctx, func(ch *amqp.Channel) (err error) {
		ch.NotifyReturn(x.returns)
		x.deliveries, err = ch.Consume(replyTo, "", true, false, false, false, nil)
		return err
	})
	if err != nil {
		return nil, err
	}
	x.channel = ch
	q.current = x
	q.producer.conn.running.Go(x.run)
	return x, nil
}

func (q *requests) close(ctx context.Context) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.current == nil {
		return nil
	}
	return q.current.end(ctx)
}

// ask publishes a request.
func (x *exchange) ask(p *producer, m *driver.Message) (string, <-chan answer, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.waiting == nil {
		return "", nil, x.cause()
	}
	headers, err := fill(x.table, m.Headers, p.typedHeaders(m), x.conn.Config.FrameSize)
	if err != nil {
		return "", nil, err
	}
	x.count++
	id := strconv.FormatUint(x.count, 10)
	publishing := amqp.Publishing{Headers: headers, Body: m.Body, ReplyTo: replyTo, CorrelationId: id}
	p.describe(&publishing, m)
	if err := x.Publish(p.exchange, p.routing(m), true, false, publishing); err != nil {
		return "", nil, x.explain(err)
	}
	reply := make(chan answer, 1)
	x.waiting[id] = reply
	return id, reply, nil
}

// run answers requests with replies and returns, until the channel is lost.
func (x *exchange) run() {
	deliveries, returns := x.deliveries, x.returns
	for deliveries != nil || returns != nil {
		select {
		case d, ok := <-deliveries:
			if !ok {
				deliveries = nil
				continue
			}
			now := driver.Now()
			x.answer(d.CorrelationId, answer{message: driver.Message{
				Body: d.Body, Headers: headersOf(d.Headers), Topic: d.RoutingKey, Received: now,
			}})
		case r, ok := <-returns:
			if !ok {
				returns = nil
				continue
			}
			x.answer(r.CorrelationId, answer{err: returned(r)})
		}
	}
	lost := x.cause()
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, reply := range x.waiting {
		reply <- answer{err: lost}
	}
	x.waiting = nil
}

func (x *exchange) answer(id string, a answer) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if reply, ok := x.waiting[id]; ok {
		delete(x.waiting, id)
		reply <- a
	}
}

// Reply publishes on the connection for publishing. It returns when the client library has the
// reply.
func (r *consumer) Reply(ctx context.Context, to, reply driver.Message) error {
	t, ok := to.Token.(*token)
	if !ok || t.asked == nil {
		return errNoReply
	}
	if r.life.Err() != nil {
		return driver.ErrClosed
	}
	ch, err := r.replies.open(ctx, r.conn.publishing)
	if err != nil {
		return err
	}
	if err := ch.conn.socket.ready(ctx); err != nil {
		return err
	}
	headers, err := fill(amqp.Table{}, reply.Headers, reply.Properties.Map("typedHeaders"), ch.conn.Config.FrameSize)
	if err != nil {
		return err
	}
	err = ch.Publish("", t.asked.replyTo, false, false, amqp.Publishing{
		Headers: headers, Body: reply.Body, CorrelationId: t.asked.correlationID,
	})
	return ch.explain(err)
}

// replies is a consumer's channel for replies, opened by the first reply.
type replies struct {
	mu      sync.Mutex
	current *channel
}

func (q *replies) open(ctx context.Context, l link) (*channel, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.current != nil && !q.current.IsClosed() {
		return q.current, nil
	}
	ch, err := l.channel(ctx, func(*amqp.Channel) error { return nil })
	if err != nil {
		return nil, err
	}
	q.current = ch
	return ch, nil
}

func (q *replies) close(ctx context.Context) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.current == nil {
		return nil
	}
	return q.current.end(ctx)
}
