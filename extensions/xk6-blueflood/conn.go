package blueflood

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// conn is one server and tenant.
type conn struct {
	ingest        string // where points go
	views         string // where they are read back
	host          string
	authorization func(*http.Request)
	dial          driver.Dial
	secure        bool
	timeout       time.Duration
	largest       int
	own           *http.Transport // for what is not measured
}

func open(ctx context.Context, t driver.Target) (driver.Conn, error) {
	secure, err := t.TLS()
	if err != nil {
		return nil, err
	}
	c := &conn{
		host: t.Addresses("19000")[0], secure: secure != nil, timeout: t.Options.Duration("timeout"), largest: int(t.Options.Int("maxRequest")),
		authorization: authorization(t),
	}
	if err := c.address(strings.Trim(t.URL.Path, "/"), t.Options.String("queryAddress")); err != nil {
		return nil, err
	}
	if c.dial, err = t.Dialer(); err != nil {
		return nil, err
	}
	c.own = c.transport(1)
	if err := c.greet(ctx, t.Options.Duration("connectTimeout")); err != nil {
		c.own.CloseIdleConnections()
		return nil, err
	}
	return c, nil
}

// address says where a tenant's points go to and come from.
func (c *conn) address(tenant, query string) error {
	if tenant == "" || strings.ContainsAny(tenant, "/%") {
		return &driver.OptionError{Name: "tenant", Err: fmt.Errorf("the URL's path is %q, and should be a name, as in blueflood://127.0.0.1:19000/tenant", tenant)}
	}
	name, _, err := net.SplitHostPort(c.host)
	if err != nil {
		return &driver.OptionError{Name: "url", Err: err}
	}
	if query == "" {
		query = net.JoinHostPort(name, "20000")
	} else if _, _, err := net.SplitHostPort(query); err != nil {
		return &driver.OptionError{Name: "queryAddress", Err: fmt.Errorf("%q should look like host:20000", query)}
	}
	scheme := "http"
	if c.secure {
		scheme = "https"
	}
	of := func(host, what string) string {
		u := url.URL{Scheme: scheme, Host: host}
		return u.JoinPath("v2.0", tenant, what).String()
	}
	c.ingest, c.views = of(c.host, "ingest"), of(query, "views")
	return nil
}

// authorization is how a request says whose it is.
func authorization(t driver.Target) func(*http.Request) {
	user, password := t.Login()
	token := t.Options.String("token")
	return func(r *http.Request) {
		switch {
		case token != "":
			r.Header.Set("X-Auth-Token", token)
		case user != "" || password != "":
			r.SetBasicAuth(user, password)
		}
	}
}

func (c *conn) transport(connections int) *http.Transport {
	// A request goes out in one piece, mostly: what does not fit into the buffer package net copies through another that it makes each time.
	t := &http.Transport{MaxIdleConnsPerHost: connections, IdleConnTimeout: 90 * time.Second, DisableCompression: true, WriteBufferSize: 64 << 10}
	if c.secure {
		t.DialTLSContext = c.dial
	} else {
		t.DialContext = c.dial
	}
	return t
}

// greet proves that a Blueflood answers, by what it says to a request without points.
func (c *conn) greet(ctx context.Context, timeout time.Duration) error {
	within, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := c.introduce(within)
	if err != nil && ctx.Err() == nil && within.Err() != nil {
		return fmt.Errorf("no answer from %s within %v: %w", c.host, timeout, context.DeadlineExceeded)
	}
	return err
}

func (c *conn) introduce(ctx context.Context) error {
	_, err := c.post(ctx, c.own, c.ingest, []byte("[]"))
	var answer *answerError
	switch {
	case errors.As(err, &answer) && len(answer.entries) > 0 && answer.status == http.StatusBadRequest:
		return nil
	case errors.As(err, &answer) && kindOfStatus(answer.status) != driver.Rejected:
		return err
	case err == nil, answer != nil:
		return &driver.ProtocolError{Protocol: protocol.Name, Err: cmp.Or(err, errors.New("it takes a request without points"))}
	}
	return err
}

// NewConsumer is refused: nothing is received.
func (c *conn) NewConsumer(context.Context, driver.ConsumerConfig) (driver.Consumer, error) {
	return nil, fmt.Errorf("consumers: %w", errors.ErrUnsupported)
}

// Info tells what the connection is to. Blueflood does not tell its version.
func (c *conn) Info() driver.Info {
	return driver.Info{Server: "Blueflood", Client: "net/http", Nodes: 1}
}

// Close closes the connections for what is not measured.
func (c *conn) Close(context.Context) error {
	c.own.CloseIdleConnections()
	return nil
}

var _ driver.Informer = &conn{}
