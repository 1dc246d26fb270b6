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
	b      *Broker
	closed bool
}

// admin is a connection with all optional verbs.
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
	if err := b.lock(ctx); err != nil {
		return nil, err
	}
	defer b.mu.Unlock()
	c := &conn{b: b}
	if b.config.Bare {
		return c, nil
	}
	return admin{c}, nil
}

// elsewhere connects to another host, which cannot be this broker, and waits for an answer.
func elsewhere(ctx context.Context, t driver.Target) error {
	ctx, cancel := context.WithTimeout(ctx, t.Options.Duration("connectTimeout"))
	defer cancel()
	c, err := t.Plain()(ctx, "tcp", t.URL.Host)
	if err != nil {
		return errRefused
	}
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	_, err = c.Read(make([]byte, 1))
	return cmp.Or(ctx.Err(), err, error(errRefused))
}

func (c *conn) Close(context.Context) error {
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	c.closed = true
	return nil
}

// with calls f with a topic, under the lock. A bare broker creates the topic.
func (c *conn) with(ctx context.Context, name string, f func(t *topic)) error {
	if err := c.b.lock(ctx); err != nil {
		return err
	}
	defer c.b.mu.Unlock()
	if c.closed {
		return driver.ErrClosed
	}
	t := c.b.topics[name]
	if t == nil && !c.b.config.Bare {
		return errNoTopic
	}
	if t == nil {
		t = c.b.create(name, 1)
	}
	f(t)
	return nil
}

func (c *conn) NewProducer(ctx context.Context, config driver.ProducerConfig) (driver.Producer, error) {
	p := &producer{c: c}
	if err := c.with(ctx, config.Topic, func(t *topic) { p.topic = t }); err != nil {
		return nil, err
	}
	p.running.Go(p.run)
	if c.b.config.Features.Requests {
		return requester{p}, nil
	}
	return p, nil
}

func (c *conn) NewConsumer(ctx context.Context, config driver.ConsumerConfig) (driver.Consumer, error) {
	f := c.b.config.Features
	if f.Start == 0 || !f.Start.Has(config.Start) || !f.Groups && config.Group != "" {
		return nil, fmt.Errorf("start %v, group %q: %w", config.Start, config.Group, errors.ErrUnsupported)
	}
	r := &consumer{c: c, config: config, name: config.Group}
	if r.name == "" && !c.b.shared() {
		r.name = fmt.Sprintf("%p", r)
	}
	err := c.with(ctx, config.Topic, func(t *topic) {
		r.group, r.cuts = t.join(r.name, config.Start), c.b.cuts
	})
	if err != nil {
		return nil, err
	}
	if f.Requests {
		return replier{r}, nil
	}
	return r, nil
}

func (c admin) CreateTopic(ctx context.Context, s driver.TopicSpec) error {
	if err := c.b.lock(ctx); err != nil {
		return err
	}
	defer c.b.mu.Unlock()
	if _, ok := c.b.topics[s.Name]; !ok {
		c.b.create(s.Name, max(s.Partitions, 1))
	}
	return nil
}

func (c admin) DescribeTopic(ctx context.Context, name string) (info driver.TopicInfo, err error) {
	err = c.with(ctx, name, func(t *topic) {
		info.Replicas = 1
		if c.b.config.Features.Partitions {
			info.Partitions = t.partitions
		}
	})
	return info, err
}

func (c admin) DeleteTopic(ctx context.Context, name string) error {
	return c.with(ctx, name, func(*topic) {
		delete(c.b.topics, name)
		c.b.change()
	})
}

func (c admin) PurgeTopic(ctx context.Context, name string) error {
	return c.with(ctx, name, func(t *topic) {
		t.log = nil
		for _, g := range t.groups {
			g.ready = nil
		}
	})
}

// Backlog of a group that no consumer has joined is that of a group which starts at the earliest.
func (c admin) Backlog(ctx context.Context, name, group string) (b driver.Backlog, err error) {
	config := c.b.config
	err = c.with(ctx, name, func(t *topic) {
		g, ok := t.groups[group]
		if !ok {
			b.Messages, b.Undelivered = int64(len(t.log)), int64(len(t.log))
			return
		}
		b.Messages, b.Estimate = int64(len(g.ready)), config.Cumulative || config.Untold
		if !config.Untold {
			b.Messages += int64(len(g.unsettled))
		}
		for _, d := range g.ready {
			if d.attempt == 0 && !config.Coarse {
				b.Undelivered++
			}
		}
	})
	return b, err
}

func (c admin) Proof(context.Context, driver.ProducerConfig, *driver.TopicSpec) driver.Proof {
	return driver.Proof{Confirm: c.b.config.Features.Confirm, How: "one process"}
}

func (c admin) Info() driver.Info {
	return driver.Info{Server: "memory", Client: "memory", Nodes: 1, Embedded: !c.b.config.Apart}
}
