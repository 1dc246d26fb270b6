package amqp1

import (
	"cmp"
	"context"
	"crypto/rand"
	"net"
	"strings"
	"time"

	amqp "github.com/Azure/go-amqp"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// dialer opens connections to one of the servers of a target.
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
	if secure, _ := t.TLS(); secure != nil { // Dialer has checked it
		port = "5671"
	}
	d := &dialer{
		open: open, hosts: t.Addresses(port), within: t.Options.Duration("connectTimeout"),
		name: cmp.Or(t.ClientName, "xk6-broker"),
	}
	d.config = amqp.ConnOptions{
		SASLType:     authentication(t),
		IdleTimeout:  t.Options.Duration("idleTimeout"),
		WriteTimeout: t.Options.Duration("timeout"),
		Properties:   map[string]any{"product": "xk6-broker"},
	}
	if vhost := strings.Trim(t.URL.Path, "/"); vhost != "" {
		d.config.HostName = "vhost:" + vhost // RabbitMQ's form
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

// connection is one AMQP connection, with the server's own name and version.
type connection struct {
	*amqp.Conn
	stream           net.Conn
	product, version string
}

func (c *connection) rabbitmq() bool { return c.product == "RabbitMQ" }

func (c *connection) broken() bool {
	select {
	case <-c.Done():
		return true
	default:
		return false
	}
}

// close closes the connection, or its socket if ctx ends before.
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
	connected := &connection{Conn: c, stream: stream}
	connected.product, _ = c.Properties()["product"].(string)
	connected.version, _ = c.Properties()["version"].(string)
	return connected, nil
}
