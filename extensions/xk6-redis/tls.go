package redis

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// dialer is the target's own. Its errors have the reason for which a server hung up.
func dialer(t driver.Target) (driver.Dial, error) {
	dial, err := t.Dialer()
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if _, secure := c.(*tls.Conn); secure {
			c = &alerting{Conn: c}
		}
		return c, err
	}, nil
}

// alerting is a TLS connection whose failed writes return the server's alert. In TLS 1.3 a server
// refuses a client's certificate after the handshake, and a write only returns a reset.
type alerting struct {
	net.Conn
	heard atomic.Bool // the server has sent something, so it has taken the certificate
}

func (c *alerting) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.heard.Store(true)
	}
	return n, err
}

func (c *alerting) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if err != nil && !c.heard.Load() && !errors.Is(err, net.ErrClosed) && !errors.Is(err, os.ErrDeadlineExceeded) {
		_ = c.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		if _, alert := c.Read(make([]byte, 1)); driver.NetworkKind(alert) == driver.Denied {
			err = alert
		}
	}
	return n, err
}
