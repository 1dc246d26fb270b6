package engine

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// Endpoint describes a connection. Equal words describe one connection.
type Endpoint struct {
	Address *driver.Address
	Words   string
	Uses    map[string]any  // the options in force, for the result: see [Topic.Use]
	Network *driver.Network // of the VU that opens the connection; nil is the machine's
}

// ErrEnded is the error of opening something after the run has ended.
var ErrEnded = errors.New("the test has ended")

// OpenTimeout bounds the opening of anything.
const OpenTimeout = 15 * time.Second

// connections are the connections of a run by their words.
type connections struct {
	mu     sync.Mutex
	open   map[string]*connection
	closed bool
}

// connection is one connection, with its publishers, replies and repliers by their keys.
type connection struct {
	mu     sync.Mutex // held while opening
	conn   driver.Conn
	opened map[string]any
}

func (c *connections) find(e Endpoint) (*connection, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, ErrEnded
	}
	found, ok := c.open[e.Words]
	if !ok {
		found = &connection{opened: map[string]any{}}
		c.open[e.Words] = found
	}
	return found, nil
}

// Connect opens a connection, or returns the one that is open. After a failure the next call tries
// again.
func (r *Run) Connect(ctx context.Context, e Endpoint) (driver.Conn, error) {
	self := func(_ context.Context, conn driver.Conn) (driver.Conn, error) { return conn, nil }
	return opening(ctx, r, e, "itself", self)
}

func (c *connection) connect(ctx context.Context, e Endpoint) (driver.Conn, error) {
	if c.conn != nil {
		return c.conn, nil
	}
	ctx, cancel := context.WithTimeout(ctx, OpenTimeout)
	defer cancel()
	conn, err := e.Address.OpenThrough(ctx, e.Network, "xk6-broker")
	if err == nil {
		c.conn = conn
	}
	return c.conn, err
}

// opening opens something on a connection, once for each key. All of one key have one type.
func opening[T any](
	ctx context.Context, r *Run, e Endpoint, key string, open func(context.Context, driver.Conn) (T, error),
) (opened T, err error) {
	c, err := r.connections.find(e)
	if err != nil {
		return opened, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if found, ok := c.opened[key].(T); ok {
		return found, nil
	}
	conn, err := c.connect(ctx, e)
	if err != nil {
		return opened, err
	}
	ctx, cancel := context.WithTimeout(ctx, OpenTimeout)
	defer cancel()
	if opened, err = open(ctx, conn); err == nil {
		c.opened[key] = opened
	}
	return opened, err
}

// Publisher opens a producer on a connection, or returns the one that equal words describe. If it
// fails, its errors are part of the topic's result.
func (r *Run) Publisher(
	ctx context.Context, e Endpoint, words string, c driver.ProducerConfig, uses map[string]any,
) (*Publisher, error) {
	topic := r.Topic(e.Address, c.Topic)
	topic.Use("connect", e.Uses)
	topic.Use("producer", uses)
	return opening(ctx, r, e, "publisher "+words, func(ctx context.Context, conn driver.Conn) (*Publisher, error) {
		return r.NewPublisher(ctx, conn, topic, c)
	})
}

// Disconnect closes all connections. Nothing can be opened afterwards.
func (r *Run) Disconnect(ctx context.Context) error {
	r.connections.mu.Lock()
	r.connections.closed = true
	all := slices.Collect(maps.Values(r.connections.open))
	r.connections.mu.Unlock()
	return each(ctx, OpenTimeout, all, func(c *connection, ctx context.Context) error {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.conn == nil {
			return nil
		}
		return c.conn.Close(ctx)
	})
}

// each calls a function for all, concurrently and within a time.
func each[T any](ctx context.Context, limit time.Duration, all []T, do func(T, context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	errs := make([]error, len(all))
	var wg sync.WaitGroup
	for i, one := range all {
		wg.Go(func() { errs[i] = do(one, ctx) })
	}
	wg.Wait()
	return errors.Join(errs...)
}
