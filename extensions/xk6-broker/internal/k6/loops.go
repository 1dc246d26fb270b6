package k6

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/grafana/sobek"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/engine"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/executors"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/payload"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/schedule"
)

// produced is what produce resolves to.
type produced struct {
	Due       uint64  `js:"due"`
	Sent      uint64  `js:"sent"`
	Confirmed uint64  `js:"confirmed"`
	Failed    uint64  `js:"failed"`
	Seconds   float64 `js:"seconds"`
	Rate      float64 `js:"rate"` // confirmed per second
	Latencies any     `js:"latencies"`
}

// produce runs the loop in Go: one k6 iteration for a whole run. Each process of the test sends its
// share.
func (p *producer) produce(opts sobek.Value) (*sobek.Promise, error) {
	o, err := readOptions("produce", opts)
	if err != nil {
		return nil, err
	}
	given := maps.Clone(o.given)
	seed := uint64(o.integer("seed", 0, 0, 1<<52)) //gosec:disable G115 -- the option has limits
	loop := engine.Produce{
		Duration: o.duration("duration", 0),
		Count:    uint64(o.integer("count", 0, 0, 1<<52)),
	} //gosec:disable G115 -- the option has limits
	loop.LeastBatch, loop.Batch = batchOf(o)
	if loop.Payload, err = p.payloadOf(o, opts, seed); err != nil {
		return nil, err
	}
	senders := o.integer("producers", 1, 1, 1<<16)
	due, err := arrivalsOf(o, loop.Duration, seed)
	if err = errors.Join(err, o.done()); err != nil {
		return nil, err
	}
	if err := due.shape(&loop.Payload); err != nil {
		return nil, fmt.Errorf("produce: %w", err)
	}
	if loop.Duration == 0 && loop.Count == 0 && !due.end {
		return nil, errors.New(`produce: it would never end: give "duration", "count", "stages" or "trace"`)
	}
	stamp := p.mode(loop.Payload.Bodies == nil) // given bodies have it only if the broker has no headers
	if err := loop.Payload.Check(stamp.Front()); err != nil {
		return nil, fmt.Errorf("produce: %w", err)
	}
	loop.Schedule = due.schedule
	series, err := p.conn.series(p.config.Topic, "")
	if err != nil {
		return p.conn.in.rejected("produce", err), nil
	}
	part := p.conn.in.part()
	loop.Share = part.Share()
	topic := p.conn.in.run.Topic(p.conn.address, p.config.Topic)
	topic.Use("produce", producing(given, loop, senders))
	senders = max(1, part.Scale(senders)) // each process sends
	vu := p.conn.in.vu.State().VUID
	return p.conn.in.async("produce", func(ctx context.Context) (any, error) {
		before := series.Distributions()
		all := make([]*engine.Sender, senders)
		for i := range all {
			pub, err := p.open(ctx, vu+uint64(i))
			if err != nil {
				series.Fail("connect", p.conn.address.Driver.KindOf(err))
				return nil, err
			}
			all[i] = pub.NewSender(stamp, series)
		}
		turn, err := executors.AwaitTurn(ctx, p.conn.in.run.logger)
		if err != nil {
			ended, cancel := context.WithCancel(ctx)
			cancel()
			_, _ = loop.Run(ended, all) // counts the unsent messages
			return nil, err
		}
		loop.Start = turn
		r, err := loop.Run(ctx, all)
		return &produced{
			Due: r.Due, Sent: r.Sent, Confirmed: r.Confirmed, Failed: r.Failed, Seconds: r.Elapsed.Seconds(),
			Rate: float64(r.Confirmed) / r.Elapsed.Seconds(), Latencies: latencies(series.Distributions().Since(&before)),
		}, err
	}), nil
}

// producing returns the options of a loop for the result, defaults included and a trace left out.
func producing(given map[string]any, loop engine.Produce, senders int) map[string]any {
	if _, ok := given["trace"]; ok {
		given["trace"] = "given"
	} else if loop.Schedule != nil {
		given = withDefaults(given, rateDefaults[executors.Type])
	}
	delete(given, "payload")
	if loop.Share.Fraction() < 1 {
		given["divided"] = true
	}
	given["producers"] = senders
	if loop.LeastBatch > 0 {
		given["batch"] = fmt.Sprintf("%d to %d", loop.LeastBatch, loop.Batch)
	}
	describePayload(&loop.Payload, given)
	return given
}

// arrivals are the due times of messages.
type arrivals struct {
	schedule func() schedule.Schedule // nil in a closed loop
	peak     float64                  // messages per second
	end      bool                     // the schedule ends by itself
	sizes    payload.Sizes            // of a trace with sizes
	keys     payload.Keys             // of a trace with keys
}

