package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/machine"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
)

// Replies receives the replies to requests if the broker has no requests: from a topic that one
// consumer reads, for all requests of a connection. That topic is in no account.
type Replies struct {
	driver   *driver.Driver
	conn     driver.Conn
	topic    string
	made     bool // by this process, which deletes it
	consumer driver.Consumer
	stop     context.CancelFunc
	reading  sync.WaitGroup
	test     string  // prefix of the identifiers of all requests of the test
	prefix   string  // of those of these requests
	series   *Series // for replies to no request

	mu      sync.Mutex
	next    uint64
	waiting map[uint64]chan<- answer // by request
}

// Replies opens the replies to requests of a topic on a connection, or returns those that are open:
// on a topic of that name, or on one of its own if the name is empty.
func (r *Run) Replies(ctx context.Context, e Endpoint, asked, named string, series *Series) (*Replies, error) {
	in := func(on *connection) map[string]*Replies { return on.replies }
	return opening(ctx, r, e, in, asked+" "+named, func(ctx context.Context, conn driver.Conn) (*Replies, error) {
		p, err := r.openReplies(ctx, conn, e.Address, asked, named, series)
		return p, e.Address.Driver.Wrap("open replies", err)
	})
}

func (r *Run) openReplies(
	ctx context.Context, conn driver.Conn, a *driver.Address, asked, named string, series *Series,
) (*Replies, error) {
	n := r.inboxes.Add(1)
	p := &Replies{
		driver: a.Driver, conn: conn, topic: named, series: series, test: fmt.Sprintf("%08x-", r.ID),
		waiting: map[uint64]chan<- answer{},
	}
	p.prefix = fmt.Sprintf("%s%08x-%x-", p.test, r.instance, n)
	var err error
	if named == "" {
		p.topic = besideTopic(asked, fmt.Sprintf("replies-%08x-%d", r.instance, n))
		if p.made, err = makeTopic(ctx, conn, a, p.topic); err != nil {
			return nil, fmt.Errorf("topic %s for replies could not be created: give option replyTopic: %w", p.topic, err)
		}
	}
	if err := p.subscribe(ctx, a); err != nil {
		return nil, errors.Join(fmt.Errorf("topic %s for replies could not be read: %w", p.topic, err), p.deleteTopic(ctx))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.finished { // nothing would close it
		return nil, errors.Join(ErrEnded, p.consumer.Close(ctx), p.deleteTopic(ctx))
	}
	r.replies = append(r.replies, p)
	reading, stop := context.WithCancel(context.Background())
	p.stop = stop
	p.reading.Go(func() { p.read(reading) })
	return p, nil
}

// besideTopic names a topic beside another one, in the same place and with the same ending.
func besideTopic(topic, name string) string {
	place := strings.LastIndexByte(topic, '/') + 1
	first, ending := topic[place:], ""
	if dot := strings.IndexByte(first, '.'); dot >= 0 {
		first, ending = first[:dot], first[dot:]
	}
	return topic[:place] + strings.TrimLeft(first+"-"+name, "-") + ending
}

// makeTopic creates a topic if the broker's topics are created, and reports whether it did.
func makeTopic(ctx context.Context, conn driver.Conn, a *driver.Address, topic string) (made bool, err error) {
	admin, ok := conn.(driver.Admin)
	if !ok {
		return false, nil
	}
	options, err := a.Resolve(driver.OnTopic, nil)
	if err != nil {
		return false, err
	}
	err = admin.CreateTopic(ctx, driver.TopicSpec{Name: topic, Partitions: 1, Replicas: 1, Options: options})
	if errors.Is(err, errors.ErrUnsupported) {
		return false, nil
	}
	return err == nil, err
}

// deleteTopic removes the topic if this process made it.
func (p *Replies) deleteTopic(ctx context.Context) error {
	if !p.made {
		return nil
	}
	p.made = false
	admin, _ := p.conn.(driver.Admin) // it created the topic
	err := admin.DeleteTopic(ctx, p.topic)
	if err == nil || errors.Is(err, errors.ErrUnsupported) || p.driver.KindOf(err) == driver.NotFound {
		return nil
	}
	return fmt.Errorf("topic %s is still there: %w", p.topic, err)
}

const (
	repliesPrefetch   = 1000
	repliesBatch      = 256
	repliesErrorPause = 10 * time.Millisecond
)

func (p *Replies) subscribe(ctx context.Context, a *driver.Address) error {
	options, err := a.Resolve(driver.OnConsumer, nil)
	if err != nil {
		return err
	}
	start := driver.StartNew
	if !p.driver.Features.Start.Has(start) {
		start = driver.StartEarliest
	}
	p.consumer, err = p.conn.NewConsumer(ctx, driver.ConsumerConfig{
		Topic: p.topic, Prefetch: repliesPrefetch, Start: start, Options: options,
	})
	return err
}

// read receives replies until ctx ends.
func (p *Replies) read(ctx context.Context) {
	in := make(driver.Batch, repliesBatch)
	for ctx.Err() == nil {
		n, err := p.consumer.Receive(ctx, in)
		if err != nil && n == 0 {
			if ctx.Err() != nil || errors.Is(err, driver.ErrClosed) {
				return
			}
			p.series.Fail("receive", p.driver.KindOf(err))
			if machine.Timer(ctx, driver.Now()+int64(repliesErrorPause)) != nil {
				return
			}
			continue
		}
		for i := range n {
			p.take(&in[i])
		}
		if p.driver.Features.Settle.Has(driver.Ack) {
			if err := p.consumer.Settle(ctx, in[:n], driver.Ack); err != nil && ctx.Err() == nil {
				p.series.Fail("ack", p.driver.KindOf(err))
			}
		}
		clear(in[:n]) // the requests have them
	}
}

// take gives a reply to the request that waits for it. Another one is counted, unless it may be for
// another reader of the topic.
func (p *Replies) take(m *driver.Message) {
	id, _ := correlation(p.driver, m)
	number, ours := p.number(id)
	p.mu.Lock()
	defer p.mu.Unlock()
	if to, ok := p.waiting[number]; ok && ours {
		delete(p.waiting, number)
		to <- answer{reply: *m} // it has room for it
		return
	}
	if bytes.HasPrefix(id, []byte(p.prefix)) || !bytes.HasPrefix(id, []byte(p.test)) {
		p.series.add(recording.StrayReplies, 1)
	}
}

// number reads the identifier of one of these requests.
func (p *Replies) number(id []byte) (uint64, bool) {
	text, ours := strings.CutPrefix(string(id), p.prefix)
	n, err := strconv.ParseUint(text, 16, 64)
	return n, ours && err == nil
}

// text writes the identifier of a request.
func (p *Replies) text(number uint64) string { return p.prefix + strconv.FormatUint(number, 16) }

// expect gives the reply to a request to a channel, which must have room for it.
func (p *Replies) expect(answers chan<- answer) (number uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	number = p.next
	p.next++
	p.waiting[number] = answers
	return number
}

// forget waits for the reply to a request no longer.
func (p *Replies) forget(number uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.waiting, number)
}

