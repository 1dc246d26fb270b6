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
	ingest        string // the URL for points
	views         string // the URL to read them back
	host          string
	authorization func(*http.Request)
	dial          driver.Dial
	secure        bool
	timeout       time.Duration
	largest       int
	own           *http.Transport // for unmeasured requests
}

func open(ctx context.Context, t driver.Target) (driver.Conn, error) {
	secure, err := t.TLS()
	if err != nil {
		return nil, err
	}
	c := &conn{
		host: t.Addresses("19000")[0], secure: secure != nil, timeout: t.Options.Duration("timeout"),
		largest: int(t.Options.Int("maxRequest")), authorization: authorization(t),
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

// address sets the URLs of a tenant's points.
func (c *conn) address(tenant, query string) error {
	if tenant == "" || strings.ContainsAny(tenant, "/%") {
		err := fmt.Errorf("the URL's path is %q, and must be a name, as in blueflood://127.0.0.1:19000/tenant", tenant)
		return &driver.OptionError{Name: "tenant", Err: err}
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
	at := func(host, resource string) string {
		u := url.URL{Scheme: scheme, Host: host}
		return u.JoinPath("v2.0", tenant, resource).String()
	}
	c.ingest, c.views = at(c.host, "ingest"), at(query, "views")
	return nil
}

// authorization returns a function that adds the login to a request.
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
	// Most requests fit into the write buffer; others are copied through a new one each.
	t := &http.Transport{
		MaxIdleConnsPerHost: connections, IdleConnTimeout: 90 * time.Second,
		DisableCompression: true, WriteBufferSize: 64 << 10,
	}
	if c.secure {
		t.DialTLSContext = c.dial
	} else {
		t.DialContext = c.dial
	}
	return t
}

// greet checks that a Blueflood answers, by its refusal of a request without points.
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
		err = cmp.Or(err, errors.New("it accepts a request without points"))
		return fmt.Errorf("the server is not a Blueflood: %w: %w", errors.ErrUnsupported, err)
	}
	return err
}

// NewConsumer is refused: nothing is received.
func (c *conn) NewConsumer(context.Context, driver.ConsumerConfig) (driver.Consumer, error) {
	return nil, fmt.Errorf("consumers: %w", errors.ErrUnsupported)
}

// Info implements [driver.Informer]. Blueflood does not return its version.
func (c *conn) Info() driver.Info {
	return driver.Info{Server: "Blueflood", Client: "net/http", Nodes: 1}
}

// Close closes the connections for unmeasured requests.
func (c *conn) Close(context.Context) error {
	c.own.CloseIdleConnections()
	return nil
}

var _ driver.Informer = &conn{}
