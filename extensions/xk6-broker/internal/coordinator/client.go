package coordinator

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
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
	there       context.Context // until Close
	stop        context.CancelFunc
	stopped     sync.WaitGroup

	mu      sync.Mutex
	missing []string
	lost    error // why the coordinator cannot be asked any more
}

// Clock is by how much the coordinator's clock is ahead of the process's, in ns, give or take the bound.
type Clock struct{ Offset, Bound int64 }

// RefusedError is an answer that would be the same however often it was asked for.
type RefusedError struct{ Text string }

// Error returns the coordinator's text.
func (e *RefusedError) Error() string { return e.Text }

// retry is how long the client waits after an error.
const retry = 500 * time.Millisecond

// Join joins the test of the coordinator at an address. It tries until ctx ends, and calls tell with the first error.
func Join(ctx context.Context, address, token string, h Hello, tell func(error)) (*Client, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("%q is no address of a coordinator: give http://host:port", address)
	}
	c := &Client{base: strings.TrimSuffix(u.String(), "/"), token: token, http: &http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment}}, hello: h}
	if err := c.insist(ctx, tell, func() error { return c.ask(ctx, "/v1/join", &h, &c.Welcome) }); err != nil {
		return nil, err
	}
	if c.clocks[0], err = c.compare(ctx); err != nil {
		return nil, err
	}
	c.clocks[1] = c.clocks[0]
	c.there, c.stop = context.WithCancel(context.Background())
	c.stopped.Go(func() { // as long as the request lasts, the coordinator knows that the process is there
		for c.there.Err() == nil {
			_ = c.ask(c.there, fmt.Sprint("/v1/present?instance=", h.Instance), nil, nil)
			pause(c.there)
		}
	})
	return c, nil
}

func pause(ctx context.Context) {
	select {
	case <-time.After(retry):
	case <-ctx.Done():
	}
}

// insist does something until it succeeds, is refused, or ctx ends; then the error is the last one.
func (c *Client) insist(ctx context.Context, tell func(error), do func() error) error {
	for {
		err := do()
		if refused := (*RefusedError)(nil); err == nil || errors.As(err, &refused) || ctx.Err() != nil {
			return err
		}
		if tell != nil {
			tell(err)
			tell = nil
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
	return c.do(ctx, http.MethodPost, path, bytes.NewReader(body), nil, reply)
}

func (c *Client) do(ctx context.Context, method, path string, body io.Reader, prepare func(*http.Request), reply any) error {
	r, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return err
	}
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	if prepare != nil {
		prepare(r)
	}
	response, err := c.http.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }() // it is read
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(response.Body, mostRequest))
		if err = errors.New(strings.TrimSpace(string(text))); response.StatusCode < http.StatusInternalServerError {
			err = &RefusedError{err.Error()}
		}
		return err
	}
	if reply == nil {
		_, err = io.Copy(io.Discard, response.Body)
		return err
	}
	return json.NewDecoder(response.Body).Decode(reply)
}

// compare compares the clocks in eight round trips: by the quickest, whose half is the bound.
func (c *Client) compare(ctx context.Context) (best Clock, err error) {
	const trips = 8
	for i := range trips {
		var there int64
		sent := driver.Now()
		if err := c.ask(ctx, "/v1/clock", nil, &there); err != nil {
			return best, err
		}
		if now := driver.Now(); i == 0 || (now-sent+1)/2 < best.Bound {
			best = Clock{there - sent/2 - now/2 - (sent%2+now%2)/2, (now - sent + 1) / 2}
		}
	}
	return best, nil
}

// Clock returns by how much the coordinator's clock is ahead, at the start and at the end.
func (c *Client) Clock() Clock {
	a, b := c.clocks[0], c.clocks[1]
	apart := max(a.Offset-b.Offset, b.Offset-a.Offset)
	return Clock{a.Offset + (b.Offset-a.Offset)/2, max(a.Bound, b.Bound) + (apart+1)/2}
}

// lose notes that the coordinator cannot be asked any more: the process goes on alone.
func (c *Client) lose(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lost == nil {
		c.lost = err
	}
}

// Lost returns why the coordinator cannot be asked any more; nil if it can.
func (c *Client) Lost() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lost
}

// patience is how long a question is repeated to a coordinator that does not answer.
const patience = 10 * time.Second

// Reach reports that this process has reached a point.
func (c *Client) Reach(point string) {
	if c.Lost() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(c.there, patience)
	defer cancel()
	if err := c.insist(ctx, nil, func() error { return c.ask(ctx, "/v1/reach", arrival{c.hello.Instance, point}, nil) }); err != nil {
		c.lose(err)
	}
}

// Await returns when all processes that are there have come to a point, and from when on it counts, by [driver.Now] of this process: the same
// time in all of them. It waits for those that have not joined as long as the coordinator does; then they are the error, once.
func (c *Client) Await(ctx context.Context, point string) (at int64, err error) {
	var a answer
	for !a.Reached && c.Lost() == nil {
		asking, cancel := context.WithTimeout(ctx, poll+patience)
		err := c.insist(asking, nil, func() error { return c.ask(asking, "/v1/await", arrival{c.hello.Instance, point}, &a) })
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

// Missing lists the processes that never came.
func (c *Client) Missing() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.missing
}

// End compares the clocks once more.
func (c *Client) End(ctx context.Context) {
	if now, err := c.compare(ctx); err != nil {
		c.lose(err)
	} else {
		c.clocks[1] = now
	}
}

// Upload sends the results of the process, which pack writes, each time the same. It tries until ctx ends, and calls tell with the first error.
func (c *Client) Upload(ctx context.Context, pack func(io.Writer) error, tell func(error)) error {
	sum, size := sha256.New(), counter(0)
	if err := pack(io.MultiWriter(sum, &size)); err != nil {
		return err
	}
	return c.insist(ctx, tell, func() error {
		body, to := io.Pipe()
		go func() { _ = to.CloseWithError(pack(to)) }()
		defer func() { _ = body.Close() }() // ends pack, if nobody reads on
		return c.do(ctx, http.MethodPut, fmt.Sprint("/v1/results/", c.hello.Instance), body, func(r *http.Request) {
			r.ContentLength = int64(size)
			r.Header.Set("X-Sha256", hex.EncodeToString(sum.Sum(nil)))
		}, nil)
	})
}

// Close ends the questions and the connections.
func (c *Client) Close() {
	c.stop()
	c.stopped.Wait()
	c.http.CloseIdleConnections()
}

type counter int64

func (c *counter) Write(b []byte) (int, error) {
	*c += counter(len(b))
	return len(b), nil
}
