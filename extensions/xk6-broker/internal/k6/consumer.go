package k6

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"sync"
	"time"

	"github.com/grafana/sobek"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/engine"
)

// consumer describes a consumer in one VU. The VU joins the group with its first receive or ready,
// and leaves when it is deactivated.
type consumer struct {
	conn   *connection
	config driver.ConsumerConfig
	group  string // the label of its measurements
	spread int
	uses   map[string]any // the options in the result

	receiving sync.Mutex // keeps the messages of several receives in order

	mu     sync.Mutex       // held while opening
	opened *engine.Consumer // of the VU
}

const (
	defaultPrefetch = 1000
	maxPrefetch     = 1 << 20
)

func (c *connection) newConsumer(topic string, o *options) (*sobek.Object, error) {
	f := c.address.Driver.Features
	if f.Start == 0 {
		return nil, fmt.Errorf("consumer: %s only sends: there is nothing to consume from", c.address.Driver.Name)
	}
	k := &consumer{conn: c, spread: connections(o, perVU)}
	k.config = driver.ConsumerConfig{
		Topic: topic, Group: o.text("group", ""), Prefetch: o.integer("prefetch", defaultPrefetch, 1, maxPrefetch),
		ConfirmSettle: o.boolean("confirmAcks"), Start: startOf(o, f),
	}
	var err error
	if k.config.Options, k.uses, err = c.resolve(driver.OnConsumer, o); err != nil {
		return nil, err
	}
	if k.config.ConfirmSettle && f.SettleConfirmed == driver.Never {
		return nil, fmt.Errorf("consumer: option \"confirmAcks\": %s does not answer acknowledgements", c.address.Driver.Name)
	}
	if k.config.Group != "" && !f.Groups {
		return nil, fmt.Errorf("consumer: option \"group\": %s has no groups: leave group out", c.address.Driver.Name)
	}
	k.group = engine.GroupLabel(f, k.config.Group)
	c.in.run.Topic(c.address, topic).Declare()
	return c.in.object(map[string]any{
		"topic": topic, "options": c.address.Driver.Redact(k.config.Options),
		"ready": k.ready, "receive": k.receive, "ack": k.ack, "nack": k.nack, "reject": k.reject, "reply": k.reply,
		"consume": k.consume, "close": k.close,
	}), nil
}

// startOf reads the option start. The default is new messages, if the broker has that.
func startOf(o *options, f driver.Features) driver.Start {
	start := o.choice("start", names(f.Start, driver.StartNew, driver.StartEarliest)...)
	if start == driver.StartEarliest.String() {
		return driver.StartEarliest
	}
	return driver.StartNew
}

// open returns the VU's consumer, ready. The consumer leaves when the VU's activation ends.
func (k *consumer) open(ctx context.Context, vu uint64, series *engine.Series) (*engine.Consumer, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.opened == nil {
		opened, err := k.join(ctx, vu, 0, series)
		if err != nil {
			return nil, err
		}
		k.opened = opened
		k.conn.in.run.leaving.Add(1)
		context.AfterFunc(activation(ctx), func() {
			defer k.conn.in.run.leaving.Done()
			k.dismiss(k.forget())
		})
	}
	k.opened.SetSeries(series)
	return k.opened, nil
}

// join opens the n-th consumer of a VU, ready.
func (k *consumer) join(ctx context.Context, vu uint64, n int, series *engine.Series) (*engine.Consumer, error) {
	run := k.conn.in.run
	name := connectionName("consumers", vu, k.spread)
	if k.spread == 0 && n > 0 {
		name = fmt.Sprintf("%s.%d", name, n)
	}
	topic := run.Topic(k.conn.address, k.config.Topic) // before opening, whose errors are part of the result
	topic.Use("connect", k.conn.uses)
	topic.Use("consumer", k.uses)
	conn, err := run.Connect(ctx, k.conn.endpoint(name))
	var opened *engine.Consumer
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, engine.OpenTimeout)
		defer cancel()
		opened, err = run.NewConsumer(ctx, conn, topic, k.config, series)
	}
	if err != nil {
		series.Fail("connect", k.conn.address.Driver.KindOf(err))
	}
	return opened, err
}

// forget returns the VU's consumer, if it is open. The next use opens another.
func (k *consumer) forget() (opened []*engine.Consumer) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.opened != nil {
		opened = append(opened, k.opened)
	}
	k.opened = nil
	return opened
}

// dismiss has consumers leave the group.
func (k *consumer) dismiss(opened []*engine.Consumer) {
	ctx, cancel := k.conn.in.run.within(engine.OpenTimeout, interruptedDrain)
	defer cancel()
	for _, c := range opened {
		if err := c.Leave(ctx); err != nil {
			k.conn.in.run.logger.WithError(err).Warn("a consumer did not leave well")
		}
	}
}

// consumerWork uses a VU's consumer and settles a promise.
type consumerWork func(ctx context.Context, c *engine.Consumer, settle settler)

// with runs work with the VU's consumer in a goroutine.
func (k *consumer) with(verb string, work consumerWork) *sobek.Promise {
	in := k.conn.in
	made, settle := in.promise(verb)
	series, err := k.conn.series(k.config.Topic, k.group)
	if err != nil {
		settle(nil, err)
		return made
	}
	ctx, vu := in.vu.Context(), in.vu.State().VUID
	opened := in.opening(ctx)
	go func() {
		consumer, err := k.open(ctx, vu, series)
		opened()
		if err != nil {
			settle(nil, err)
			return
		}
		work(ctx, consumer, settle)
	}()
	return made
}

