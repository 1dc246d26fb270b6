package js

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/grafana/sobek"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/load"
)

// producer describes a producer in one VU; what it opens is shared with the VUs that describe the same.
type producer struct {
	conn   *connection
	config driver.ProducerConfig
	key    string
	uses   map[string]any // what a result says of its options
	stamp  load.StampMode
	spread int // how many connections the VUs share; 0 is one for each

	sender atomic.Pointer[load.Sender] // of this VU, once it is open
	series *load.Series                // that the sender has now; for the event loop only
}

const (
	defaultWindow = 4096
	maxWindow     = 1 << 20
	// Each worker mostly takes a connection, of which brokers with blocking clients rarely like many.
	defaultWorkers = 32
	maxWorkers     = 1 << 12
)

func (c *connection) producer(topic string, opts sobek.Value) (*sobek.Object, error) {
	o, err := readOptions("producer", opts)
	if err != nil {
		return nil, err
	}
	p := &producer{conn: c, spread: connections(o, 1)}
	p.config = driver.ProducerConfig{Topic: topic, Window: o.integer("maxInFlight", defaultWindow, 1, maxWindow)}
	if !c.address.Driver.Features.Async {
		p.config.Workers = o.integer("workers", defaultWorkers, 1, maxWorkers)
	}
	p.stamp = load.StampMode(o.text("stamp", ""))
	given, err := o.rest()
	if err = errors.Join(err, checkTopic("producer", topic)); err != nil {
		return nil, err
	}
	if p.config.Options, p.uses, err = c.resolve(driver.OnProducer, given); err != nil {
		return nil, o.explain(err)
	}
	p.uses["maxInFlight"], p.uses["connections"] = p.config.Window, shared(p.spread)
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

// connections reads the option of that name: a number, or 'per-vu', which is 0.
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

// shared writes how many connections there are as the option of that name does.
func shared(spread int) any {
	if spread == 0 {
		return "per-vu"
	}
	return spread
}

// linkName is which of the shared connections a VU uses.
func linkName(of string, vu uint64, spread int) string {
	if spread > 0 {
		vu %= uint64(spread)
	}
	return fmt.Sprintf("%s %d", of, vu)
}

// open gives this VU's publisher, from the VU's own number.
func (p *producer) open(ctx context.Context, vu uint64) (*load.Publisher, error) {
	return p.conn.in.run.links.publisher(ctx, p, linkName("producers", vu, p.spread))
}

// ready resolves when the producer is open, to what its confirmations prove.
func (p *producer) ready() *sobek.Promise {
	return p.withSender(func(ctx context.Context, s *load.Sender, settle settler, _ int64) {
		p.conn.in.spawn("ready", settle, func() { // whoever is to answer may take a while
			proof, err := s.Proof(ctx)
			settle(func() (any, error) { return map[string]any{"confirm": proof.Confirm, "how": proof.How}, err })
		})
	})
}

// withSender does something with this VU's sender, opening it first where need be. The fast path, an open sender, stays on the
// event loop. do settles the promise; it is told for how many ns the sender was being opened.
func (p *producer) withSender(do func(context.Context, *load.Sender, settler, int64)) *sobek.Promise {
	in := p.conn.in
	promise, settle := in.promise()
	series, err := p.conn.series(p.config.Topic, "")
	if err != nil {
		settle(func() (any, error) { return nil, err })
		return promise
	}
	ctx := in.vu.Context()
	if s := p.sender.Load(); s != nil {
		if series != p.series {
			p.series = series
			s.SetSeries(series)
		}
		p.use(s, in.verb, settle, func() { do(ctx, s, settle, 0) })
		return promise
	}
	vu, verb, asked := in.vu.State().VUID, in.verb, driver.Now()
	in.spawn(verb, settle, func() {
		pub, err := p.open(ctx, vu)
		if err != nil {
			series.Fail("connect", p.conn.address.Driver.KindOf(err))
			settle(func() (any, error) { return nil, err })
			return
		}
		s := pub.NewSender(p.mode(false), series)
		if !p.sender.CompareAndSwap(nil, s) {
			s = cmp.Or(p.sender.Load(), s)
		}
		p.use(s, verb, settle, func() { do(ctx, s, settle, driver.Now()-asked) })
	})
	return promise
}

// use does something with the sender, which is not used again where that panics: it may hold its lock for ever.
func (p *producer) use(s *load.Sender, verb string, settle settler, do func()) {
	defer func() {
		if cause := recover(); cause != nil {
			p.sender.CompareAndSwap(s, nil)
			p.conn.in.reject(verb, settle, cause)
		}
	}()
	do()
}

// mode is where stamps go; that it can be had was checked in init.
func (p *producer) mode(generated bool) load.StampMode {
	mode, _ := p.stamp.Resolve(p.conn.address.Driver.Features, generated)
	return mode
}

// receipt is what a script gets for a message that was confirmed. Nothing is made of it until it is asked for.
type receipt struct {
	rt *sobek.Runtime
	of load.Receipt
}

var receiptKeys = []string{"sequence", "due", "sent", "latency", "time"}

func newReceipt(rt *sobek.Runtime, of load.Receipt) *sobek.Object {
	return rt.NewDynamicObject(&receipt{rt, of})
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
	}
	return nil
}

