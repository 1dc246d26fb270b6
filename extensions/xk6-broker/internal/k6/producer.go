package k6

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/grafana/sobek"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/engine"
)

// producer describes a producer in one VU. VUs with equal descriptions share the publisher.
type producer struct {
	conn   *connection
	config driver.ProducerConfig
	key    string
	uses   map[string]any // the options in the result
	stamp  engine.StampMode
	spread int    // number of connections that the VUs share; 0 is one for each
	named  string // the topic of the replies; "" is one that the test makes

	replies atomic.Pointer[engine.Replies] // to this VU's requests
	sender  atomic.Pointer[engine.Sender]  // of this VU, once it is open
	series  *engine.Series                 // of the sender; for the event loop only
}

const (
	defaultWindow = 4096
	maxWindow     = 1 << 20
	// Most workers take a connection each.
	defaultWorkers = 32
	maxWorkers     = 1 << 12
)

func (c *connection) producer(name, opts sobek.Value) (*sobek.Object, error) {
	topic, err := topicOf("producer", name)
	if err != nil {
		return nil, err
	}
	o, err := readOptions("producer", opts)
	if err != nil {
		return nil, err
	}
	return c.objects.get("producer", topic, o, func() (*sobek.Object, error) { return c.newProducer(topic, o) })
}

func (c *connection) newProducer(topic string, o *options) (*sobek.Object, error) {
	p := &producer{conn: c, spread: connections(o, 1)}
	p.config = driver.ProducerConfig{Topic: topic, Window: o.integer("maxInFlight", defaultWindow, 1, maxWindow)}
	if !c.address.Driver.Features.Async {
		p.config.Workers = o.integer("workers", defaultWorkers, 1, maxWorkers)
	}
	p.stamp = engine.StampMode(o.text("stamp", ""))
	if c.byTopics() {
		p.named = o.text("replyTopic", "")
	}
	given, err := o.rest()
	if err != nil {
		return nil, err
	}
	if p.config.Options, p.uses, err = c.resolve(driver.OnProducer, given); err != nil {
		return nil, o.explain(err)
	}
	p.uses["maxInFlight"], p.uses["connections"] = p.config.Window, shownConnections(p.spread)
	if _, err = p.stamp.Resolve(c.address.Driver.Features, false); err != nil {
		return nil, fmt.Errorf("producer: %w", err)
	}
	if p.config.Workers > 0 {
		p.uses["workers"] = p.config.Workers
	}
	p.key = fmt.Sprintf("%s %d %d %v", topic, p.config.Window, p.config.Workers, given)
	return c.in.object(map[string]any{
		"topic": topic, "options": c.address.Driver.Redact(p.config.Options),
		"send": p.send, "request": p.request, "produce": p.produce, "ready": p.ready,
	}), nil
}

// connections reads the option: a number, or 'per-vu', which is 0.
func connections(o *options, def int) int {
	raw, ok := o.take("connections")
	if !ok {
		return def
	}
	if raw == "per-vu" {
		return 0
	}
	n, ok := number(raw)
	if !ok || n < 1 || n != float64(int(n)) {
		o.fail("connections", raw, `a number of at least 1, or "per-vu"`)
	}
	return int(n)
}

// shownConnections returns the value of the option connections.
func shownConnections(spread int) any {
	if spread == 0 {
		return "per-vu"
	}
	return spread
}

// connectionName names the shared connection that a VU uses.
func connectionName(of string, vu uint64, spread int) string {
	if spread > 0 {
		vu %= uint64(spread)
	}
	return fmt.Sprintf("%s %d", of, vu)
}

// open returns this VU's publisher.
func (p *producer) open(ctx context.Context, vu uint64) (*engine.Publisher, error) {
	at := p.conn.endpoint(connectionName("producers", vu, p.spread))
	return p.conn.in.run.Publisher(ctx, at, p.key, p.config, p.uses)
}

// ready resolves, when the producer is open, to the proof of its confirmations.
func (p *producer) ready() *sobek.Promise {
	of := &promise{}
	made := of.make(p.conn.in, "ready")
	p.withSender(of, func(_ context.Context, s *engine.Sender, _ int64) {
		proof := s.Proof()
		of.settle(func() (any, error) { return map[string]any{"confirm": proof.Confirm, "how": proof.How}, nil })
	})
	return made
}

// senderWork uses a VU's sender and settles a promise. Opening is how long the sender was being
// opened, in ns.
type senderWork func(ctx context.Context, s *engine.Sender, opening int64)

