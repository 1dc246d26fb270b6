package redis

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver/redial"
)

// link is one wire to the server that has a key.
type link struct {
	*redial.Link[*wire]
	conn    *conn
	key     string
	barrier *barrier // what every wire asks for, each with one of its own; nil where nothing is
}

// link makes a link whose server may be silent for longer than the option timeout, by so much.
func (c *conn) link(key string, extra time.Duration) *link {
	l := &link{conn: c, key: key}
	timeout := c.options.Duration("timeout") + extra
	l.Link = redial.New(func(ctx context.Context) (*wire, error) {
		if _, again := l.Last(); again {
			c.moved(ctx)
		}
		within, b := timeout, l.barrier
		if b != nil {
			within, b = timeout+2*b.timeout, b.again()
		}
		w, err := c.dial(ctx, key, within, b)
		if err != nil {
			c.moved(ctx)
		}
		return w, err
	}, (*wire).broken)
	return l
}

// current returns the wire if it is usable, else nil.
func (l *link) current() *wire {
	if w, ok := l.Last(); ok && !w.broken() {
		return w
	}
	return nil
}

// do is [wire.do] on the wire.
func (l *link) do(ctx context.Context, commands []byte, replies int, parse func(r reader, i int) error) error {
	w, err := l.Get(ctx)
	if err != nil {
		return err
	}
	return w.do(ctx, commands, replies, parse)
}

// close waits until nothing is due, or ctx ends.
func (l *link) close(ctx context.Context) error {
	return l.Close(func(w *wire) error { return w.close(ctx) })
}

// end closes without waiting for replies.
func (l *link) end(ctx context.Context) error {
	if w, ok := l.Last(); ok {
		w.abort(driver.ErrClosed)
	}
	return l.close(ctx)
}

// unblock ends the read that waits at the server, so that no message is delivered to a closed
// connection, and closes the link.
func (l *link) unblock(ctx context.Context) error {
	w := l.current()
	if w == nil || w.id < 0 {
		return l.end(ctx)
	}
	node, err := l.conn.node(ctx, l.key)
	if err != nil {
		return errors.Join(err, l.end(ctx))
	}
	closed := make(chan error, 1)
	go func() { closed <- l.close(ctx) }()
	for {
		// A read that was on its way to the server is not blocked yet, hence the repetition.
		if err := node.ClientUnblock(ctx, w.id).Err(); err != nil {
			return errors.Join(l.end(ctx), <-closed)
		}
		select {
		case err := <-closed:
			return err
		case <-time.After(2 * time.Millisecond):
		}
	}
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

// greet authenticates and prepares a new connection. CLIENT may be forbidden, and is optional.
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

// optional reports whether an answer means that CLIENT is forbidden or unknown.
func optional(err error) bool {
	return answered(err) && !strings.HasPrefix(err.Error(), "NOAUTH") && !strings.HasPrefix(err.Error(), "LOADING")
}
