package redis

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// tlsConfig is nil where TLS is not asked for.
func tlsConfig(o driver.Values) (*tls.Config, error) {
	ca, cert, key, name := o.String("tlsCA"), o.String("tlsCert"), o.String("tlsKey"), o.String("tlsServerName")
	insecure := o.Bool("tlsInsecure")
	if !o.Bool("tls") && ca == "" && cert == "" && key == "" && name == "" && !insecure {
		return nil, nil
	}
	c := &tls.Config{ServerName: name, InsecureSkipVerify: insecure, MinVersion: tls.VersionTLS12} //nolint:gosec // asked for
	if ca != "" {
		pem, err := os.ReadFile(ca)
		if err != nil {
			return nil, fmt.Errorf("option \"tlsCA\": %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("option \"tlsCA\": %s holds no certificate", ca)
		}
	}
	if (cert == "") != (key == "") {
		return nil, errors.New("options \"tlsCert\" and \"tlsKey\" need each other")
	}
	if cert != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("options \"tlsCert\" and \"tlsKey\": %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// dialer dials, with TLS where asked for, until the context ends: the library's own looks at no context with TLS.
func dialer(secure *tls.Config, timeout time.Duration) func(ctx context.Context, network, addr string) (net.Conn, error) {
	plain := &net.Dialer{Timeout: timeout}
	if secure == nil {
		return plain.DialContext
	}
	d := &tls.Dialer{NetDialer: plain, Config: secure}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := d.DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &alerting{Conn: c}, nil
	}
}

// alerting is a TLS connection whose failed writes tell why. In TLS 1.3 a server refuses a client's certificate after the
// handshake: it sends an alert and closes, and a write then only knows that the connection was reset.
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
		if _, alert := c.Read(make([]byte, 1)); remoteAlert(alert) {
			err = alert
		}
	}
	return n, err
}