// ready resolves when the consumer is assigned and would see the next message.
func (k *consumer) ready() *sobek.Promise {
	return k.with("ready", func(_ context.Context, _ *engine.Consumer, settle settler) { settle(sobek.Undefined(), nil) })
}

const defaultWait = time.Second

// receive resolves to the messages that have arrived, and waits for the first.
func (k *consumer) receive(opts sobek.Value) (*sobek.Promise, error) {
	o, err := readOptions("receive", opts)
	if err != nil {
		return nil, err
	}
	most, wait := o.integer("max", 1, 1, maxPrefetch), o.duration("wait", defaultWait)
	if err := o.done(); err != nil {
		return nil, err
	}
	return k.with("receive", func(ctx context.Context, c *engine.Consumer, settle settler) {
		in := engine.NewBuffer(most)
		waiting, done := untilOver(ctx, true)
		waiting, cancel := context.WithTimeout(waiting, wait)
		defer cancel()
		k.receiving.Lock()
		defer k.receiving.Unlock()
		n, err := c.Receive(waiting, in)
		done(n > 0)
		settle(outcome(func() (any, error) { // on the event loop, where the script continues
			if err != nil {
				return nil, err
			}
			c.HandOver(in, n)
			list := make([]any, n)
			for i := range list {
				list[i] = k.conn.in.newMessage(k, in, i)
			}
			return k.conn.in.vu.Runtime().NewArray(list...), nil
		}), nil)
	}), nil
}

func (k *consumer) ack(v sobek.Value) (*sobek.Promise, error) { return k.settle("ack", v, driver.Ack) }

func (k *consumer) nack(v, opts sobek.Value) (*sobek.Promise, error) {
	o, err := readOptions("nack", opts)
	if err != nil {
		return nil, err
	}
	requeue := read(o, "requeue", true, "true or false", exact[bool])
	if err := o.done(); err != nil {
		return nil, err
	}
	if !requeue {
		return k.settle("nack", v, driver.Reject)
	}
	return k.settle("nack", v, driver.Requeue)
}

func (k *consumer) reject(v sobek.Value) (*sobek.Promise, error) {
	return k.settle("reject", v, driver.Reject)
}

// settle ends the delivery of a message or an array of them, all received by this consumer. An ack
// does nothing on a broker without acknowledgements.
func (k *consumer) settle(verb string, v sobek.Value, outcome driver.Outcome) (*sobek.Promise, error) {
	in, err := k.received(v)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", verb, err)
	}
	d := k.conn.address.Driver
	switch {
	case d.Features.Settle == 0 && outcome == driver.Ack:
		made, settle := k.conn.in.promise(verb)
		settle(sobek.Undefined(), nil)
		return made, nil
	case !d.Features.Settle.Has(outcome):
		all := names(d.Features.Settle, driver.Ack, driver.Requeue, driver.Reject)
		return nil, fmt.Errorf("%s: %s cannot %s: its outcomes are %v", verb, d.Name, outcome, all)
	}
	return k.with(verb, func(ctx context.Context, c *engine.Consumer, settle settler) {
		settle(sobek.Undefined(), c.Settle(ctx, in, 0, len(in.Messages), outcome))
	}), nil
}

var errNotReceived = errors.New("a message or an array of messages that this consumer has received is needed")

// received collects the messages of a script's argument in one buffer.
func (k *consumer) received(v sobek.Value) (*engine.Buffer, error) {
	in := &engine.Buffer{}
	if !isArray(v) {
		return in, k.collect(in, v)
	}
	array := v.ToObject(k.conn.in.vu.Runtime())
	n := array.Get("length").ToInteger()
	room := int(min(n, int64(k.config.Prefetch))) // the script sets the length of the array
	in.Messages, in.Stamps, in.Stamped = make(driver.Batch, 0, room), make([]engine.Stamp, 0, room), make([]bool, 0, room)
	for i := range int(n) {
		if err := k.collect(in, array.Get(strconv.Itoa(i))); err != nil {
			return nil, fmt.Errorf("message %d: %w", i, err)
		}
	}
	return in, nil
}

// collect adds a message to a buffer.
func (k *consumer) collect(in *engine.Buffer, v sobek.Value) error {
	m, err := k.asMessage(v)
	if err != nil {
		return err
	}
	in.Messages = append(in.Messages, m.in.Messages[m.i])
	in.Stamps = append(in.Stamps, m.in.Stamps[m.i])
	in.Stamped = append(in.Stamped, m.in.Stamped[m.i])
	return nil
}

var messageType = reflect.TypeFor[*message]()

// asMessage returns the message of an argument, which this consumer must have received. It checks
// the type first, because an export of another object can run the script's code.
func (k *consumer) asMessage(v sobek.Value) (*message, error) {
	o, ok := v.(*sobek.Object)
	if !ok || o.ExportType() != messageType {
		return nil, errNotReceived
	}
	m, ok := o.Export().(*message)
	if !ok || m.by != k {
		return nil, errNotReceived
	}
	return m, nil
}

// close leaves the group; the next receive joins again.
func (k *consumer) close() *sobek.Promise {
	return k.conn.in.async("close", func(ctx context.Context) (any, error) {
		var err error
		for _, c := range k.forget() {
			err = c.Close(ctx)
		}
		return sobek.Undefined(), err
	})
}