// close ends the reading.
func (p *Replies) close(ctx context.Context) error {
	p.stop()
	p.reading.Wait()
	return p.driver.Wrap("close replies", errors.Join(p.consumer.Close(ctx), p.deleteTopic(ctx)))
}

var errNoReplyTo = errors.New("the message asks for no reply: it has no topic for it")

// Reply answers a message that this consumer received. If the broker has no requests, the reply goes
// by the connection e to the topic that the message names, and is done when the broker has it.
func (c *Consumer) Reply(ctx context.Context, e Endpoint, to, reply driver.Message) error {
	series := c.series.Load()
	var err error
	if by, ok := c.consumer.(driver.Replier); ok {
		err = by.Reply(ctx, to, reply)
	} else {
		err = c.run.reply(ctx, e, &to, &reply)
	}
	if err != nil {
		err = c.driver.Wrap("reply", err)
		series.Fail("reply", c.driver.KindOf(err))
		return err
	}
	series.add(recording.BytesSent, int64(len(reply.Body)))
	return nil
}

// reply sends a reply to the topic that a message names.
func (r *Run) reply(ctx context.Context, e Endpoint, to, reply *driver.Message) error {
	d := e.Address.Driver
	id, replyTo := correlation(d, to)
	if len(replyTo) == 0 {
		return refused(d, "reply", errNoReplyTo)
	}
	if err := correlate(d, reply, string(id), ""); err != nil {
		return refused(d, "reply", err)
	}
	topic := string(replyTo)
	in := func(on *connection) map[string]*replier { return on.repliers }
	by, err := opening(ctx, r, e, in, topic, func(ctx context.Context, conn driver.Conn) (*replier, error) {
		return r.openReplier(ctx, conn, e.Address, topic)
	})
	if err != nil {
		return err
	}
	return by.send(ctx, *reply)
}

