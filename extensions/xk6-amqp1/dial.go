package amqp1

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"net"
	"strings"
	"time"

	amqp "github.com/Azure/go-amqp"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// dialer opens connections to any one of the servers that a target names.
type dialer struct {
	open   driver.Dial
	hosts  []string
	within time.Duration
	config amqp.ConnOptions
	name   string
}

func newDialer(t driver.Target) (*dialer, error) {
	open, err := t.Dialer()
	if err != nil {
		return nil, err
	}
	port := "5672"
	if secure, _ := t.TLS(); secure != nil { // its error was Dialer's
		port = "5671"
	}
	d := &dialer{open: open, hosts: t.Addresses(port), within: t.Options.Duration("connectTimeout"), name: cmp.Or(t.ClientName, "xk6-broker")}
	d.config = amqp.ConnOptions{
		SASLType:     authentication(t),
		IdleTimeout:  t.Options.Duration("idleTimeout"),
		WriteTimeout: t.Options.Duration("timeout"),
		Properties:   map[string]any{"product": "xk6-broker"},
	}
	if vhost := strings.Trim(t.URL.Path, "/"); vhost != "" {
		d.config.HostName = "vhost:" + vhost // as RabbitMQ has it
	}
	return d, nil
}

func authentication(t driver.Target) amqp.SASLType {
	user, password := t.Login()
	switch how := t.Options.String("sasl"); {
	case how == "external":
		return amqp.SASLTypeExternal("")
	case how == "plain", how == "auto" && user != "":
		return amqp.SASLTypePlain(user, password)
	default:
		return amqp.SASLTypeAnonymous()
	}
}

// connection is one AMQP connection.
type connection struct {
	*amqp.Conn
	stream net.Conn
	product
}

func (c *connection) broken() bool {
	select {
	case <-c.Done():
		return true
	default:
		return false
	}
}

// begin opens a session. RabbitMQ 4.0 now and then passes over one on the channel of another whose end it has just answered: so it is asked for again,
// which is on another channel.
func (c *connection) begin(ctx context.Context) (*amqp.Session, error) {
	for {
		attempt, cancel := context.WithTimeout(ctx, time.Second)
		s, err := c.NewSession(attempt, nil)
		cancel()
		if ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
			return s, err
		}
	}
}

// close says goodbye, for no longer than ctx lives. What it says of a connection that broke is of no use.
func (c *connection) close(ctx context.Context) {
	defer context.AfterFunc(ctx, func() { _ = c.stream.Close() })()
	_ = c.Close()
}

// dial connects to the first server that answers; the error is the last one's.
func (d *dialer) dial(ctx context.Context) (*connection, error) {
	var last error
	for _, host := range d.hosts {
		c, err := d.dialHost(ctx, host)
		if err == nil {
			return c, nil
		}
		last = err
		if ctx.Err() != nil {
			break
		}
	}
	return nil, last
}

func (d *dialer) dialHost(ctx context.Context, host string) (*connection, error) {
	ctx, cancel := context.WithTimeout(ctx, d.within)
	defer cancel()
	stream, err := d.open(ctx, "tcp", host)
	if err != nil {
		return nil, err
	}
	config := d.config
	config.ContainerID = d.name + " " + rand.Text()
	if config.HostName == "" {
		config.HostName, _, _ = net.SplitHostPort(host)
	}
	c, err := amqp.NewConn(ctx, stream, &config)
	if err != nil {
		_ = stream.Close()
		return nil, refused(err)
	}
	return &connection{Conn: c, stream: stream, product: productOf(c.Properties())}, nil
}
