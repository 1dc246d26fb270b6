package collect

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Sender sends what a process says to a collector.
type Sender struct {
	base   string // of the addresses
	token  string
	client *http.Client
}

// NewSender makes the sender to a collector at http://host:port; the token may be empty.
func NewSender(address, token string) (*Sender, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, errAddress
	}
	return &Sender{strings.TrimSuffix(u.String(), "/"), token, &http.Client{
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: dialTimeout}).DialContext,
			ExpectContinueTimeout: 2 * time.Second, ResponseHeaderTimeout: 2 * time.Minute, // the collector reads all of it again first
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// String is the collector's address.
func (s *Sender) String() string { return s.base }

var errAddress = errors.New("it is no address of a collector: give http://host:port")

// RefusedError is the answer of a collector that will be the same however often it is asked.
type RefusedError struct{ Text string }

func (e *RefusedError) Error() string { return "the collector refuses it: " + e.Text }

// Here says that a process is there and goes on.
func (s *Sender) Here(ctx context.Context, p Process) error {
	request, err := s.request(ctx, http.MethodPost, p, "")
	if err != nil {
		return err
	}
	return s.do(request)
}

// The pauses between attempts, each twice as long as the one before, and the longest that one waits for a connection.
const (
	firstPause  = 250 * time.Millisecond
	mostPause   = 10 * time.Second
	dialTimeout = 5 * time.Second
)

// Send sends a process's results, which pack writes, each time the same. While the collector does not answer, or cannot take them, it tries again until
// the context ends, and tells of the first time.
func (s *Sender) Send(ctx context.Context, p Process, pack func(io.Writer) error, tell func(error)) error {
	digest, size := sha256.New(), counter(0)
	if err := pack(io.MultiWriter(digest, &size)); err != nil {
		return err
	}
	for pause := firstPause; ; pause = min(2*pause, mostPause) {
		err := s.attempt(ctx, p, pack, "sha-256=:"+base64.StdEncoding.EncodeToString(digest.Sum(nil))+":", int64(size))
		if refused := (*RefusedError)(nil); err == nil || errors.As(err, &refused) {
			return err
		}
		if tell != nil {
			tell(err)
			tell = nil
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return fmt.Errorf("given up: %w", err)
		}
	}
}

func (s *Sender) attempt(ctx context.Context, p Process, pack func(io.Writer) error, digest string, size int64) error {
	request, err := s.request(ctx, http.MethodPut, p, "/results")
	if err != nil {
		return err
	}
	body, to := io.Pipe()
	defer func() { _ = body.Close() }() // whoever packs ends then
	request.Body, request.ContentLength = &onDemand{ReadCloser: body, begin: func() { _ = to.CloseWithError(pack(to)) }}, size
	request.Header.Set("Content-Type", "application/zip")
	request.Header.Set("Content-Digest", digest) // RFC 9530
	request.Header.Set("Expect", "100-continue") // what is refused need not be sent
	return s.do(request)
}

// onDemand begins to make what is read when it is read.
type onDemand struct {
	io.ReadCloser
	begin func()
}

func (b *onDemand) Read(to []byte) (int, error) {
	if b.begin != nil {
		go b.begin()
		b.begin = nil
	}
	return b.ReadCloser.Read(to)
}

func (s *Sender) request(ctx context.Context, method string, p Process, what string) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, method, s.base+"/v1/processes/"+url.PathEscape(p.Name)+what+"?"+p.query(), nil)
	if err == nil && s.token != "" {
		request.Header.Set("Authorization", "Bearer "+s.token)
	}
	return request, err
}

// mostText bounds what is read of an answer.
const mostText = 4 << 10

func (s *Sender) do(request *http.Request) error {
	response, err := s.client.Do(request)
	if err != nil {
		if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) { // without the address, which is long
			err = wrapped.Err
		}
		return fmt.Errorf("%s: %w", s.base, err)
	}
	defer func() { _ = response.Body.Close() }() // only read
	text, _ := io.ReadAll(io.LimitReader(response.Body, mostText))
	said := strings.TrimSpace(string(text))
	switch code := response.StatusCode; {
	case code >= 200 && code < 300:
		return nil
	case code == http.StatusBadRequest || code == http.StatusRequestTimeout || code == http.StatusTooManyRequests || code >= 500:
		return fmt.Errorf("%s: %s: %s", s.base, response.Status, said)
	}
	return &RefusedError{fmt.Sprintf("%s: %s: %s", s.base, response.Status, said)}
}

// counter counts the bytes that are written to it.
type counter int64

func (c *counter) Write(b []byte) (int, error) {
	*c += counter(len(b))
	return len(b), nil
}
