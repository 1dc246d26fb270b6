package amqp1

import (
	"context"
	"runtime/debug"
	"strings"
	"time"

	amqp "github.com/Azure/go-amqp"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver/redial"
)

// conn is one AMQP connection, which is dialed again when it is needed after it broke. Each producer and consumer has a session of its own on it.
type conn struct {
	mode       mode
	hosts      []string
	vhost      string // of RabbitMQ
	options    driver.Values
	timeout    time.Duration
	link       *redial.Link[*connection]
	management management // nil where the broker has none
}

func open(ctx context.Context, t driver.Target, m mode) (driver.Conn, error) {
	d, err := newDialer(t)
	if err != nil {
		return nil, err
	}
	c := &conn{
		mode: m, hosts: d.hosts, vhost: d.config.HostName, options: t.Options, timeout: t.Options.Duration("timeout"),
		link: redial.New(d.dial, (*connection).broken),
	}
	// Some servers refuse nobody before there is a session. This one is of no other use, and ends with the connection.
	err = c.session(ctx, func(_ context.Context, _ *amqp.Session, on *connection) error {
		return on.speaks(t.Options.String("address"))
	})
	if err != nil {
		_ = c.Close(ctx)
		return nil, err
	}
	c.management = c.manage()
	return c, nil
}

// session opens a session, and what is to be opened on it, within the timeout. What cannot be had is closed again.
func (c *conn) session(ctx context.Context, open func(ctx context.Context, s *amqp.Session, on *connection) error) error {
	on, err := c.link.Get(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	s, err := on.begin(ctx)
	if err != nil {
		return err
	}
	if err := open(ctx, s, on); err != nil {
		_ = s.Close(ctx)
		return err
	}
	return nil
}

// Info tells what the connection is to.
func (c *conn) Info() driver.Info {
	info := driver.Info{Client: "go-amqp" + clientVersion()}
	if on, ok := c.link.Last(); ok {
		info.Server = on.String()
	}
	return info
}

// clientVersion is that of the library in this program, after a space; empty where the program does not know.
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

// Close says goodbye.
func (c *conn) Close(ctx context.Context) error {
	return c.link.Close(func(on *connection) error {
		on.close(ctx)
		return nil
	})
}
