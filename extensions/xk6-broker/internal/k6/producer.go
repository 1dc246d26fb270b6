package k6

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"

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
}

const (
	defaultWindow = 4096
	maxWindow     = 1 << 20
	// Most workers take a connection each.
	defaultWorkers = 32
	maxWorkers     = 1 << 12
)

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
	var err error
	if p.config.Options, p.uses, err = c.resolve(driver.OnProducer, o); err != nil {
		return nil, err
	}
	if _, err = p.stamp.Resolve(c.address.Driver.Features, false); err != nil {
		return nil, fmt.Errorf("producer: %w", err)
	}
	p.key = fmt.Sprintf("%s %d %d %v", topic, p.config.Window, p.config.Workers, o.given)
	return c.in.object(map[string]any{
		"topic": topic, "options": c.address.Driver.Redact(p.config.Options),
		"send": p.send, "request": p.request, "produce": p.produce, "ready": p.ready,
	}), nil
}

const perVU = "per-vu"

// connections reads the option: a number, or 'per-vu', which is 0.
func connections(o *options, def any) int {
	value := read(o, "connections", def, `a number of at least 1, or "per-vu"`, func(raw any) (any, bool) {
		n, ok := number(raw)
		return int(n), raw == perVU || ok && n >= 1 && n == math.Trunc(n)
	})
	spread, _ := value.(int)
	return spread
}

// connectionName names the shared connection that a VU uses.
func connectionName(users string, vu uint64, spread int) string {
	if spread > 0 {
		vu %= uint64(spread)
	}
	return fmt.Sprintf("%s %d", users, vu)
}

// open returns this VU's publisher.
func (p *producer) open(ctx context.Context, vu uint64, series *engine.Series) (*engine.Publisher, error) {
	at := p.conn.endpoint(connectionName("producers", vu, p.spread))
	pub, err := p.conn.in.run.Publisher(ctx, at, p.key, p.config, p.uses)
	if err != nil {
		series.Fail("connect", p.conn.address.Driver.KindOf(err))
	}
	return pub, err
}

// ready resolves, when the producer is open, to the proof of its confirmations.
func (p *producer) ready() *sobek.Promise {
	made, settle := p.conn.in.promise("ready")
	p.withSender(settle, unsent{}, func(_ context.Context, s *engine.Sender, _ int64) {
		proof := s.Proof()
		settle(map[string]any{"confirm": proof.Confirm, "how": proof.How}, nil)
	})
	return made
}

// senderWork uses a VU's sender and settles a promise. Opening is how long the sender was being
// opened, in ns.
type senderWork func(ctx context.Context, s *engine.Sender, opening int64)

// unsent are messages of an operation that wait for a sender.
type unsent struct {
	op string
	n  int
	at engine.Timing
}

// withSender calls work with this VU's sender, which it opens if need be. With an open sender, work
// runs on the event loop. Messages fail if there is no sender.
func (p *producer) withSender(settle settler, waiting unsent, work senderWork) {
	in := p.conn.in
	series, err := p.conn.series(p.config.Topic, "")
	if err != nil {
		settle(nil, err)
		return
	}
	ctx := in.vu.Context()
	if s := p.sender.Load(); s != nil {
		s.SetSeries(series)
		work(ctx, s, 0)
		return
	}
	vu, asked := in.vu.State().VUID, driver.Now()
	go func() {
		pub, err := p.open(ctx, vu, series)
		if err != nil {
			series.Unsent(waiting.op, waiting.n, waiting.at, p.conn.address.Driver.KindOf(err))
			settle(nil, err)
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
	readOnly
	engine.Receipt

	rt    *sobek.Runtime
	parts bool // the partition is known
}

var receiptKeys = []string{"sequence", "due", "sent", "latency", "time", "partition", "position"}

func (p *producer) newReceipt(r engine.Receipt) *sobek.Object {
	f, rt := p.conn.address.Driver.Features, p.conn.in.vu.Runtime()
	return rt.NewDynamicObject(&receipt{Receipt: r, rt: rt, parts: f.Receipts && f.Partitions})
}

func (r *receipt) Get(name string) sobek.Value {
	switch name {
	case "sequence":
		return r.rt.ToValue(r.Sequence)
	case "due": // ms since the Unix epoch
		return r.rt.ToValue(ms(r.Due))
	case "sent":
		return r.rt.ToValue(ms(r.Sent))
	case "latency": // ms, due to confirmed
		return r.rt.ToValue(ms(r.Confirmed - r.Due))
	case "time": // ms, sent to confirmed
		return r.rt.ToValue(ms(r.Confirmed - r.Sent))
	case "partition":
		if r.parts {
			return r.rt.ToValue(r.Place.Partition)
		}
	case "position":
		return positionOf(r.rt, r.Place.Position)
	}
	return nil
}

func (r *receipt) Has(name string) bool { return r.Get(name) != nil }

func (r *receipt) Keys() []string { return receiptKeys }

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

func (p *producer) dispatch(v sobek.Value) (*sobek.Promise, error) {
	batch, single, err := p.messages(v)
	if err != nil {
		return nil, fmt.Errorf("send: %w", err)
	}
	due := p.conn.in.due.next()
	made, settle := p.conn.in.promise("send")
	finished := func(receipts []engine.Receipt) {
		settle(outcome(func() (any, error) { return p.receipts(receipts, single) }), nil)
	}
	p.withSender(settle, unsent{"send", len(batch), due}, func(ctx context.Context, s *engine.Sender, opening int64) {
		if p.conn.address.Driver.Features.Async {
			s.Send(ctx, batch, due.After(opening), finished)
			return
		}
		go s.Send(ctx, batch, due.After(opening), finished) // it can wait for a worker
	})
	return made, nil
}

// messages reads the messages of a call. If there is a stamp in each body, no message is without a
// body.
func (p *producer) messages(v sobek.Value) (batch driver.Batch, single bool, err error) {
	batch, single, err = p.conn.messages(v, p.config.Window)
	if err == nil && p.mode(false) == engine.StampInBody && slices.ContainsFunc(batch, bodiless) {
		err = errors.New(`body: null: there is a stamp in each body, by the producer's option "stamp"`)
	}
	return batch, single, err
}

func bodiless(m driver.Message) bool { return m.Body == nil }

// receipts returns a receipt or a list of them for the script, or the first error.
func (p *producer) receipts(all []engine.Receipt, single bool) (any, error) {
	list := make([]any, len(all))
	for i, r := range all {
		if r.Err != nil {
			return nil, r.Err
		}
		list[i] = p.newReceipt(r)
	}
	if single {
		return list[0], nil
	}
	return list, nil
}
