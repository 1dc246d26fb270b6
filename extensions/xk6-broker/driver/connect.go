package driver

import (
	"cmp"
	"context"
	"crypto/tls"
	"net"
	"strings"
	"time"
)

// ConnectOptions returns the options of every driver that connects over a network: connectTimeout,
// user, password and TLS.
func ConnectOptions() []Option {
	return append([]Option{
		{
			Name: "connectTimeout", Scope: OnConnect, Type: Duration, Default: "10s", Min: int64(time.Millisecond),
			Doc: "How long connecting to a server may take, until it has answered.",
		},
		{Name: "user", Scope: OnConnect, Doc: "The user, instead of the URL's."},
		{Name: "password", Scope: OnConnect, Secret: true, Doc: "The user's password, instead of the URL's."},
	}, tlsOptions()...)
}

// Login returns the user and the password; empty if there is none.
func (t Target) Login() (user, password string) {
	user, password = t.Options.String("user"), t.Options.String("password")
	if t.URL.User != nil {
		given, _ := t.URL.User.Password()
		user, password = cmp.Or(user, t.URL.User.Username()), cmp.Or(password, given)
	}
	return user, password
}

// Addresses returns the hosts, each with its port or the given one. An empty host is this machine.
func (t Target) Addresses(port string) []string {
	all := make([]string, len(t.Hosts))
	for i, host := range t.Hosts {
		all[i] = host
		if _, _, err := net.SplitHostPort(host); err != nil {
			all[i] = net.JoinHostPort(cmp.Or(strings.Trim(host, "[]"), "127.0.0.1"), port)
		}
	}
	return all
}

// Network is how connections are opened. The zero value is the machine's own network.
type Network struct {
	// Dial resolves an address and opens a connection without TLS. Nil is [net.Dialer]'s.
	Dial Dial
	// TLS has client certificates, InsecureSkipVerify, versions and cipher suites for targets that
	// use TLS and do not set them.
	TLS *tls.Config
}

// Dial opens a connection before ctx ends. With TLS the handshake is included.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// Plain opens connections without TLS. A driver dials with it or with [Target.Dialer], unless
// [Driver.OwnDialer].
func (t Target) Plain() Dial {
	if t.Network.Dial != nil {
		return t.Network.Dial
	}
	return (&net.Dialer{}).DialContext
}

// Dialer returns a Dial with the TLS of the options, limited to connectTimeout.
func (t Target) Dialer() (Dial, error) {
	dial := t.Plain()
	secure, err := t.TLS()
	if err != nil {
		return nil, err
	}
	if secure != nil {
		dial = withTLS(dial, secure)
	}
	timeout := t.Options.Duration("connectTimeout")
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		return dial(ctx, network, address)
	}, nil
}

// withTLS adds TLS to a Dial. The server's name is the address's if config has none.
func withTLS(plain Dial, config *tls.Config) Dial {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		stream, err := plain(ctx, network, address)
		if err != nil {
			return nil, err
		}
		own := config.Clone()
		if own.ServerName == "" {
			if own.ServerName, _, err = net.SplitHostPort(address); err != nil {
				own.ServerName = address
			}
		}
		c := tls.Client(stream, own)
		if err := c.HandshakeContext(ctx); err != nil {
			_ = stream.Close()
			return nil, err
		}
		return c, nil
	}
}
