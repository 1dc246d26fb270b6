package pulsar

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver/redial"
)

// producer sends to one topic, by one producer of the client's after another: one that the broker refuses, as when its topic is deleted, is
// closed by the client for good.
type producer struct {
	conn    *conn
	options pulsar.ProducerOptions
	router  *router
	forced  int32 // the one partition to send to, or -1

	mu       sync.RWMutex // closed is set under it, so that no Send begins afterwards
	closed   bool
	life     context.Context // ends with Close
	stop     context.CancelFunc
	sending  sync.WaitGroup
	opening  sync.WaitGroup
	current  atomic.Pointer[line]
	messages sync.Pool // of *outgoing
}

func (c *conn) NewProducer(ctx context.Context, cfg driver.ProducerConfig) (driver.Producer, error) {
	t, err := c.topic(cfg.Topic)
	if err != nil {
		return nil, err
	}
	p := &producer{conn: c, forced: int32(min(cfg.Options.Int("partition"), 1<<30)), router: newRouter(cfg.Options)} //gosec:disable G115 -- -1 at least
	p.options = producerOptions(t, cfg, p.router)
	p.life, p.stop = context.WithCancel(context.Background())
	l, err := p.open(ctx)
	if err != nil {
		p.stop()
		return nil, err
	}
	if err := l.has(p.forced); err != nil {
		p.stop()
		_ = c.done(ctx, l.close)
		return nil, err
	}
	p.current.Store(l)
	return p, nil
}

// open makes a producer of the client's, which is connected to the brokers of all partitions then.
func (p *producer) open(ctx context.Context) (*line, error) {
	opened, err := await(ctx, p.conn, func() (pulsar.Producer, error) { return p.conn.client.CreateProducer(p.options) }, pulsar.Producer.Close)
	if err != nil {
		return nil, err
	}
	partitions, err := await(ctx, p.conn, func() ([]string, error) { return p.conn.client.TopicPartitions(p.options.Topic) }, nil)
	if err != nil {
		_ = p.conn.done(ctx, func() error { opened.Close(); return nil })
		return nil, err
	}
	l := &line{Producer: opened, p: p}
	l.first.next, l.first.previous = &l.first, &l.first
	l.partitions.Store(int32(len(partitions))) //gosec:disable G115 -- a count, far below the limit
	return l, nil
}

func (p *producer) Send(_ context.Context, b driver.Batch, done driver.Done) {
	p.mu.RLock()
	if p.closed {
		p.mu.RUnlock()
		for i := range b {
			done(i, driver.ErrClosed)
		}
		return
	}
	p.sending.Add(1)
	defer p.sending.Done()
	p.mu.RUnlock()
	for i := range b {
		p.current.Load().send(&b[i], i, done)
	}
}

// again replaces a line that is dead, as soon as that can be done.
func (p *producer) again(dead *line) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if p.closed {
		return
	}
	p.opening.Go(func() {
		_ = p.conn.done(p.life, dead.close)
		l, ok := redial.Until(p.life, p.open, dead.blame)
		if !ok {
			return
		}
		if p.current.CompareAndSwap(dead, l); p.life.Err() != nil {
			_ = l.close()
		}
	})
}

// Close waits for what was sent, and fails what remains when ctx ends.
func (p *producer) Close(ctx context.Context) error {
	p.mu.Lock()
	already := p.closed
	p.closed = true
	p.mu.Unlock()
	if already {
		return nil
	}
	p.sending.Wait() // no Send waits for anything
	l := p.current.Load()
	err := l.drained(ctx)
	p.stop()
	p.opening.Wait()
	l = p.current.Load()
	if err != nil {
		l.abandon(err)
	}
	if closing := p.conn.done(ctx, l.close); err == nil && !errors.Is(closing, context.Canceled) {
		err = closing
	}
	l.abandon(driver.ErrClosed)
	return err
}

// As lends the pulsar.Producer that messages go to now.
func (p *producer) As(target any) bool {
	return driver.As(target, p.current.Load().Producer)
}
