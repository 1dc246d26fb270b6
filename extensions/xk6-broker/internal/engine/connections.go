package engine

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// Endpoint describes a connection, which the first use opens. Those that are described in the same words are one.
type Endpoint struct {
	Address *driver.Address
	Words   string
	Uses    map[string]any  // the options in force, for the result: see [Topic.Use]
	Network *driver.Network // of the VU that opens the connection; nil is the machine's
}

// ErrEnded says that the run opens no connections any more.
var ErrEnded = errors.New("the test has ended")

// OpenTimeout bounds the opening of anything: a server that does not answer is an error, not a hang.
const OpenTimeout = 15 * time.Second

// connections are those of a run, by their words.
type connections struct {
	mu     sync.Mutex
	open   map[string]*connection
	closed bool
}

// connection is one of them, with the producers on it.
type connection struct {
	mu         sync.Mutex // held while opening, so that nobody opens it twice
	conn       driver.Conn
	publishers map[string]*Publisher
	replies    map[string]*Replies // to requests that go out by it
	repliers   map[string]*replier // by the topic that they reply to
}

func (c *connections) of(e Endpoint) (*connection, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, ErrEnded
	}
	one, ok := c.open[e.Words]
	if !ok {
		one = &connection{publishers: map[string]*Publisher{}, replies: map[string]*Replies{}, repliers: map[string]*replier{}}
		c.open[e.Words] = one
	}
	return one, nil
}

func (one *connection) connect(ctx context.Context, e Endpoint) (driver.Conn, error) {
	if one.conn != nil {
		return one.conn, nil
	}
	ctx, cancel := context.WithTimeout(ctx, OpenTimeout)
	defer cancel()
	conn, err := e.Address.OpenThrough(ctx, e.Network, "xk6-broker")
	if err != nil {
		return nil, err
	}
	one.conn = conn
	return conn, nil
}

// Connect gives a connection, open. A failed attempt is counted, and the next use tries again.
func (r *Run) Connect(ctx context.Context, e Endpoint) (driver.Conn, error) {
	one, err := r.connections.of(e)
	if err != nil {
		return nil, err
	}
	one.mu.Lock()
	defer one.mu.Unlock()
	return one.connect(ctx, e)
}

// Publisher gives a producer on a connection, open: the one that others have who describe it in the same words.
func (r *Run) Publisher(ctx context.Context, e Endpoint, words string, c driver.ProducerConfig, uses map[string]any) (*Publisher, error) {
	one, err := r.connections.of(e)
	if err != nil {
		return nil, err
	}
	one.mu.Lock()
	defer one.mu.Unlock()
	if pub, ok := one.publishers[words]; ok {
		return pub, nil
	}
	topic := r.Topic(e.Address, c.Topic) // also where it cannot be opened: its errors are part of the result
	topic.Use("connect", e.Uses)
	topic.Use("producer", uses)
	conn, err := one.connect(ctx, e)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, OpenTimeout)
	defer cancel()
	pub, err := r.NewPublisher(ctx, conn, topic, c)
	if err != nil {
		return nil, err
	}
	one.publishers[words] = pub
	return pub, nil
}

// Disconnect closes all connections. Nothing can be opened afterwards.
func (r *Run) Disconnect(ctx context.Context) error {
	r.connections.mu.Lock()
	r.connections.closed = true
	all := r.connections.open
	r.connections.mu.Unlock()
	var wg sync.WaitGroup
	var mu sync.Mutex
	var errs []error
	for _, one := range all {
		wg.Go(func() {
			one.mu.Lock()
			defer one.mu.Unlock()
			if one.conn == nil {
				return
			}
			if err := one.conn.Close(ctx); err != nil {
				mu.Lock()
				errs = append(errs, err)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