// withSender calls work with this VU's sender, which it opens if need be. With an open sender, work
// runs on the event loop.
func (p *producer) withSender(of *promise, work senderWork) {
	in := p.conn.in
	series, err := p.conn.series(p.config.Topic, "")
	if err != nil {
		of.settle(func() (any, error) { return nil, err })
		return
	}
	ctx := in.vu.Context()
	if s := p.sender.Load(); s != nil {
		if series != p.series {
			p.series = series
			s.SetSeries(series)
		}
		work(ctx, s, 0)
		return
	}
	vu, asked := in.vu.State().VUID, driver.Now()
	go func() {
		pub, err := p.open(ctx, vu)
		if err != nil {
			series.Fail("connect", p.conn.address.Driver.KindOf(err))
			of.settle(func() (any, error) { return nil, err })
			return
		}
		p.sender.CompareAndSwap(nil, pub.NewSender(p.mode(false), series))
		work(ctx, p.sender.Load(), driver.Now()-asked)
	}()
}

// mode returns the place of the stamp. The init context has checked the option.
func (p *producer) mode(generated bool) engine.StampMode {
	mode, _ := p.stamp.Resolve(p.conn.address.Driver.Features, generated)
	return mode
}

// receipt is the script's object for a confirmed message. Its properties are made when they are
// read.
type receipt struct {
	rt    *sobek.Runtime
	parts bool // the partition is known
	of    engine.Receipt
}

var receiptKeys = []string{"sequence", "due", "sent", "latency", "time", "partition", "position"}

func (p *producer) newReceipt(rt *sobek.Runtime, of engine.Receipt) *sobek.Object {
	f := p.conn.address.Driver.Features
	return rt.NewDynamicObject(&receipt{rt, f.Receipts && f.Partitions, of})
}

func (r *receipt) Get(name string) sobek.Value {
	switch name {
	case "sequence":
		return r.rt.ToValue(r.of.Sequence)
	case "due": // ms since the Unix epoch
		return r.rt.ToValue(ms(r.of.Due))
	case "sent":
		return r.rt.ToValue(ms(r.of.Sent))
	case "latency": // ms, due to confirmed
		return r.rt.ToValue(ms(r.of.Confirmed - r.of.Due))
	case "time": // ms, sent to confirmed
		return r.rt.ToValue(ms(r.of.Confirmed - r.of.Sent))
	case "partition":
		if r.parts {
			return r.rt.ToValue(r.of.Place.Partition)
		}
	case "position":
		return positionOf(r.rt, r.of.Place.Position)
	}
	return nil
}

func (r *receipt) Set(string, sobek.Value) bool { return false }

func (r *receipt) Has(name string) bool { return r.Get(name) != nil }

func (r *receipt) Delete(string) bool { return false }

func (r *receipt) Keys() []string { return receiptKeys }

func ms(ns int64) float64 { return float64(ns) / float64(time.Millisecond) }

// send sends one message or an array of them and resolves to a receipt or an array of receipts. The
// runtime calls this form of function without reflection (BenchmarkSend).
func (p *producer) send(call sobek.FunctionCall) sobek.Value {
	rt := p.conn.in.vu.Runtime()
	promise, err := p.dispatch(call.Argument(0))
	if err != nil {
		panic(rt.NewGoError(err)) // the runtime throws it in the script
	}
	return rt.ToValue(promise)
}

func bodiless(m driver.Message) bool { return m.Body == nil }

// sending is a call of send: the promise and the messages in one allocation.
type sending struct {
	promise
	by       *producer
	due      engine.Timing
	batch    driver.Batch
	one      [1]driver.Message // the batch of one message
	single   bool
	receipts []engine.Receipt
}

func (p *producer) dispatch(v sobek.Value) (*sobek.Promise, error) {
	s := &sending{by: p}
	var err error
	if s.batch, s.single, err = p.conn.messages(v, p.config.Window, &s.one); err != nil {
		return nil, fmt.Errorf("send: %w", err)
	}
	if p.mode(false) == engine.StampInBody && p.conn.address.Driver.Features.Tombstones &&
		slices.ContainsFunc(s.batch, bodiless) {
		return nil, errors.New(`send: body: null: there is a stamp in each body, by the producer's option "stamp"`)
	}
	s.due = p.conn.in.due.next()
	made := s.make(p.conn.in, "send")
	p.withSender(&s.promise, s.start)
	return made, nil
}

// start is a [senderWork].
func (s *sending) start(ctx context.Context, sender *engine.Sender, opening int64) {
	s.due = s.due.After(opening)
	if s.by.conn.address.Driver.Features.Async {
		sender.Send(ctx, s.batch, s.due, s.finished)
		return
	}
	go sender.Send(ctx, s.batch, s.due, s.finished) // it can wait for a worker
}

func (s *sending) finished(receipts []engine.Receipt) {
	s.receipts = receipts
	s.settleWith(s)
}

func (s *sending) value() (any, error) { return s.by.settled(s.receipts, s.single) }

func (p *producer) settled(receipts []engine.Receipt, single bool) (any, error) {
	rt := p.conn.in.vu.Runtime()
	for _, r := range receipts {
		if r.Err != nil {
			return nil, r.Err
		}
	}
	if single {
		return p.newReceipt(rt, receipts[0]), nil
	}
	list := make([]any, len(receipts))
	for i, r := range receipts {
		list[i] = p.newReceipt(rt, r)
	}
	return list, nil
}
