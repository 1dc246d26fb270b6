package driver

import (
	"cmp"
	"context"
	"crypto/tls"
	"net"
	"strings"
	"time"
)

// ConnectOptions are the options of every driver that connects over a network: connectTimeout,
// user, password and TLS.
func ConnectOptions() []Option {
	return append([]Option{
		{Name: "connectTimeout", Scope: OnConnect, Type: Duration, Default: "10s", Min: int64(time.Millisecond), Doc: "How long connecting to a server may take, until it has answered."},
		{Name: "user", Scope: OnConnect, Doc: "The user, instead of the URL's."},
		{Name: "password", Scope: OnConnect, Secret: true, Doc: "The user's password, instead of the URL's."},
	}, tlsOptions()...)
}

// Login is the user and the password; empty where there is none.
func (t Target) Login() (user, password string) {
	user, password = t.Options.String("user"), t.Options.String("password")
	if t.URL.User != nil {
		given, _ := t.URL.User.Password()
		user, password = cmp.Or(user, t.URL.User.Username()), cmp.Or(password, given)
	}
	return user, password
}

// Addresses are the hosts, each with its port: the one given here where the URL names none. A host
// that is empty is this machine.
func (t Target) Addresses(port string) []string {
	all := make([]string, len(t.Hosts))
	for i, host := range t.Hosts {
		if _, p, err := net.SplitHostPort(host); err == nil && p != "" {
			all[i] = host
		} else {
			all[i] = net.JoinHostPort(cmp.Or(strings.Trim(strings.TrimSuffix(host, ":"), "[]"), "127.0.0.1"), port)
		}
	}
	return all
}

// Dial opens a connection, for as long as ctx lives and no longer than connectTimeout; with TLS the
// handshake is over when it returns.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// Dialer is what connects to the servers as the options say.
func (t Target) Dialer() (Dial, error) {
	dial := t.Plain()
	secure, err := t.TLS()
	if err != nil {
		return nil, err
	}
	if secure != nil {
		dial = over(dial, secure)
	}
	within := t.Options.Duration("connectTimeout")
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, within)
		defer cancel()
		return dial(ctx, network, address)
	}, nil
}

// over opens connections with TLS by one that opens them without. The server's name is the
// address's where the configuration has none.
func over(plain Dial, config *tls.Config) Dial {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		stream, err := plain(ctx, network, address)
		if err != nil {
			return nil, err
		}
		own := config
		if own.ServerName == "" {
			own = own.Clone()
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
