package js

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/load"
)

// links are the open connections of the process. VUs that describe a connection in the same words share it.
type links struct {
	run    *run
	mu     sync.Mutex
	open   map[string]*link
	closed bool
}

// link is one open connection, with the producers on it.
type link struct {
	mu         sync.Mutex // held while opening, so that VUs do not open it twice
	conn       driver.Conn
	publishers map[string]*load.Publisher
}

func (l *links) link(key string) (*link, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, errEnded
	}
	one, ok := l.open[key]
	if !ok {
		one = &link{publishers: map[string]*load.Publisher{}}
		l.open[key] = one
	}
	return one, nil
}

// openTimeout bounds the opening of anything: a server that does not answer is an error, not a hang.
const openTimeout = 15 * time.Second

// conn gives the connection of that name, open. A failed attempt is counted and the next use tries again.
func (l *links) conn(ctx context.Context, c *connection, name string) (driver.Conn, error) {
	one, err := l.link(c.key + " " + name)
	if err != nil {
		return nil, err
	}
	one.mu.Lock()
	defer one.mu.Unlock()
	return one.connect(ctx, c)
}

func (one *link) connect(ctx context.Context, c *connection) (driver.Conn, error) {
	if one.conn != nil {
		return one.conn, nil
	}
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	conn, err := c.address.Open(ctx, "xk6-broker")
	if err != nil {
		return nil, err
	}
	one.conn = conn
	return conn, nil
}

// publisher gives the producer that p describes on the connection of that name, open.
func (l *links) publisher(ctx context.Context, p *producer, name string) (*load.Publisher, error) {
	one, err := l.link(p.conn.key + " " + name)
	if err != nil {
		return nil, err
	}
	one.mu.Lock()
	defer one.mu.Unlock()
	if pub, ok := one.publishers[p.key]; ok {
		return pub, nil
	}
	topic := l.run.Topic(p.conn.address, p.config.Topic) // also where it cannot be opened: its errors are part of the result
	topic.Use("connect", p.conn.uses)
	topic.Use("producer", p.uses)
	conn, err := one.connect(ctx, p.conn)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	pub, err := l.run.NewPublisher(ctx, conn, topic, p.config)
	if err != nil {
		return nil, err
	}
	one.publishers[p.key] = pub
	return pub, nil
}

// close closes all connections. Nothing can be opened afterwards.
func (l *links) close(ctx context.Context) error {
	l.mu.Lock()
	l.closed = true
	all := l.open
	l.mu.Unlock()
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