// shape gives messages the sizes and keys of a trace.
func (a *arrivals) shape(spec *payload.Spec) error {
	if a.sizes != nil {
		if spec.Bodies != nil || spec.Size != nil {
			return errors.New(`options "trace" and "payload": the trace has sizes: give no others, and no bodies`)
		}
		spec.Size = a.sizes
	}
	if a.keys != nil {
		if spec.Keys != nil {
			return errors.New(`options "trace" and "payload.keys": the trace has keys: give no others`)
		}
		spec.Keys = a.keys
	}
	if spec.Size == nil && spec.Bodies == nil {
		spec.Size = payload.Fixed(defaultSize)
	}
	return nil
}

// arrivalsOf reads rate, timeUnit, stages, startRate, arrivals and trace. Without them the loop is
// closed.
func arrivalsOf(o *options, duration time.Duration, seed uint64) (arrivals, error) {
	if text, ok := o.take("trace"); ok {
		return traceOf(o, text)
	}
	unit := o.duration("timeUnit", time.Second)
	plan := schedule.Plan{Arrivals: o.text("arrivals", ""), Seed: seed}
	rate, hasRate := o.take("rate")
	stages, hasStages := o.take("stages")
	start, hasStart := o.take("startRate")
	if !hasRate && !hasStages {
		if plan.Arrivals != "" || hasStart {
			return arrivals{}, fmt.Errorf(`%s: "arrivals" and "startRate" need "rate" or "stages"`, o.call)
		}
		return arrivals{}, nil
	}
	var err error
	if hasRate {
		plan.Duration = duration
		if plan.Rate, err = rateOf(o, "rate", rate, unit); err != nil {
			return arrivals{}, err
		}
	}
	if hasStart {
		if plan.StartRate, err = rateOf(o, "startRate", start, unit); err != nil {
			return arrivals{}, err
		}
	}
	if hasStages {
		if plan.Stages, err = stagesOf(o, stages, unit); err != nil {
			return arrivals{}, err
		}
	}
	first, err := plan.Schedule()
	if err != nil {
		return arrivals{}, fmt.Errorf("%s: %w", o.call, err)
	}
	return arrivals{
		schedule: func() schedule.Schedule { s, _ := plan.Schedule(); return s }, peak: schedule.Peak(first),
		end: len(plan.Stages) > 0,
	}, nil
}

func rateOf(o *options, name string, raw any, unit time.Duration) (schedule.Rate, error) {
	n, ok := number(raw)
	if !ok {
		return schedule.Rate{}, fmt.Errorf("%s: option %q: %s is not a number", o.call, name, driver.Show(raw))
	}
	r, err := schedule.NewRate(n, unit)
	if err != nil {
		return r, fmt.Errorf("%s: option %q: %w", o.call, name, err)
	}
	return r, nil
}

func stagesOf(o *options, raw any, unit time.Duration) ([]schedule.Stage, error) {
	list, ok := raw.([]any)
	if !ok {
		return nil, fmt.Errorf(`%s: option "stages": %s is not an array of {target, duration}`, o.call, driver.Show(raw))
	}
	stages := make([]schedule.Stage, len(list))
	for i, item := range list {
		fields, ok := item.(map[string]any)
		if !ok {
			return nil, fmt.Errorf(`%s: option "stages": stage %d is not {target, duration}`, o.call, i+1)
		}
		stage := &options{call: fmt.Sprintf("%s: stage %d", o.call, i+1), given: fields}
		stages[i].Duration = stage.duration("duration", 0)
		target, _ := stage.take("target")
		var err error
		if stages[i].Target, err = rateOf(stage, "target", target, unit); err != nil {
			return nil, err
		}
		if err := stage.done(); err != nil {
			return nil, err
		}
	}
	return stages, nil
}

func traceOf(o *options, raw any) (arrivals, error) {
	for _, other := range []string{"rate", "timeUnit", "stages", "startRate", "arrivals"} {
		if _, ok := o.take(other); ok {
			return arrivals{}, fmt.Errorf(
				"%s: options \"trace\" and %q: a trace has all the due times there are: give one of the two", o.call,
				other,
			)
		}
	}
	text, ok := raw.(string)
	if !ok {
		return arrivals{}, fmt.Errorf(`%s: option "trace": the text of a trace file is needed, as open() gives it`, o.call)
	}
	text, sizes, keys, err := payload.Trace(text)
	var trace schedule.Schedule
	if err == nil {
		trace, err = schedule.Trace(strings.NewReader(text))
	}
	if err != nil {
		return arrivals{}, fmt.Errorf("%s: option \"trace\": %w", o.call, err)
	}
	return arrivals{
		schedule: func() schedule.Schedule { return trace },
		peak:     schedule.Peak(trace),
		end:      true,
		sizes:    sizes,
		keys:     keys,
	}, nil
}

