package nats

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// dialer opens the sockets of one connection and can cut them, because nats.go takes no context to
// connect, and does not end a blocked write.
type dialer struct {
	ctx    context.Context // the life of the connection, which is what the context stands for
	cancel context.CancelFunc
	dial   driver.Dial
	within time.Duration

	mu   sync.Mutex
	open net.Conn
	err  error // of the last attempt, which nats.go replaces by "no servers available"
}

func newDialer(dial driver.Dial, timeout time.Duration) *dialer {
	d := &dialer{dial: dial, within: timeout}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	return d
}

// Dial implements the interface that nats.go asks for.
func (d *dialer) Dial(network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(d.ctx, d.within)
	defer cancel()
	c, err := d.dial(ctx, network, address)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.err = err
	if err != nil {
		return nil, err
	}
	if d.ctx.Err() != nil {
		_ = c.Close()
		return nil, net.ErrClosed
	}
	d.open = socket{c}
	return d.open, nil
}

// cut breaks the sockets and every later attempt.
func (d *dialer) cut() {
	d.cancel()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open != nil {
		_ = d.open.Close()
	}
}

func (d *dialer) lastError() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.err
}

// socket breaks when a write fails. nats.go would continue after a partial write, which the server
// cannot parse; now it reconnects.
type socket struct{ net.Conn }

func (s socket) Write(b []byte) (int, error) {
	n, err := s.Conn.Write(b)
	if err != nil {
		_ = s.Close()
	}
	return n, err
}
