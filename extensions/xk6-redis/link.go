package redis

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// link keeps one wire to the server that has a key, and makes a new one on the next use after it broke.
type link struct {
	conn    *conn
	key     string
	timeout time.Duration // see [wire]
	barrier *barrier      // what every wire asks for, each with one of its own; nil where nothing is

	dialing chan struct{} // a lock that can be waited for with a context
	mu      sync.Mutex
	wire    *wire
	closed  bool
}

func (c *conn) link(key string, extra time.Duration) *link {
	return &link{conn: c, key: key, timeout: c.options.Duration("timeout") + extra, dialing: make(chan struct{}, 1)}
}

// current is the wire, if there is one that is of use.
func (l *link) current() (*wire, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, driver.ErrClosed
	}
	if l.wire == nil || l.wire.broken() {
		return nil, nil
	}
	return l.wire, nil
}

// get gives the wire and dials where there is none.
func (l *link) get(ctx context.Context) (*wire, error) {
	if w, err := l.current(); w != nil || err != nil {
		return w, err
	}
	select {
	case l.dialing <- struct{}{}:
		defer func() { <-l.dialing }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if w, err := l.current(); w != nil || err != nil {
		return w, err
	}
	if l.wire != nil {
		l.conn.moved(ctx)
	}
	w, err := l.dial(ctx)
	if err != nil {
		l.conn.moved(ctx)
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		w.abort(driver.ErrClosed)
		<-w.finished
		return nil, driver.ErrClosed
	}
	l.wire = w
	return w, nil
}

func (l *link) dial(ctx context.Context) (*wire, error) {
	b := l.barrier
	if b == nil {
		return l.conn.dial(ctx, l.key, l.timeout, nil)
	}
	return l.conn.dial(ctx, l.key, l.timeout+2*b.timeout, b.again())
}

// do is [wire.do] on the wire.
func (l *link) do(ctx context.Context, commands []byte, replies int, parse func(r reader, i int) error) error {
	w, err := l.get(ctx)
	if err != nil {
		return err
	}
	return w.do(ctx, commands, replies, parse)
}

// close waits until nothing is due, or ctx ends.
func (l *link) close(ctx context.Context) error {
	l.mu.Lock()
	l.closed = true
	w := l.wire
	l.mu.Unlock()
	if w == nil {
		return nil
	}
	return w.close(ctx)
}

// dial connects to the server that has the key and greets it.
func (c *conn) dial(ctx context.Context, key string, timeout time.Duration, b *barrier) (*wire, error) {
	node, err := c.node(ctx, key)
	if err != nil {
		return nil, err
	}
	o := node.Options()
	ctx, cancel := context.WithTimeout(ctx, o.DialTimeout)
	defer cancel()
	socket, err := o.Dialer(ctx, o.Network, o.Addr)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = socket.SetDeadline(time.Unix(1, 0)) })
	in := newReader(socket)
	id, err := c.greet(socket, in)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		_ = socket.Close()
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, err
	}
	w := newWire(socket, in, timeout, b)
	w.id = id
	return w, nil
}

// greet authenticates a new connection and makes it ready. Not everybody may use CLIENT, and it is not essential.
func (c *conn) greet(socket interface{ Write(b []byte) (int, error) }, in reader) (id int64, err error) {
	var out []byte
	must := 0
	if c.password != "" {
		if must++; c.user != "" {
			out = appendCommand(out, "AUTH", c.user, c.password)
		} else {
			out = appendCommand(out, "AUTH", c.password)
		}
	}
	if c.db != 0 {
		must++
		out = appendCommand(out, "SELECT", strconv.Itoa(c.db))
	}
	out = appendCommand(out, "CLIENT", "SETNAME", c.name)
	out = appendCommand(out, "CLIENT", "ID")
	if _, err := socket.Write(out); err != nil {
		return 0, err
	}
	for range must {
		if _, err := in.skip(); err != nil {
			return 0, err
		}
	}
	if _, err := in.skip(); err != nil && !optional(err) {
		return 0, err
	}
	if id, err = in.integer(); err != nil {
		if !optional(err) {
			return 0, err
		}
		id = -1
	}
	return id, nil
}

// optional tells whether an answer only says that CLIENT is not allowed or not known.
func optional(err error) bool {
	return answered(err) && !strings.HasPrefix(err.Error(), "NOAUTH") && !strings.HasPrefix(err.Error(), "LOADING")
}

// end closes without waiting for what is due.
func (l *link) end(ctx context.Context) error {
	l.mu.Lock()
	l.closed = true
	w := l.wire
	l.mu.Unlock()
	if w == nil {
		return nil
	}
	w.abort(driver.ErrClosed)
	return w.close(ctx)
}
