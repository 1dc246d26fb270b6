package k6

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/grafana/sobek"
	"go.k6.io/k6/v2/lib"
	"go.k6.io/k6/v2/lib/types"
	"gopkg.in/guregu/null.v3"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/engine"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/executors"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/payload"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/schedule"
)

// This file has the loops in Go: produce and consume.

// Limits of options.
const (
	maxCount = 1 << 52
	maxBatch = 1 << 16
	maxLoops = 1 << 16
)

// produce runs the loop in Go: one k6 iteration for a whole run. Each process of the test sends its
// share.
func (p *producer) produce(opts sobek.Value) (*sobek.Promise, error) {
	o, err := readOptions("produce", opts)
	if err != nil {
		return nil, err
	}
	loop, senders, err := p.loopOf(o, opts)
	if err != nil {
		return nil, err
	}
	series, err := p.conn.series(p.config.Topic, "")
	if err != nil {
		return p.conn.in.rejected("produce", err), nil
	}
	part := p.conn.in.part()
	loop.Share = part.Share()
	if loop.Schedule != nil {
		p.conn.in.run.expectRate(schedule.Peak(loop.Schedule()) * loop.Share.Fraction())
	}
	p.conn.in.run.Topic(p.conn.address, p.config.Topic).Use("produce", o.uses)
	senders = max(1, part.Scale(senders)) // each process sends
	vu := p.conn.in.vu.State().VUID
	return p.conn.in.async("produce", func(ctx context.Context) (any, error) {
		all := make([]*engine.Sender, senders)
		for i := range all {
			pub, err := p.open(ctx, vu+uint64(i), series)
			if err != nil {
				loop.Unsent(series)
				return nil, err
			}
			all[i] = pub.NewSender(p.mode(loop.Payload.Bodies == nil), series)
		}
		// If ctx ends meanwhile, the loop counts its messages as unsent.
		loop.Start, _ = executors.AwaitTurn(ctx, p.conn.in.run.logger)
		r, err := loop.Run(ctx, all)
		return map[string]any{
			"due": r.Due, "sent": r.Sent, "confirmed": r.Confirmed, "failed": r.Failed,
			"seconds": r.Elapsed.Seconds(), "rate": float64(r.Confirmed) / r.Elapsed.Seconds(),
		}, err
	}), nil
}

// loopOf reads the options of produce.
func (p *producer) loopOf(o *options, opts sobek.Value) (loop engine.Produce, senders int, err error) {
	o.uses = map[string]any{}
	loop.Duration, loop.Count = o.duration("duration", 0), countOf(o)
	loop.Batch = o.integer("batch", 0, 0, maxBatch)
	seed := uint64(o.integer("seed", 0, 0, maxCount)) //gosec:disable G115 -- the option has limits
	loop.Payload = p.payloadOf(o, opts, seed)
	senders = o.integer("producers", 1, 1, maxLoops)
	ends := arrivalsOf(o, &loop)
	if loop.Payload.Size == nil && loop.Payload.Bodies == nil {
		loop.Payload.Size = payload.Fixed(defaultSize)
		o.uses["payload.size"] = defaultSize
	}
	if err = o.done(); err != nil {
		return loop, 0, err
	}
	if !ends && loop.Duration == 0 && loop.Count == 0 {
		return loop, 0, errors.New(`produce: it would never end: give "duration", "count", "stages" or "trace"`)
	}
	// Given bodies have a stamp only if the broker has no headers.
	if err = loop.Payload.Check(p.mode(loop.Payload.Bodies == nil).Front()); err != nil {
		return loop, 0, fmt.Errorf("produce: %w", err)
	}
	return loop, senders, nil
}

func countOf(o *options) uint64 {
	return uint64(o.integer("count", 0, 0, maxCount)) //gosec:disable G115 -- the option has limits
}

// arrivalsOf reads the schedule of a loop, with the executor's options or a trace, and reports
// whether it ends. Without it the loop is closed.
func arrivalsOf(o *options, loop *engine.Produce) (ends bool) {
	if raw, ok := o.take("trace"); ok {
		o.uses["trace"] = "given"
		if err := traceOf(o, raw, loop); err != nil {
			o.fail(fmt.Errorf(`option "trace": %w`, err))
		}
		return true
	}
	const rate = "a number"
	c := executors.Config{
		Rate:      read(o, "rate", null.Float{}, rate, fromJSON[null.Float]),
		TimeUnit:  read(o, "timeUnit", types.NullDuration{}, `a duration such as "1s"`, fromJSON[types.NullDuration]),
		StartRate: read(o, "startRate", null.Float{}, rate, fromJSON[null.Float]),
		Stages:    read(o, "stages", nil, "an array of {target, duration}", fromJSON[[]executors.Stage]),
		Arrivals:  read(o, "arrivals", null.String{}, "a string", fromJSON[null.String]),
		Seed:      null.IntFrom(int64(loop.Payload.Seed)), //gosec:disable G115 -- the option has limits
	}
	if !c.Rate.Valid && c.Stages == nil && !c.StartRate.Valid && !c.Arrivals.Valid {
		return false
	}
	if c.Rate.Valid {
		c.Duration = types.NullDurationFrom(loop.Duration)
	}
	if _, err := c.Schedule(); err != nil {
		o.fail(err)
	}
	loop.Schedule = func() schedule.Schedule {
		s, _ := c.Schedule() // it has no error
		return s
	}
	withDefaults(o.uses, rateDefaults[executors.Type])
	return len(c.Stages) > 0
}

