package amqp

import (
	"context"
	"errors"
	"fmt"
	"sync"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// mode tells the drivers of this package apart.
type mode uint8

const (
	queue  mode = iota // a topic is a queue
	stream             // a topic is a stream queue, which every consumer reads for itself
	pubsub             // a topic is an exchange, and every group has a queue of its own
)

// What a connection is for, as the broker's own tools show it.
const (
	publishing = "(publish)"
	consuming  = "(consume)"
)

// conn owns two AMQP connections, since the broker slows down and blocks whole connections that publish: with one,
// deliveries and acks would suffer for what is published. Each is opened when it is first needed.
type conn struct {
	mode       mode
	hosts      int
	publishing *link // producers
	consuming  *link // everything else

	life    context.Context // ends with Close
	stop    context.CancelFunc
	running sync.WaitGroup // the goroutines of producers and consumers

	mu        sync.Mutex
	consumers map[*consumer]struct{}
	groups    map[string]map[string]struct{} // of a pubsub topic, the queues of the groups seen
}

// queueConn is a [conn] whose consumers settle, so that there is a backlog.
type queueConn struct{ *conn }

func (m mode) open(ctx context.Context, t driver.Target) (driver.Conn, error) {
	d, err := newDialer(t)
	if err != nil {
		return nil, err
	}
	c := &conn{
		mode:       m,
		hosts:      len(d.hosts),
		publishing: newLink(d, publishing),
		consuming:  newLink(d, consuming),
		consumers:  map[*consumer]struct{}{},
		groups:     map[string]map[string]struct{}{},
	}
	c.life, c.stop = context.WithCancel(context.Background())
	if _, err := c.consuming.connect(ctx); err != nil {
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
		Nodes:  c.hosts,
	}
	if open := c.consuming.lent.Load(); open != nil {
		info.Server = fmt.Sprintf("%v %v", open.Properties["product"], open.Properties["version"])
	}
	return info
}

// As lends the *amqp091.Connection that consumers use at the moment.
func (c *conn) As(target any) bool {
	to, ok := target.(**amqp.Connection)
	open := c.consuming.lent.Load()
	if !ok || open == nil {
		return false
	}
	*to = open.Connection
	return true
}
