package influxdb

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// producer writes to one measurement. Each call of Send is one request.
type producer struct {
	conn      *conn
	transport *http.Transport
	head      string
	fields    bool
	zipped    bool

	life context.Context // ends if Close gives up waiting
	stop context.CancelCauseFunc

	mu      sync.Mutex
	closed  bool
	sending sync.WaitGroup
}

// NewProducer sends no request: a measurement exists from its first point.
func (c *conn) NewProducer(_ context.Context, config driver.ProducerConfig) (driver.Producer, error) {
	name := fmt.Sprintf("%012x", rand.Uint64()>>16) //gosec:disable G404 -- a name, no secret
	h, err := head(config.Topic, config.Options.Map("tags"), name)
	if err != nil {
		return nil, err
	}
	p := &producer{
		conn: c, transport: c.transport(max(1, config.Workers)), head: h,
		fields: config.Options.String("body") == "fields", zipped: config.Options.Bool("gzip"),
	}
	p.life, p.stop = context.WithCancelCause(context.Background())
	return p, nil
}

// begin returns false after Close.
func (p *producer) begin() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.sending.Add(1)
	}
	return !p.closed
}

// Send writes the batch and waits for the answer.
func (p *producer) Send(ctx context.Context, b driver.Batch, done driver.Done) {
	if !p.begin() {
		for i := range b {
			done(i, driver.ErrClosed)
		}
		return
	}
	defer p.sending.Done()
	size := 0
	for i := range b {
		size += len(p.head) + len(b[i].Key) + len(b[i].Body)*4/3 + len(`,key= base64="" 1234567890123456789`)
	}
	lines := make([]byte, 0, size)
	sent := make([]int, 0, len(b))
	at := times(len(b))
	for i := range b {
		var err error
		if lines, err = p.line(lines, &b[i], at+int64(i)); err != nil {
			done(i, err)
			continue
		}
		sent = append(sent, i)
	}
	if len(sent) == 0 {
		return
	}
	err := p.write(ctx, lines)
	for _, i := range sent {
		done(i, err)
	}
}

func (p *producer) write(ctx context.Context, lines []byte) error {
	if p.zipped {
		var buffer bytes.Buffer
		z := gzip.NewWriter(&buffer)
		if _, err := z.Write(lines); err != nil {
			return fmt.Errorf("gzip: %w", err)
		}
		if err := z.Close(); err != nil {
			return fmt.Errorf("gzip: %w", err)
		}
		lines = buffer.Bytes()
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(p.life, func() { cancel(context.Cause(p.life)) })()
	return p.conn.write(ctx, p.transport, lines, p.zipped)
}

// Close waits for the requests under way. They fail with ctx's error when it ends.
func (p *producer) Close(ctx context.Context) error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	defer context.AfterFunc(ctx, func() { p.stop(ctx.Err()) })()
	p.sending.Wait()
	p.stop(driver.ErrClosed)
	p.transport.CloseIdleConnections()
	return nil
}
