package blueflood

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// producer sends the points of one topic. Each call of Send is one request.
type producer struct {
	conn      *conn
	transport *http.Transport
	form      form
	series    series
	journal   *journal
	readBack  bool

	life context.Context // ends if Close gives up waiting
	stop context.CancelCauseFunc

	mu      sync.Mutex
	closed  bool
	sending sync.WaitGroup
}

// NewProducer sends no request: a metric exists from its first point.
func (c *conn) NewProducer(_ context.Context, config driver.ProducerConfig) (driver.Producer, error) {
	name, ttl := config.Options.String("producerName"), config.Options.Duration("ttl")
	if name == "" {
		name = fmt.Sprintf("%012x", rand.Uint64()>>16) //gosec:disable G404 -- a name, no secret
	}
	unit := config.Options.String("unit")
	for option, text := range map[string]string{"topic": config.Topic, "producerName": name, "unit": unit} {
		isLine := utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
		if !isLine || option == "topic" && text == "" {
			return nil, &driver.OptionError{Name: option, Err: fmt.Errorf("%q should be text in one line", text)}
		}
	}
	if expiry := time.Now().Add(ttl); expiry.After(lastExpiry) {
		err := fmt.Errorf("%v: Cassandra refuses a point that expires after %s: it may be %v at most",
			ttl, lastExpiry.Format(time.DateOnly), time.Until(lastExpiry).Truncate(time.Hour))
		return nil, &driver.OptionError{Name: "ttl", Err: err}
	}
	metrics := int(config.Options.Int("metrics"))
	p := &producer{
		conn: c, transport: c.transport(max(1, config.Workers)),
		series: series{metrics: metrics, now: time.Now}, journal: newJournal(metrics),
		readBack: config.Options.Bool("readBack"),
		form:     newForm(config.Topic+"."+name+".", config.Options.String("value") == "size", ttl, unit),
	}
	p.life, p.stop = context.WithCancelCause(context.Background())
	return p, nil
}

// lastExpiry is the latest expiry that Cassandra can store, less a day for the clocks.
var lastExpiry = time.Date(2038, time.January, 18, 0, 0, 0, 0, time.UTC)

// begin returns false after Close.
func (p *producer) begin() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.sending.Add(1)
	}
	return !p.closed
}

// Send sends the batch and waits for the answer.
func (p *producer) Send(ctx context.Context, b driver.Batch, done driver.Done) {
	if !p.begin() {
		fail(b, done, driver.ErrClosed)
		return
	}
	defer p.sending.Done()
	at, ok := p.series.take(len(b))
	if !ok {
		fail(b, done, errAhead)
		return
	}
	body, sent := make([]byte, 0, p.form.size(b)), make([]int, 0, len(b))
	body = append(body, '[')
	for i := range b {
		var err error
		if body, err = p.form.point(body, &b[i], at.metric(i), at.time(i)); err != nil {
			done(i, err)
			continue
		}
		sent = append(sent, i)
	}
	if len(sent) == 0 {
		return
	}
	body[len(body)-1] = ']' // instead of the last comma
	if len(body) > p.conn.largest {
		err := &tooLarge{len(sent), len(body), p.conn.largest}
		for _, i := range sent {
			done(i, err)
		}
		return
	}
	fates := p.fates(p.post(ctx, body), at, sent)
	p.journal.note(at, sent, fates)
	for k, i := range sent {
		done(i, fates(k))
	}
}

func fail(b driver.Batch, done driver.Done, err error) {
	for i := range b {
		done(i, err)
	}
}

func (p *producer) post(ctx context.Context, body []byte) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(p.life, func() { cancel(context.Cause(p.life)) })()
	_, err := p.conn.post(ctx, p.transport, p.conn.ingest, body)
	return err
}

// fates returns the error of each sent message, by its index in sent.
func (p *producer) fates(err error, at points, sent []int) func(k int) error {
	all := func(int) error { return err }
	var answer *answerError
	if !errors.As(err, &answer) || answer.status != http.StatusMultiStatus || len(answer.entries) == 0 {
		return all
	}
	places := make(map[string]int, len(sent))
	for k, i := range sent {
		places[p.form.name(at.metric(i), at.time(i))] = k
	}
	named := make([]error, len(sent))
	for _, e := range answer.entries {
		k, ok := places[nameOf(e.MetricName, e.Timestamp)]
		if !ok {
			return all // any of them may be meant
		}
		named[k] = &pointError{answer.status, e}
	}
	return func(k int) error { return named[k] }
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
