package coordinator

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// Client is a process's side of the coordinator.
type Client struct {
	Welcome

	base, token string
	http        *http.Client
	hello       Hello
	clocks      [2]Clock        // at the start and at the end
	open        context.Context // until Close
	stop        context.CancelFunc
	stopped     sync.WaitGroup

	mu      sync.Mutex
	missing []string
	lost    error // the coordinator does not answer any more
}

// Clock is the time in ns by which the coordinator's clock is ahead of the process's, ± Bound.
type Clock struct{ Offset, Bound int64 }

const (
	retryPause   = 500 * time.Millisecond
	retryTimeout = 10 * time.Second
)

// Join joins the test of the coordinator at an address. It tries until ctx ends, and calls warn
// with the first error.
func Join(ctx context.Context, address, token string, h Hello, warn func(error)) (*Client, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("%q is no address of a coordinator: give http://host:port", address)
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment}
	c := &Client{base: strings.TrimSuffix(u.String(), "/"), token: token, hello: h}
	c.http = &http.Client{Transport: transport}
	if err := c.retry(ctx, warn, func() error { return c.ask(ctx, "/v1/join", &h, &c.Welcome) }); err != nil {
		return nil, err
	}
	if c.clocks[0], err = c.compare(ctx); err != nil {
		return nil, err
	}
	c.clocks[1] = c.clocks[0]
	c.open, c.stop = context.WithCancel(context.Background())
	c.stopped.Go(func() { // the process counts as running as long as the request is open
		for c.open.Err() == nil {
			_ = c.ask(c.open, fmt.Sprint("/v1/present?instance=", h.Instance), nil, nil)
			pause(c.open)
		}
	})
	return c, nil
}

func pause(ctx context.Context) {
	select {
	case <-time.After(retryPause):
	case <-ctx.Done():
	}
}

// retry calls do until it succeeds, is refused, or ctx ends. It returns the last error.
func (c *Client) retry(ctx context.Context, warn func(error), do func() error) error {
	for {
		err := do()
		if refused := (*RefusedError)(nil); err == nil || errors.As(err, &refused) || ctx.Err() != nil {
			return err
		}
		if warn != nil {
			warn(err)
			warn = nil
		}
		pause(ctx)
		if ctx.Err() != nil {
			return err
		}
	}
}

// ask sends a question and reads the reply.
func (c *Client) ask(ctx context.Context, path string, question, reply any) error {
	body, err := json.Marshal(question)
	if err != nil {
		return err
	}
	return c.do(ctx, http.MethodPost, path, bytes.NewReader(body), reply)
}

func (c *Client) do(ctx context.Context, method, path string, body io.Reader, reply any) error {
	r, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return err
	}
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	response, err := c.http.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(response.Body, mostRequest))
		err := &RefusedError{response.StatusCode, strings.TrimSpace(string(text))}
		if err.Code < http.StatusInternalServerError {
			return err
		}
		return errors.New(err.Text)
	}
	if reply == nil {
		_, err = io.Copy(io.Discard, response.Body)
		return err
	}
	return json.NewDecoder(response.Body).Decode(reply)
}

// compare compares the clocks by the quickest of eight round trips. Half its time is the bound.
func (c *Client) compare(ctx context.Context) (best Clock, err error) {
	const trips = 8
	for i := range trips {
		var there int64
		sent := driver.Now()
		if err := c.ask(ctx, "/v1/clock", nil, &there); err != nil {
			return best, err
		}
		if trip := driver.Now() - sent; i == 0 || (trip+1)/2 < best.Bound {
			best = Clock{there - sent - trip/2, (trip + 1) / 2}
		}
	}
	return best, nil
}

// Clock returns the mean of the comparisons at the start and at the end.
func (c *Client) Clock() Clock {
	a, b := c.clocks[0], c.clocks[1]
	drift := max(a.Offset-b.Offset, b.Offset-a.Offset)
	return Clock{a.Offset + (b.Offset-a.Offset)/2, max(a.Bound, b.Bound) + (drift+1)/2}
}

// lose records that the coordinator does not answer any more. The process goes on alone.
func (c *Client) lose(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lost == nil {
		c.lost = err
	}
}

// Lost returns the error of a coordinator that does not answer any more, or nil.
func (c *Client) Lost() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lost
}

// Reach reports that this process is at a point.
func (c *Client) Reach(point string) {
	if c.Lost() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(c.open, retryTimeout)
	defer cancel()
	err := c.retry(ctx, nil, func() error { return c.ask(ctx, "/v1/reach", arrival{c.hello.Instance, point}, nil) })
	if err != nil {
		c.lose(err)
	}
}

// Await returns when all processes are at a point or have ended, with one time for all, by
// [driver.Now]. The error names the processes that did not join within the coordinator's timeout,
// once.
func (c *Client) Await(ctx context.Context, point string) (at int64, err error) {
	var a answer
	for !a.Reached && c.Lost() == nil {
		asking, cancel := context.WithTimeout(ctx, poll+retryTimeout)
		err := c.retry(asking, nil, func() error {
			return c.ask(asking, "/v1/await", arrival{c.hello.Instance, point}, &a)
		})
		cancel()
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		if err != nil {
			c.lose(err)
		}
	}
	if a.At == 0 {
		return 0, nil
	}
	at = a.At - c.clocks[0].Offset
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(a.Missing) == 0 || c.missing != nil {
		return at, nil
	}
	c.missing = a.Missing
	return at, errors.New(strings.Join(a.Missing, ", "))
}

// Missing returns the processes that never joined.
func (c *Client) Missing() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.missing
}

// End compares the clocks once more.
func (c *Client) End(ctx context.Context) {
	now, err := c.compare(ctx)
	if err != nil {
		c.lose(err)
		return
	}
	c.clocks[1] = now
}

// Upload sends the results of the process, which pack writes, always the same bytes. It tries until
// ctx ends, and calls warn with the first error.
func (c *Client) Upload(ctx context.Context, pack func(io.Writer) error, warn func(error)) error {
	return c.retry(ctx, warn, func() error {
		body, to := io.Pipe()
		go func() { _ = to.CloseWithError(pack(to)) }()
		defer func() { _ = body.Close() }() // ends pack if the request fails
		return c.do(ctx, http.MethodPut, fmt.Sprint("/v1/results/", c.hello.Instance), body, nil)
	})
}

// Close ends the questions and the connections.
func (c *Client) Close() {
	c.stop()
	c.stopped.Wait()
	c.http.CloseIdleConnections()
}