func (r *receipt) Set(string, sobek.Value) bool { return false }

func (r *receipt) Has(name string) bool { return slices.Contains(receiptKeys, name) }

func (r *receipt) Delete(string) bool { return false }

func (r *receipt) Keys() []string { return receiptKeys }

func ms(ns int64) float64 { return float64(ns) / float64(time.Millisecond) }

// send sends one message or an array of them and resolves to a receipt or an array of receipts. It has the form that the runtime
// calls directly: any other is called by reflection, which would cost more than all the rest of it.
func (p *producer) send(call sobek.FunctionCall) sobek.Value {
	rt := p.conn.in.vu.Runtime()
	promise, err := p.dispatch(call.Argument(0))
	if err != nil {
		panic(rt.NewGoError(err)) // which the runtime throws in the script
	}
	return rt.ToValue(promise)
}

func bodiless(m driver.Message) bool { return m.Body == nil }

func (p *producer) dispatch(v sobek.Value) (*sobek.Promise, error) {
	batch, single, err := p.conn.messages(v, p.config.Window)
	if err != nil {
		return nil, fmt.Errorf("send: %w", err)
	}
	if p.mode(false) == load.StampInBody && p.conn.address.Driver.Features.Tombstones && slices.ContainsFunc(batch, bodiless) {
		return nil, errors.New(`send: body: null: there is a stamp in each body, by the producer's option "stamp"`)
	}
	due := p.conn.in.due.next()
	async := p.conn.address.Driver.Features.Async
	return p.withSender(func(ctx context.Context, s *load.Sender, settle settler, opening int64) {
		due := due.After(opening)
		send := func() {
			s.Send(ctx, batch, due, func(receipts []load.Receipt) {
				settle(func() (any, error) { return p.settled(receipts, single) })
			})
		}
		if async {
			send()
		} else { // it may wait for a worker, the event loop must not
			p.conn.in.spawn("send", settle, send)
		}
	}), nil
}

func (p *producer) settled(receipts []load.Receipt, single bool) (any, error) {
	rt := p.conn.in.vu.Runtime()
	for _, r := range receipts {
		if r.Err != nil {
			return nil, r.Err
		}
	}
	if single {
		return newReceipt(rt, receipts[0]), nil
	}
	list := make([]any, len(receipts))
	for i, r := range receipts {
		list[i] = newReceipt(rt, r)
	}
	return list, nil
}

// request sends a message and resolves to the reply.
func (p *producer) request(v, opts sobek.Value) (*sobek.Promise, error) {
	if !p.conn.address.Driver.Features.Requests {
		return nil, fmt.Errorf("request: %s has no request and reply", p.conn.address.Driver.Name)
	}
	o, err := readOptions("request", opts)
	if err != nil {
		return nil, err
	}
	timeout := o.duration("timeout", 5*time.Second)
	if err := o.done(); err != nil {
		return nil, err
	}
	batch, single, err := p.conn.messages(v, p.config.Window)
	if err == nil && !single {
		err = errors.New("one message at a time")
	}
	if err != nil {
		return nil, fmt.Errorf("request: %w", err)
	}
	due := p.conn.in.due.next()
	return p.withSender(func(ctx context.Context, s *load.Sender, settle settler, opening int64) {
		due := due.After(opening)
		p.conn.in.spawn("request", settle, func() {
			ctx, cancel := context.WithTimeout(ctx, timeout)
			defer cancel()
			reply, err := s.Request(ctx, batch[0], due)
			settle(func() (any, error) {
				if err != nil {
					return nil, err
				}
				in := &load.Inbox{Messages: driver.Batch{reply}, Stamps: make([]load.Stamp, 1), Stamped: make([]bool, 1)}
				return p.conn.in.newMessage(nil, in, 0), nil
			})
		})
	}), nil
}
