package memory

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// conn is a connection without optional verbs.
type conn struct {
	b         *Broker
	closed    bool
	producers map[*producer]struct{}
	consumers map[*consumer]struct{}
}

// admin is a connection with all of them.
type admin struct{ *conn }

var (
	_ driver.Admin      = admin{}
	_ driver.Backlogger = admin{}
	_ driver.Informer   = admin{}
	_ driver.Prover     = admin{}
)

func (b *Broker) open(ctx context.Context, t driver.Target) (driver.Conn, error) {
	if t.URL.Host != "" && t.URL.Host != host {
		return nil, elsewhere(ctx, t)
	}
	if err := b.answer(ctx); err != nil {
		return nil, err
	}
	defer b.mu.Unlock()
	c := &conn{b: b, producers: map[*producer]struct{}{}, consumers: map[*consumer]struct{}{}}
	b.conns[c] = struct{}{}
	if b.config.Bare {
		return c, nil
	}
	return admin{c}, nil
}

// elsewhere connects to whoever listens at another host, which cannot be this broker, and waits for what does not come.
func elsewhere(ctx context.Context, t driver.Target) error {
	ctx, cancel := context.WithTimeout(ctx, t.Options.Duration("connectTimeout"))
	defer cancel()
	c, err := t.Plain()(ctx, "tcp", t.URL.Host)
	if err != nil {
		return errRefused
	}
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	if _, err := c.Read(make([]byte, 1)); ctx.Err() == nil {
		return fmt.Errorf("%w: %w", errRefused, cmp.Or(err, errStranger))
	}
	return ctx.Err()
}

func (c *conn) Close(context.Context) error {
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	c.closed = true
	delete(c.b.conns, c)
	return nil
}

// enter locks the broker and finds the topic. Where it fails the lock is not held.
func (c *conn) enter(ctx context.Context, name string) (*topic, error) {
	if err := c.b.answer(ctx); err != nil {
		return nil, err
	}
	if c.closed {
		c.b.mu.Unlock()
		return nil, driver.ErrClosed
	}
	t, err := c.b.find(name)
	if err != nil {
		c.b.mu.Unlock()
	}
	return t, err
}

func (c *conn) NewProducer(ctx context.Context, config driver.ProducerConfig) (driver.Producer, error) {
	t, err := c.enter(ctx, config.Topic)
	if err != nil {
		return nil, err
	}
	defer c.b.mu.Unlock()
	p := &producer{c: c, topic: t, stopped: make(chan struct{})}
	p.running, p.stop = context.WithCancel(context.Background())
	c.producers[p] = struct{}{}
	go p.run()
	if c.b.config.Features.Requests {
		return requester{p}, nil
	}
	return p, nil
}

func (c *conn) NewConsumer(ctx context.Context, config driver.ConsumerConfig) (driver.Consumer, error) {
	f := c.b.config.Features
	if f.Start == 0 {
		return nil, fmt.Errorf("consumers: %w", errors.ErrUnsupported)
	}
	if !f.Groups && config.Group != "" {
		return nil, fmt.Errorf("group %q: %w", config.Group, errors.ErrUnsupported)
	}
	if !f.Start.Has(config.Start) {
		return nil, fmt.Errorf("start %v: %w", config.Start, errors.ErrUnsupported)
	}
	t, err := c.enter(ctx, config.Topic)
	if err != nil {
		return nil, err
	}
	defer c.b.mu.Unlock()
	r := &consumer{c: c, config: config, name: config.Group}
	if r.name == "" && !c.b.shared() {
		r.name = fmt.Sprintf("%p", r)
	}
	r.group = t.join(r.name, config.Start)
	c.consumers[r] = struct{}{}
	if c.b.config.Features.Requests {
		return replier{r}, nil
	}
	return r, nil
}

func (c admin) CreateTopic(ctx context.Context, s driver.TopicSpec) error {
	if err := c.b.answer(ctx); err != nil {
		return err
	}
	defer c.b.mu.Unlock()
	if _, ok := c.b.topics[s.Name]; !ok {
		c.b.create(s.Name, max(s.Partitions, 1))
	}
	return nil
}

func (c admin) DescribeTopic(ctx context.Context, name string) (driver.TopicInfo, error) {
	t, err := c.enter(ctx, name)
	if err != nil {
		return driver.TopicInfo{}, err
	}
	defer c.b.mu.Unlock()
	info := driver.TopicInfo{Replicas: 1}
	if c.b.config.Features.Partitions {
		info.Partitions = t.partitions
	}
	return info, nil
}

func (c admin) Proof(context.Context, driver.ProducerConfig, *driver.TopicSpec) driver.Proof {
	return driver.Proof{Confirm: c.b.config.Features.Confirm, How: "one process"}
}

func (c admin) DeleteTopic(ctx context.Context, name string) error {
	_, err := c.enter(ctx, name)
	if err != nil {
		return err
	}
	defer c.b.mu.Unlock()
	delete(c.b.topics, name)
	c.b.change()
	return nil
}

func (c admin) PurgeTopic(ctx context.Context, name string) error {
	t, err := c.enter(ctx, name)
	if err != nil {
		return err
	}
	defer c.b.mu.Unlock()
	t.log = nil
	for _, g := range t.groups {
		g.ready = nil
	}
	return nil
}

// Backlog of a group that nobody has joined yet is all that it would get if it began with the earliest.
func (c admin) Backlog(ctx context.Context, name, group string) (driver.Backlog, error) {
	t, err := c.enter(ctx, name)
	if err != nil {
		return driver.Backlog{}, err
	}
	defer c.b.mu.Unlock()
	g, ok := t.groups[group]
	if !ok {
		return driver.Backlog{Messages: int64(len(t.log)), Undelivered: int64(len(t.log))}, nil
	}
	b := driver.Backlog{Messages: int64(len(g.ready)), Estimate: c.b.config.Cumulative || c.b.config.Untold}
	if !c.b.config.Untold {
		b.Messages += int64(len(g.unsettled))
	}
	for _, d := range g.ready {
		if d.attempt == 0 && !c.b.config.Coarse {
			b.Undelivered++
		}
	}
	return b, nil
}

func (c admin) Info() driver.Info {
	return driver.Info{Server: "memory", Client: "memory", Nodes: 1, Embedded: !c.b.config.Apart}
}