// consuming returns the options of a loop for the result, defaults included.
func consuming(given map[string]any, loop engine.Consume, members int, group string) map[string]any {
	maps.Copy(given, map[string]any{"consumers": members, "batch": loop.Batch, "ack": string(loop.Ack)})
	if group != "" {
		given["group"] = group
	}
	return given
}

// consumed is what consume resolves to.
type consumed struct {
	Received  uint64  `js:"received"`
	Settled   uint64  `js:"settled"`
	Errors    uint64  `js:"errors"`
	Seconds   float64 `js:"seconds"` // to the last message
	Rate      float64 `js:"rate"`    // received per second
	Latencies any     `js:"latencies"`
}

// consume runs the loop in Go.
func (k *consumer) consume(opts sobek.Value) (*sobek.Promise, error) {
	o, err := readOptions("consume", opts)
	if err != nil {
		return nil, err
	}
	given := maps.Clone(o.given)
	loop, err := engine.Consume{
		Batch: o.integer("batch", 0, 0, maxPrefetch), Ack: engine.AckMode(o.text("ack", "")), Work: o.duration("work", 0),
		Duration: o.duration("duration", 0), Idle: o.duration("idle", 0),
		Count: uint64(o.integer("count", 0, 0, 1<<52)), //gosec:disable G115 -- the option has limits
	}.Resolve(k.conn.address.Driver.Features)
	if err != nil {
		err = fmt.Errorf("consume: %w", err)
	}
	members := o.integer("consumers", 1, 1, 1<<16)
	if err = errors.Join(err, o.done()); err != nil {
		return nil, err
	}
	if _, ok := executors.MemberFrom(k.conn.in.vu.Context()); !ok && loop.Duration == 0 && loop.Count == 0 &&
		loop.Idle == 0 {
		return nil, errors.New(
			`consume: it would never end: give "duration", "count" or "idle", or run it in a scenario whose executor is "consumers"`,
		)
	}
	series, err := k.conn.series(k.config.Topic, k.group)
	if err != nil {
		return k.conn.in.rejected("consume", err), nil
	}
	k.conn.in.run.Topic(k.conn.address, k.config.Topic).Use("consume", consuming(given, loop, members, k.config.Group))
	if members = k.conn.in.part().Scale(members); members == 0 {
		return k.elsewhere(), nil
	}
	vu := k.conn.in.vu.State().VUID
	opened := k.conn.in.opening(k.conn.in.vu.Context())
	return k.conn.in.async("consume", func(ctx context.Context) (any, error) {
		k.narrow(members)
		k.loop(1)
		defer k.loop(-1)
		before := series.Distributions()
		all, err := k.members(ctx, vu, members, series)
		opened()
		if err != nil {
			return nil, err
		}
		ctx, stop := untilOver(ctx, false)
		defer stop()
		looped := waiting(ctx)
		r, err := loop.Run(ctx, all)
		looped(r.Received > 0)
		return &consumed{
			Received: r.Received, Settled: r.Settled, Errors: r.Errors, Seconds: r.Elapsed.Seconds(),
			Rate: float64(r.Received) / r.Elapsed.Seconds(), Latencies: latencies(series.Distributions().Since(&before)),
		}, err
	}), nil
}

// elsewhere is the loop of a process without any of its consumers: it lasts as long as the
// scenario.
func (k *consumer) elsewhere() *sobek.Promise {
	opened := k.conn.in.opening(k.conn.in.vu.Context())
	return k.conn.in.async("consume", func(ctx context.Context) (any, error) {
		opened()
		if m, ok := executors.MemberFrom(ctx); ok {
			select {
			case <-m.Over().Done():
			case <-ctx.Done():
			}
		}
		return &consumed{Latencies: map[string]any{}}, ctx.Err()
	})
}

// loop counts the loops in progress.
func (k *consumer) loop(n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.loops += n
}

// members returns the VU's first n consumers, ready.
func (k *consumer) members(ctx context.Context, vu uint64, n int, series *engine.Series) ([]*engine.Consumer, error) {
	all := make([]*engine.Consumer, n)
	for i := range all {
		var err error
		if all[i], err = k.open(ctx, vu, i, series); err != nil {
			series.Fail("connect", k.conn.address.Driver.KindOf(err))
			return nil, err
		}
	}
	return all, nil
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

// waiting announces that a VU waits for messages. The caller calls done with whether any arrived.
func waiting(ctx context.Context) (done func(found bool)) {
	if m, ok := executors.MemberFrom(ctx); ok {
		return m.Waiting()
	}
	return func(bool) {}
}

// untilOver returns ctx, which under executor consumers also ends when everything has arrived. A
// bounded call that begins later keeps its bound, because a script that receives in a loop would
// spin.
func untilOver(ctx context.Context, bounded bool) (context.Context, context.CancelFunc) {
	m, ok := executors.MemberFrom(ctx)
	if !ok || bounded && m.Over().Err() != nil {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(m.Over(), cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}