// fromJSON reads a value as k6 reads the options of scenarios.
func fromJSON[T any](raw any) (value T, ok bool) {
	text, err := json.Marshal(raw)
	if err == nil {
		err = lib.StrictJSONUnmarshal(text, &value)
	}
	return value, err == nil
}

// traceOf reads the due times of messages, and their sizes and keys if the trace has them.
func traceOf(o *options, raw any, loop *engine.Produce) error {
	for _, other := range []string{"rate", "timeUnit", "stages", "startRate", "arrivals"} {
		if _, ok := o.take(other); ok {
			return fmt.Errorf("a trace has the due times: leave out %q", other)
		}
	}
	text, ok := raw.(string)
	if !ok {
		return errors.New("the text of a trace file is needed, as open() returns it")
	}
	text, sizes, keys, err := payload.Trace(text)
	if err != nil {
		return err
	}
	trace, err := schedule.Trace(strings.NewReader(text))
	if err != nil {
		return err
	}
	spec := &loop.Payload
	if sizes != nil && (spec.Bodies != nil || spec.Size != nil) || keys != nil && spec.Keys != nil {
		return errors.New(`the trace has sizes or keys, which "payload" gives too: leave out one of the two`)
	}
	if sizes != nil {
		spec.Size = sizes
	}
	if keys != nil {
		spec.Keys = keys
	}
	loop.Schedule = func() schedule.Schedule { return trace }
	return nil
}

// consume runs the loop in Go. Members of the group beyond the VU's own consumer leave at its end.
func (k *consumer) consume(opts sobek.Value) (*sobek.Promise, error) {
	in := k.conn.in
	o, err := readOptions("consume", opts)
	if err != nil {
		return nil, err
	}
	o.uses = map[string]any{"group": k.config.Group}
	members := o.integer("consumers", 1, 1, maxLoops)
	loop, err := engine.Consume{
		Batch: o.integer("batch", 0, 0, maxPrefetch), Ack: engine.AckMode(o.text("ack", "")), Work: o.duration("work", 0),
		Duration: o.duration("duration", 0), Idle: o.duration("idle", 0), Count: countOf(o),
	}.Resolve(k.conn.address.Driver.Features)
	if err != nil {
		o.fail(err)
	}
	if err := o.done(); err != nil {
		return nil, err
	}
	_, ends := executors.MemberFrom(in.vu.Context())
	if !ends && loop.Duration == 0 && loop.Count == 0 && loop.Idle == 0 {
		return nil, errors.New(`consume: it would never end: give "duration", "count" or "idle", or use executor "consumers"`)
	}
	series, err := k.conn.series(k.config.Topic, k.group)
	if err != nil {
		return in.rejected("consume", err), nil
	}
	o.uses["batch"], o.uses["ack"] = loop.Batch, string(loop.Ack)
	in.run.Topic(k.conn.address, k.config.Topic).Use("consume", o.uses)
	members = in.part().Scale(members)
	vu, opened := in.vu.State().VUID, in.opening(in.vu.Context())
	return in.async("consume", func(ctx context.Context) (any, error) {
		all, err := k.members(ctx, vu, members, series)
		opened()
		if err != nil {
			return nil, err
		}
		waiting, done := untilOver(ctx, false)
		if len(all) == 0 { // they are in other processes
			<-waiting.Done()
		} else {
			defer k.dismiss(all[1:])
		}
		r, err := loop.Run(waiting, all)
		done(r.Received > 0)
		return map[string]any{
			"received": r.Received, "settled": r.Settled, "errors": r.Errors,
			"seconds": r.Elapsed.Seconds(), "rate": float64(r.Received) / r.Elapsed.Seconds(),
		}, err
	}), nil
}

// members opens the consumers of a loop: the VU's own, and others that the caller dismisses.
func (k *consumer) members(ctx context.Context, vu uint64, n int, series *engine.Series) ([]*engine.Consumer, error) {
	if n == 0 {
		return nil, nil
	}
	own, err := k.open(ctx, vu, series)
	all := []*engine.Consumer{own}
	for i := 1; i < n && err == nil; i++ {
		var member *engine.Consumer
		if member, err = k.join(ctx, vu, i, series); err == nil {
			all = append(all, member)
		}
	}
	if err != nil {
		k.dismiss(all[1:])
	}
	return all, err
}

// part returns this process's share of a loop.
func (in *instance) part() executors.Part {
	return executors.PartOf(in.vu.Context(), in.run.state.Load().execution)
}

// opening announces that a VU of executor consumers opens a consumer. The caller calls done after
// that.
func (in *instance) opening(ctx context.Context) (done func()) {
	if m, ok := executors.MemberFrom(ctx); ok {
		return m.Opening(in.run.Arrived)
	}
	return func() {}
}

// untilOver announces that a VU waits for messages. The caller calls done with whether any arrived.
// Under executor consumers the context also ends when everything has arrived. A bounded call that
// begins later keeps its bound, because a script that receives in a loop would spin.
func untilOver(ctx context.Context, bounded bool) (waiting context.Context, done func(found bool)) {
	m, ok := executors.MemberFrom(ctx)
	if !ok {
		return ctx, func(bool) {}
	}
	waited := m.Waiting()
	if bounded && m.Over().Err() != nil {
		return ctx, waited
	}
	waiting, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(m.Over(), cancel)
	return waiting, func(found bool) {
		stop()
		cancel()
		waited(found)
	}
}
