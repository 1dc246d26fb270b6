package amqp

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// mode is one of the drivers of this package.
type mode uint8

const (
	queue  mode = iota // a topic is a queue
	stream             // a topic is a stream queue, which every consumer reads on its own
	pubsub             // a topic is an exchange, and every group has a queue
)

// Purposes of connections, shown by the broker's own tools.
const (
	publishing = "(publish)"
	consuming  = "(consume)"
)

// conn owns two AMQP connections, because the broker slows down and blocks whole connections that
// publish. Each is opened when it is first needed.
type conn struct {
	mode          mode
	hosts         []string
	vhost         string
	reopenTimeout time.Duration // the time to connect to every server in turn
	publishing    link          // for producers
	consuming     link          // for the rest

	life    context.Context // ends with Close
	stop    context.CancelFunc
	running sync.WaitGroup // the goroutines of producers and consumers

	mu     sync.Mutex
	groups map[string]map[string]struct{} // by pubsub topic, the queues of the groups seen
}

// queueConn is a [conn] whose consumers settle, so that there is a backlog.
type queueConn struct{ *conn }

func (m mode) open(ctx context.Context, t driver.Target) (driver.Conn, error) {
	d, err := newDialer(t)
	if err != nil {
		return nil, err
	}
	c := &conn{
		mode:          m,
		hosts:         d.hosts,
		vhost:         d.config.Vhost,
		reopenTimeout: d.timeout * time.Duration(len(d.hosts)),
		publishing:    newLink(d, publishing),
		consuming:     newLink(d, consuming),
		groups:        map[string]map[string]struct{}{},
	}
	c.life, c.stop = context.WithCancel(context.Background())
	if _, err := c.consuming.Get(ctx); err != nil {
		c.stop()
		return nil, err
	}
	if m == stream {
		return c, nil
	}
	return queueConn{c}, nil
}

func (c *conn) Close(ctx context.Context) error {
	c.stop()
	err := errors.Join(c.publishing.close(ctx), c.consuming.close(ctx))
	c.running.Wait()
	return err
}

func (c *conn) Info() driver.Info {
	info := driver.Info{
		Client: fmt.Sprintf("amqp091-go %v", amqp.NewConnectionProperties()["version"]),
		Nodes:  len(c.hosts),
	}
	if open, ok := c.consuming.Last(); ok {
		info.Server = fmt.Sprintf("%v %v", open.Properties["product"], open.Properties["version"])
	}
	return info
}

// As lends the current *amqp091.Connection of consumers.
func (c *conn) As(target any) bool {
	open, ok := c.consuming.Last()
	return ok && driver.As(target, open.Connection)
}
