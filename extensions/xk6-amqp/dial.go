package amqp

import (
	"context"
	"crypto/tls"
	"errors"
	"maps"
	"net"
	"net/url"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// dialer opens connections to any one of the servers that a target names.
type dialer struct {
	hosts  []string
	tls    *tls.Config // nil for plain text
	config amqp.Config
	name   string
}

func newDialer(t driver.Target) (*dialer, error) {
	if t.URL.Scheme == "amqps" { // the one scheme whose name says it otherwise than by ending in tls
		t.Options = maps.Clone(t.Options)
		t.Options["tls"] = true
	}
	secure, err := t.TLS()
	if err != nil {
		return nil, err
	}
	d := &dialer{name: t.ClientName, tls: secure}
	for _, h := range t.Hosts {
		d.hosts = append(d.hosts, withPort(h, secure != nil))
	}
	d.config = amqp.Config{
		SASL:      []amqp.Authentication{authentication(t.URL, t.Options.String("sasl"))},
		Vhost:     vhost(t.URL),
		Heartbeat: t.Options.Duration("heartbeat"),
		FrameSize: int(t.Options.Int("frameMax")),
		Locale:    "en_US",
	}
	return d, nil
}

// vhost is the path of the URL without its first slash; "/" where the path is empty.
func vhost(u *url.URL) string {
	if v := strings.TrimPrefix(u.Path, "/"); v != "" {
		return v
	}
	return "/"
}

// withPort completes a host that names no port, or none at all.
func withPort(host string, secure bool) string {
	if _, _, err := net.SplitHostPort(host); err == nil {
		return host
	}
	port := "5672"
	if secure {
		port = "5671"
	}
	if host == "" {
		host = "localhost"
	}
	return net.JoinHostPort(strings.Trim(host, "[]"), port)
}

func authentication(u *url.URL, mechanism string) amqp.Authentication {
	if mechanism == "external" {
		return &amqp.ExternalAuth{}
	}
	user, password := "guest", "guest"
	if u.User != nil {
		user = u.User.Username()
		password, _ = u.User.Password()
	}
	return &amqp.PlainAuth{Username: user, Password: password}
}

// dial connects to the first server that answers; the error is the last one's.
func (d *dialer) dial(ctx context.Context, purpose string) (*amqp.Connection, *socket, error) {
	var last error
	for _, host := range d.hosts {
		c, s, err := d.dialHost(ctx, host, purpose)
		if err == nil {
			return c, s, nil
		}
		last = err
		if ctx.Err() != nil {
			break
		}
	}
	return nil, nil, last
}

func (d *dialer) dialHost(ctx context.Context, host, purpose string) (*amqp.Connection, *socket, error) {
	tcp, err := new(net.Dialer).DialContext(ctx, "tcp", host)
	if err != nil {
		return nil, nil, inContext(ctx, err)
	}
	// Closing the connection is what ends the waiting when ctx does: neither handshake has another way.
	unwatch := context.AfterFunc(ctx, func() { _ = tcp.Close() })
	defer unwatch()
	stream := tcp
	if d.tls != nil {
		c := d.tls.Clone()
		if c.ServerName == "" {
			c.ServerName, _, _ = net.SplitHostPort(host)
		}
		secure := tls.Client(tcp, c)
		if err := secure.HandshakeContext(ctx); err != nil {
			_ = tcp.Close()
			return nil, nil, inContext(ctx, err)
		}
		stream = secure
	}
	config := d.config
	config.Properties = amqp.NewConnectionProperties()
	config.Properties.SetClientConnectionName(strings.TrimSpace(d.name + " " + purpose))
	s := newSocket(stream)
	if purpose == publishing {
		s.acks = &acks{}
	}
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
		case cause == nil && d.tls != nil && d.tls.GetClientCertificate != nil && !s.heard.Load():
			err = errCertificate // its alert can be lost when the connection is reset
		case cause != nil:
			err = cause // the library calls all that fails here a wrong password; RabbitMQ hangs up over one
		}
		return nil, nil, inContext(ctx, err)
	}
	return c, s, nil
}

// inContext prefers the context's reason to the one that it led to.
func inContext(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// attempt opens something again: at once for n = 0, and later and later for greater n. It gives up in good time, so that
// one server that does not answer does not stand for all times to come.
func attempt[T any](ctx context.Context, n int, open func(context.Context) (T, error)) (T, error) {
	const first, most, patience = 25 * time.Millisecond, time.Second, 10 * time.Second
	if n > 0 {
		select {
		case <-time.After(min(first<<min(n, 10), most)):
		case <-ctx.Done():
		}
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return open(ctx)
}
