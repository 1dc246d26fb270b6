package drivertest_test

import (
	"context"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// broken is the driver d with what the variant breaks.
func (v variant) broken(d driver.Driver) driver.Driver {
	if v.claim != nil {
		v.claim(&d.Features)
	}
	d.Options = append(d.Options, v.options...)
	if place := d.Place; place != nil && v.place != nil {
		d.Place = func(m *driver.Message) driver.Place { return v.place(m, place(m)) }
	}
	if v.classify != nil {
		d.Classify = v.classify
	}
	if v.open != nil {
		d.Open = v.open(d.Open)
	}
	open := d.Open
	d.Open = func(ctx context.Context, t driver.Target) (driver.Conn, error) {
		c, err := open(ctx, t)
		if err != nil {
			return nil, err
		}
		if full, ok := c.(fullConn); ok {
			if v.conn != nil {
				c = v.conn(full)
			}
			return conn{fullConn: c.(fullConn), v: v}, nil
		}
		return bare{Conn: c, v: v}, nil
	}
	return d
}

type conn struct {
	fullConn
	v variant
}

func (c conn) NewProducer(ctx context.Context, config driver.ProducerConfig) (driver.Producer, error) {
	return c.v.producer(c.fullConn.NewProducer(ctx, config))
}

func (c conn) NewConsumer(ctx context.Context, config driver.ConsumerConfig) (driver.Consumer, error) {
	return c.v.consumer(ctx, c.fullConn, config)
}

type bare struct {
	driver.Conn
	v variant
}

func (c bare) NewProducer(ctx context.Context, config driver.ProducerConfig) (driver.Producer, error) {
	return c.v.producer(c.Conn.NewProducer(ctx, config))
}

func (c bare) NewConsumer(ctx context.Context, config driver.ConsumerConfig) (driver.Consumer, error) {
	return c.v.consumer(ctx, c.Conn, config)
}

func (v variant) producer(p driver.Producer, err error) (driver.Producer, error) {
	if err != nil {
		return nil, err
	}
	if full, ok := p.(driver.Requester); ok {
		return producer{Producer: p, Requester: full, v: v}, nil
	}
	return struct{ driver.Producer }{producer{Producer: p, v: v}}, nil
}

type producer struct {
	driver.Producer
	driver.Requester
	v variant
}

func (p producer) Send(ctx context.Context, b driver.Batch, done driver.Done) {
	if p.v.send != nil {
		p.v.send(p.Producer, ctx, b, done)
		return
	}
	p.Producer.Send(ctx, b, done)
}

func (p producer) Request(ctx context.Context, m driver.Message) (driver.Message, error) {
	if p.v.request != nil {
		return p.v.request(p.Requester, ctx, m)
	}
	return p.Requester.Request(ctx, m)
}

func (p producer) Close(ctx context.Context) error {
	if p.v.leave != nil {
		return p.v.leave(p.Producer, ctx)
	}
	return p.Producer.Close(ctx)
}

func (v variant) consumer(ctx context.Context, c driver.Conn, config driver.ConsumerConfig) (driver.Consumer, error) {
	if v.consume != nil {
		config = v.consume(config)
	}
	inner, err := c.NewConsumer(ctx, config)
	if err != nil {
		return nil, err
	}
	r := &consumer{Consumer: inner, v: v, next: driver.Consumer.Receive}
	if v.receive != nil {
		r.next = v.receive()
	}
	if full, ok := inner.(driver.Replier); ok {
		r.Replier = full
		return r, nil
	}
	return struct{ driver.Consumer }{r}, nil
}

type consumer struct {
	driver.Consumer
	driver.Replier
	v    variant
	next func(r driver.Consumer, ctx context.Context, b driver.Batch) (int, error)
	got  driver.Batch
}

func (r *consumer) Receive(ctx context.Context, b driver.Batch) (int, error) {
	n, err := r.next(r.Consumer, ctx, b)
	r.got = append(r.got, b[:n]...)
	return n, err
}

func (r *consumer) Settle(ctx context.Context, b driver.Batch, o driver.Outcome) error {
	if r.v.settle != nil {
		return r.v.settle(r.Consumer, ctx, b, o)
	}
	return r.Consumer.Settle(ctx, b, o)
}

func (r *consumer) Close(ctx context.Context) error {
	if r.v.quit != nil {
		return r.v.quit(r, ctx)
	}
	return r.Consumer.Close(ctx)
}
