package amqp

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver/redial"
)

// dialer opens connections to one of the servers of a target.
type dialer struct {
	open      driver.Dial
	hosts     []string
	timeout   time.Duration
	certified bool // the client has a certificate
	config    amqp.Config
	name      string
}

func newDialer(t driver.Target) (*dialer, error) {
	open, err := t.Dialer()
	if err != nil {
		return nil, err
	}
	secure, _ := t.TLS() // Dialer has checked it
	port := "5672"
	if secure != nil {
		port = "5671"
	}
	return &dialer{
		open: open, hosts: t.Addresses(port), timeout: t.Options.Duration("connectTimeout"), name: t.ClientName,
		certified: secure != nil && secure.GetClientCertificate != nil,
		config: amqp.Config{
			SASL:      []amqp.Authentication{authentication(t)},
			Vhost:     vhost(t.URL),
			Heartbeat: t.Options.Duration("heartbeat"),
			FrameSize: int(t.Options.Int("frameMax")),
			Locale:    "en_US",
		},
	}, nil
}

// vhost is the path of the URL without its first slash; "/" if the path is empty.
func vhost(u *url.URL) string {
	if v := strings.TrimPrefix(u.Path, "/"); v != "" {
		return v
	}
	return "/"
}

func authentication(t driver.Target) amqp.Authentication {
	if t.Options.String("sasl") == "external" {
		return &amqp.ExternalAuth{}
	}
	user, password := t.Login()
	if user == "" {
		user, password = "guest", "guest"
	}
	return &amqp.PlainAuth{Username: user, Password: password}
}

// dial connects to the first server that answers; the error is the last one's.
func (d *dialer) dial(ctx context.Context, purpose string) (*connection, error) {
	var last error
	for _, host := range d.hosts {
		c, s, err := d.dialHost(ctx, host, purpose)
		if err == nil {
			open := &connection{Connection: c, socket: s, watched: make(chan struct{})}
			go open.watch(c.NotifyBlocked(make(chan amqp.Blocking, 8)))
			return open, nil
		}
		last = err
		if ctx.Err() != nil {
			break
		}
	}
	return nil, last
}

func (d *dialer) dialHost(ctx context.Context, host, purpose string) (*amqp.Connection, *socket, error) {
	late := fmt.Errorf("no answer from %s within %s: %w", host, d.timeout, context.DeadlineExceeded)
	ctx, cancel := context.WithTimeoutCause(ctx, d.timeout, late)
	defer cancel()
	stream, err := d.open(ctx, "tcp", host)
	if err != nil {
		return nil, nil, inContext(ctx, err)
	}
	// The handshake has no context: closing the connection ends it.
	unwatch := context.AfterFunc(ctx, func() { _ = stream.Close() })
	defer unwatch()
	config := d.config
	config.Properties = amqp.NewConnectionProperties()
	config.Properties.SetClientConnectionName(strings.TrimSpace(d.name + " " + purpose))
	s := newSocket(stream)
	c, err := amqp.Open(s, config)
	if err == nil && !unwatch() {
		err = ctx.Err() // ctx ended at the last moment and the socket is being closed
	}
	if err != nil {
		_ = s.Close()
		if server := (*amqp.Error)(nil); errors.As(err, &server) && server.Server {
			return nil, nil, err
		}
		cause := s.cause()
		switch {
		case cause == nil && d.certified && !s.heard.Load():
			err = errCertificate // a reset connection can lose the alert
		case cause != nil:
			err = cause // the library reports a wrong password for every failure here
		}
		return nil, nil, inContext(ctx, err)
	}
	return c, s, nil
}

// inContext returns the context's cause instead of its consequence.
func inContext(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// again is [redial.Until] with a timeout for each attempt.
func again[T any](
	ctx context.Context, timeout time.Duration, open func(context.Context) (T, error), failed func(error),
) (T, bool) {
	return redial.Until(ctx, func(ctx context.Context) (T, error) {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		return open(ctx)
	}, failed)
}
