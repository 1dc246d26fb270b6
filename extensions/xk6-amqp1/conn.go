package amqp1

import (
	"cmp"
	"context"
	"net/url"
	"runtime/debug"
	"strings"
	"time"

	amqp "github.com/Azure/go-amqp"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver/redial"
)

// conn is one AMQP connection, which is dialed again if it is needed after it broke. Each producer
// and consumer has a session of its own on it.
type conn struct {
	mode    mode
	options driver.Values
	timeout time.Duration
	link    *redial.Link[*connection]
}

func open(ctx context.Context, t driver.Target, m mode) (driver.Conn, error) {
	d, err := newDialer(t)
	if err != nil {
		return nil, err
	}
	c := &conn{
		mode: m, options: t.Options, timeout: t.Options.Duration("timeout"),
		link: redial.New(d.dial, (*connection).broken),
	}
	// Some servers refuse a login only with the first session.
	err = c.session(ctx, func(context.Context, *amqp.Session, *connection) error { return nil })
	if err != nil {
		_ = c.Close(ctx)
		return nil, err
	}
	return c, nil
}

// address returns a topic's address. RabbitMQ has a form for each mode, other brokers have names.
func (c *conn) address(on *connection, topic string) string {
	template := c.options.String("address")
	switch {
	case template != "":
		return strings.ReplaceAll(template, "{topic}", topic)
	case !on.rabbitmq():
		return topic
	case c.mode == pubsub:
		return "/exchanges/" + url.PathEscape(topic)
	default:
		return "/queues/" + url.PathEscape(topic)
	}
}

// session opens a session and calls open, within the timeout. It closes the session if open fails.
func (c *conn) session(
	ctx context.Context, open func(ctx context.Context, s *amqp.Session, on *connection) error,
) error {
	on, err := c.link.Get(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	s, err := on.NewSession(ctx, nil)
	if err != nil {
		return err
	}
	if err := open(ctx, s, on); err != nil {
		_ = s.Close(ctx)
		return err
	}
	return nil
}

// Info implements [driver.Informer].
func (c *conn) Info() driver.Info {
	info := driver.Info{Client: "go-amqp" + clientVersion()}
	if on, ok := c.link.Last(); ok {
		info.Server = strings.TrimSpace(cmp.Or(on.product, "AMQP 1.0") + " " + on.version)
	}
	return info
}

// clientVersion is the version of the library in this program, after a space; empty if not known.
func clientVersion() string {
	build, _ := debug.ReadBuildInfo()
	if build == nil {
		return ""
	}
	for _, m := range build.Deps {
		if m.Path == "github.com/Azure/go-amqp" {
			return " " + strings.TrimPrefix(m.Version, "v")
		}
	}
	return ""
}

// As lends the current *amqp.Conn.
func (c *conn) As(target any) bool {
	on, ok := c.link.Last()
	return ok && driver.As(target, on.Conn)
}

// Close closes the connection.
func (c *conn) Close(ctx context.Context) error {
	return c.link.Close(func(on *connection) error {
		on.close(ctx)
		return nil
	})
}
