package influxdb

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// conn is one server and database.
type conn struct {
	base          *url.URL
	database      string
	policy        string
	authorization func(*http.Request)
	dial          driver.Dial
	secure        bool
	timeout       time.Duration
	own           *http.Transport // for unmeasured requests
	version       string
}

func open(ctx context.Context, t driver.Target) (driver.Conn, error) {
	secure, err := t.TLS()
	if err != nil {
		return nil, err
	}
	c := &conn{
		base: &url.URL{Scheme: "http", Host: t.Addresses("8086")[0]}, database: strings.Trim(t.URL.Path, "/"),
		policy: t.Options.String("retentionPolicy"), secure: secure != nil,
		timeout: t.Options.Duration("timeout"), authorization: authorization(t),
	}
	if c.secure {
		c.base.Scheme = "https"
	}
	if c.database == "" {
		err := errors.New("the URL names none; it should look like influxdb://127.0.0.1:8086/database")
		return nil, &driver.OptionError{Name: "database", Err: err}
	}
	if c.dial, err = t.Dialer(); err != nil {
		return nil, err
	}
	c.own = c.transport(1)
	if err := c.greet(ctx, t.Options.Duration("connectTimeout"), t.Options.Bool("createDatabase")); err != nil {
		c.own.CloseIdleConnections()
		return nil, err
	}
	return c, nil
}

// authorization returns a function that adds the login to a request.
func authorization(t driver.Target) func(*http.Request) {
	user, password := t.Login()
	token := t.Options.String("token")
	return func(r *http.Request) {
		switch {
		case token != "":
			r.Header.Set("Authorization", "Token "+token)
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

// greet checks that an InfluxDB answers and accepts writes to the database, by an empty write.
func (c *conn) greet(ctx context.Context, timeout time.Duration, create bool) error {
	within, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := c.introduce(within, create)
	if err != nil && ctx.Err() == nil && within.Err() != nil {
		return fmt.Errorf("no answer from %s within %v: %w", c.base.Host, timeout, context.DeadlineExceeded)
	}
	return err
}

func (c *conn) introduce(ctx context.Context, create bool) error {
	answer, err := c.do(ctx, c.own, http.MethodGet, "ping", nil, nil, false)
	if err != nil && !errors.As(err, new(*answerError)) {
		return err
	}
	if c.version = answer.Get("X-Influxdb-Version"); c.version == "" {
		err = cmp.Or(err, errors.New("its answer names no version of InfluxDB"))
		return fmt.Errorf("the server is not an InfluxDB: %w: %w", errors.ErrUnsupported, err)
	}
	if create {
		name := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(c.database)
		q := url.Values{"q": {`CREATE DATABASE "` + name + `"`}}
		if _, err := c.do(ctx, c.own, http.MethodPost, "query", q, nil, false); err != nil {
			return fmt.Errorf("creating the database: %w", err)
		}
	}
	return c.write(ctx, c.own, nil, false)
}

// write sends lines. It returns nil after the answer 204.
func (c *conn) write(ctx context.Context, t *http.Transport, lines []byte, zipped bool) error {
	q := url.Values{"db": {c.database}, "precision": {"ns"}}
	if c.policy != "" {
		q.Set("rp", c.policy)
	}
	_, err := c.do(ctx, t, http.MethodPost, "write", q, lines, zipped)
	return err
}

// do sends a request and returns the answer's header. A write must be answered with 204.
func (c *conn) do(
	ctx context.Context, t *http.Transport, method, path string, q url.Values, body []byte, zipped bool,
) (http.Header, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.timeout, errTimeout)
	defer cancel()
	u := c.base.JoinPath(path)
	u.RawQuery = q.Encode()
	r, err := http.NewRequestWithContext(ctx, method, u.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.GetBody = nil // package http must not send it again
	c.authorization(r)
	if zipped {
		r.Header.Set("Content-Encoding", "gzip")
	}
	answer, err := t.RoundTrip(r)
	if err != nil {
		if errors.Is(context.Cause(ctx), errTimeout) {
			return nil, fmt.Errorf("option \"timeout\": no answer within %v: %w", c.timeout, context.DeadlineExceeded)
		}
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	switch {
	case err != nil:
		return nil, fmt.Errorf("the answer: %w", err)
	case answer.StatusCode == http.StatusNoContent, path != "write" && answer.StatusCode == http.StatusOK:
		return answer.Header, nil
	}
	return answer.Header, newAnswerError(answer, text)
}

// maxAnswer is the number of bytes read of an answer, the text of an error.
const maxAnswer = 64 << 10

// NewConsumer is refused: nothing is received.
func (c *conn) NewConsumer(context.Context, driver.ConsumerConfig) (driver.Consumer, error) {
	return nil, fmt.Errorf("consumers: %w", errors.ErrUnsupported)
}

// Info implements [driver.Informer].
func (c *conn) Info() driver.Info {
	return driver.Info{Server: "InfluxDB " + c.version, Client: "net/http", Nodes: 1}
}

// Close closes the connections for unmeasured requests.
func (c *conn) Close(context.Context) error {
	c.own.CloseIdleConnections()
	return nil
}

var _ driver.Informer = &conn{}
