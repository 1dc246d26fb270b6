package engine

import (
	"context"
	"errors"
	"fmt"
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
	test     string  // prefix of the identifiers of the test's requests
	prefix   string  // prefix of the identifiers of these requests
	series   *Series // for replies to no request

	mu      sync.Mutex
	next    uint64
	waiting map[string]chan<- answer // by the identifiers of requests
}

// Replies opens the replies to requests of a topic on a connection, or returns the open ones: on a
// topic of that name, or on one of its own if the name is empty.
func (r *Run) Replies(ctx context.Context, e Endpoint, asked, named string, series *Series) (*Replies, error) {
	key := "replies " + asked + " " + named
	return opening(ctx, r, e, key, func(ctx context.Context, conn driver.Conn) (*Replies, error) {
		n := r.inboxes.Add(1)
		p := &Replies{
			driver: e.Address.Driver, conn: conn, topic: named, series: series, test: fmt.Sprintf("%08x-", r.ID),
			waiting: map[string]chan<- answer{},
		}
		p.prefix = fmt.Sprintf("%s%08x-%x-", p.test, r.instance, n)
		if named == "" {
			p.topic = fmt.Sprintf("%s-replies-%08x-%d", asked, r.instance, n)
		}
		err := p.open(ctx, r, e.Address, named == "")
		return p, e.Address.Driver.Wrap("open replies", err)
	})
}

// open creates the topic if it is one of its own, and begins to read it.
func (p *Replies) open(ctx context.Context, r *Run, a *driver.Address, own bool) (err error) {
	if own {
		if p.made, err = makeTopic(ctx, p.conn, a, p.topic); err != nil {
			return fmt.Errorf("topic %s for replies could not be created: give option replyTopic: %w", p.topic, err)
		}
	}
	if err := p.subscribe(ctx, a); err != nil {
		return errors.Join(fmt.Errorf("topic %s for replies could not be read: %w", p.topic, err), p.deleteTopic(ctx))
	}
	reading, stop := context.WithCancel(context.Background())
	p.stop = stop
	p.reading.Go(func() { p.read(reading) })
	r.mu.Lock()
	ended := r.finished
	if !ended {
		r.replies = append(r.replies, p)
	}
	r.mu.Unlock()
	if ended { // nothing would close it
		return errors.Join(ErrEnded, p.close(ctx))
	}
	return nil
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

// deleteTopic deletes the topic if this process made it.
func (p *Replies) deleteTopic(ctx context.Context) error {
	if !p.made {
		return nil
	}
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
			_ = machine.Timer(ctx, driver.Now()+int64(repliesErrorPause)) // the loop sees that ctx ended
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
	found, _ := correlation(p.driver, m)
	id := string(found)
	p.mu.Lock()
	defer p.mu.Unlock()
	if to, ok := p.waiting[id]; ok {
		delete(p.waiting, id)
		to <- answer{reply: *m} // it has room for it
		return
	}
	if strings.HasPrefix(id, p.prefix) || !strings.HasPrefix(id, p.test) {
		p.series.add(recording.StrayReplies, 1)
	}
}

// expect makes the identifier of a request, whose reply goes to a channel that has room for it.
func (p *Replies) expect(answers chan<- answer) (id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	id = p.prefix + strconv.FormatUint(p.next, 16)
	p.next++
	p.waiting[id] = answers
	return id
}

// forget waits for the reply to a request no longer.
func (p *Replies) forget(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.waiting, id)
}

// close ends the reading.
func (p *Replies) close(ctx context.Context) error {
	p.stop()
	p.reading.Wait()
	return p.driver.Wrap("close replies", errors.Join(p.consumer.Close(ctx), p.deleteTopic(ctx)))
}