// correlate makes m a request or a reply with an identifier by two headers; the reply to a request
// goes to a topic.
func correlate(d *driver.Driver, m *driver.Message, id, replyTo string) error {
	if !d.Features.Headers {
		return fmt.Errorf("%s has no headers to match requests and replies: %w", d.Name, errors.ErrUnsupported)
	}
	names := d.Correlation
	for i := range m.Headers {
		if name := m.Headers[i].Name; name == names.ID || name == names.ReplyTo {
			return fmt.Errorf("header %q is used to match requests and replies: choose another name", name)
		}
	}
	m.Headers = slices.Clip(m.Headers)
	if id != "" { // the request of another program may have none
		m.Headers = append(m.Headers, driver.Header{Name: names.ID, Value: []byte(id)})
	}
	if replyTo != "" {
		m.Headers = append(m.Headers, driver.Header{Name: names.ReplyTo, Value: []byte(replyTo)})
	}
	return nil
}

// correlation returns the identifier of a message and the topic for the reply; both may be empty.
func correlation(d *driver.Driver, m *driver.Message) (id, replyTo []byte) {
	for i := range m.Headers {
		switch h := &m.Headers[i]; h.Name {
		case d.Correlation.ID:
			id = h.Value
		case d.Correlation.ReplyTo:
			replyTo = h.Value
		}
	}
	return id, replyTo
}

// refused is an error of a message that cannot be sent as it is.
func refused(d *driver.Driver, op string, err error) error {
	return &driver.Error{Kind: driver.Rejected, Driver: d.Name, Op: op, Err: err}
}

// replier sends replies to one topic. They carry no stamp.
type replier struct {
	producer driver.Producer
	window   *window // of replies, each of which may take a worker
}

// Replies on their way to one topic, at most: of a driver that waits for the broker, as many as it
// has workers.
const (
	repliesWindow  = 4096
	repliesWorkers = 32
)

func (r *Run) openReplier(ctx context.Context, conn driver.Conn, a *driver.Address, topic string) (*replier, error) {
	options, err := a.Resolve(driver.OnProducer, nil)
	if err != nil {
		return nil, err
	}
	config := driver.ProducerConfig{Topic: topic, Window: repliesWindow, Options: options}
	if !a.Driver.Features.Async {
		config.Window, config.Workers = repliesWorkers, repliesWorkers
	}
	by := &replier{window: newWindow(config.Window)}
	if by.producer, err = conn.NewProducer(ctx, config); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.finished { // nothing would close it
		return nil, errors.Join(ErrEnded, by.producer.Close(ctx))
	}
	r.repliers = append(r.repliers, by)
	return by, nil
}

// send sends a reply and waits until the broker has it.
func (by *replier) send(ctx context.Context, m driver.Message) error {
	if _, err := by.window.acquire(ctx, 1, 1); err != nil {
		return err
	}
	sent := make(chan error, 1)
	by.producer.Send(ctx, driver.Batch{m}, func(_ int, err error) {
		by.window.release(1)
		sent <- err
	})
	return <-sent
}
