package k6

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/grafana/sobek"
	"go.k6.io/k6/v2/lib"
	"go.k6.io/k6/v2/metrics"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/engine"
)

// connection describes a broker. The first use opens it.
type connection struct {
	in      *instance
	address *driver.Address
	key     string         // equal for VUs that share the connection
	uses    map[string]any // the options in the result
	objects objects        // producers and consumers

	last struct { // the last result of series
		tags         *metrics.TagSet
		topic, group string
		series       *engine.Series
	}
}

// connect parses the URL and the options.
func (in *instance) connect(url sobek.Value, opts sobek.Value) (*sobek.Object, error) {
	var exported any
	if given(url) {
		exported = url.Export()
	}
	raw, _ := exported.(string)
	if raw == "" {
		return nil, fmt.Errorf(
			`connect: the URL must be a string such as "nats://127.0.0.1:4222" or "embedded:", not %s`,
			driver.Show(exported),
		)
	}
	o, err := readOptions("connect", opts)
	if err != nil {
		return nil, err
	}
	return in.connections.get("connect", raw, o, func() (*sobek.Object, error) { return in.newConnection(raw, o) })
}

func (in *instance) newConnection(raw string, o *options) (*sobek.Object, error) {
	if drain := o.duration("drainTimeout", 0); drain > 0 {
		in.run.SetDrainTimeout(drain)
	}
	if warmUp := o.duration("warmup", 0); warmUp > 0 {
		if in.vu.State() != nil {
			return nil, errLateWarmUp
		}
		in.run.warmUp.want(warmUp)
	}
	given, err := o.rest()
	if err != nil {
		return nil, err
	}
	address, err := driver.ParseURL(raw, given)
	if err != nil {
		return nil, o.explain(err)
	}
	if err := address.ReadFiles(in.readFile); err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	in.run.dialers.add(address.Driver)
	c := &connection{in: in, address: address, key: fmt.Sprintf("%s %v", raw, given), objects: objects{}}
	if _, c.uses, err = c.resolve(driver.OnConnect, nil); err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	return in.object(map[string]any{
		"driver": address.Driver.Name, "url": address.String(), "features": features(address.Driver.Features),
		"producer": c.producer, "consumer": c.consumer, "require": c.require,
		"createTopic": c.createTopic, "deleteTopic": c.deleteTopic, "purge": c.purge, "backlog": c.backlog,
	}), nil
}

// endpoint names one of the connections with equal descriptions.
func (c *connection) endpoint(name string) engine.Endpoint {
	return engine.Endpoint{Address: c.address, Words: c.key + " " + name, Uses: c.uses, Network: c.in.network}
}

// resolve returns the values of the driver's options of a scope, and the values for the result:
// with secrets masked, and with the profile.
func (c *connection) resolve(
	scope driver.Scope, given map[string]any,
) (values driver.Values, shown map[string]any, err error) {
	if values, err = c.address.Resolve(scope, given); err != nil {
		return nil, nil, err
	}
	profile, err := c.address.Profile(given)
	shown = c.address.Driver.Redact(values)
	shown["profile"] = string(profile)
	return values, shown, err
}

// features returns a driver's claims for scripts.
func features(f driver.Features) map[string]any {
	deliver := f.Deliver.String()
	if f.Start == 0 { // it only sends
		deliver = "none"
	}
	return map[string]any{
		"order": f.Order.String(), "confirm": f.Confirm.String(), "deliver": deliver,
		"settle": names(
			f.Settle, driver.Ack, driver.Requeue, driver.Reject,
		), "start": names(f.Start, driver.StartNew, driver.StartEarliest),
		"settleConfirmed": f.SettleConfirmed.String(), "async": f.Async, "replay": f.Replay, "groups": f.Groups,
		"fanout": f.Fanout,
		"key":    f.Key, "headers": f.Headers, "attempts": f.Attempts, "tombstones": f.Tombstones,
		"requests":   f.Requests || f.Start != 0 && f.Headers,
		"partitions": f.Partitions, "position": f.Position.String(), "timestamps": f.Timestamps, "receipts": f.Receipts,
		"maxMessageBytes": f.MaxMessageBytes,
	}
}

func names[T interface {
	~uint8
	fmt.Stringer
}](set T, all ...T) []string {
	list := []string{}
	for _, one := range all {
		if set&one != 0 {
			list = append(list, one.String())
		}
	}
	return list
}

// require fails with the features that a scenario needs and the broker lacks.
func (c *connection) require(wanted map[string]any) error {
	have := features(c.address.Driver.Features)
	var missing []string
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		got, ok := have[name]
		if !ok {
			return fmt.Errorf("require: no feature %q: see conn.features", name)
		}
		wants, many := wanted[name].([]any)
		if !many {
			wants = []any{wanted[name]}
		}
		for _, want := range wants {
			if !satisfies(got, want) {
				missing = append(missing, fmt.Sprintf("%s: %s (has %v)", name, driver.Show(want), got))
			}
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("%s cannot run this scenario, which needs %s", c.address.Driver.Name, strings.Join(missing, "; "))
	}
	return nil
}

// satisfies reports whether a feature has the wanted value.
func satisfies(got, want any) bool {
	if list, ok := got.([]string); ok {
		text, ok := want.(string)
		return ok && slices.Contains(list, text)
	}
	switch want.(type) {
	case string, bool, int64, float64:
		return fmt.Sprint(got) == fmt.Sprint(want)
	}
	return false
}

// admin runs do on the connection's client, in the way of how in a test of several processes.
// Without topic administration at the broker it does nothing.
func (c *connection) admin(
	op string, how func(commonCall, context.Context, func() error) error, do func(context.Context, driver.Admin) error,
) *sobek.Promise {
	call := c.in.commonCall(c.in.vu.Context(), op)
	return c.in.async(op, func(ctx context.Context) (any, error) {
		conn, err := c.in.run.Connect(ctx, c.endpoint("producers 0"))
		if err != nil {
			return nil, err
		}
		admin, ok := conn.(driver.Admin)
		if !ok {
			return nil, nil // the promise resolves to undefined
		}
		return nil, c.address.Driver.Wrap(op, how(call, ctx, func() error { return do(ctx, admin) }))
	})
}

func (c *connection) deleteTopic(name sobek.Value) (*sobek.Promise, error) {
	return c.remove("deleteTopic", "delete topic ", name, false, driver.Admin.DeleteTopic)
}

func (c *connection) purge(name sobek.Value) (*sobek.Promise, error) {
	return c.remove("purge", "purge topic ", name, true, driver.Admin.PurgeTopic)
}

// teardownLeave is how long teardown waits for the consumers of the scenarios to leave.
const teardownLeave = 2 * time.Second

// remove removes messages after their account is complete.
func (c *connection) remove(
	verb, op string, name sobek.Value, stays bool, do func(driver.Admin, context.Context, string) error,
) (*sobek.Promise, error) {
	topic, err := topicOf(verb, name)
	if err != nil {
		return nil, err
	}
	return c.admin(op+topic, commonCall.removing, func(ctx context.Context, a driver.Admin) error {
		run := c.in.run
		drain := engine.Drain{Limit: run.DrainTimeout(), Stop: ctx.Done()}
		if run.state.Load().execution.GetCurrentExecutionStatus() == lib.ExecutionStatusTeardown {
			drain.Leave = teardownLeave
		}
		return run.Remove(ctx, run.Topic(c.address, topic), drain, stays, func() error { return do(a, ctx, topic) })
	}), nil
}

// backlog resolves to the number of the topic's messages that the group has not settled.
func (c *connection) backlog(name, of sobek.Value) (*sobek.Promise, error) {
	topic, err := topicOf("backlog", name)
	if err != nil {
		return nil, err
	}
	group, err := textOf("backlog", "the group", of)
	if err != nil {
		return nil, err
	}
	return c.in.async("backlog", func(ctx context.Context) (any, error) {
		conn, err := c.in.run.Connect(ctx, c.endpoint("producers 0"))
		if err != nil {
			return nil, err
		}
		if _, ok := conn.(driver.Backlogger); !ok {
			return nil, c.address.Driver.Wrap("backlog", fmt.Errorf("backlog: %w by this broker", errors.ErrUnsupported))
		}
		n, err := c.in.run.Backlog(ctx, c.in.run.Topic(c.address, topic), group, conn)
		return n, c.address.Driver.Wrap("backlog of "+topic, err)
	}), nil
}

// series returns the series of a VU's measurements by topic, group and the VU's tags. It is called
// on the event loop.
func (c *connection) series(topic, group string) (*engine.Series, error) {
	state, err := c.in.use()
	if err != nil {
		return nil, err
	}
	tags := state.Tags.GetCurrentValues().Tags
	if last := &c.last; last.series != nil && last.tags == tags && last.topic == topic && last.group == group {
		return last.series, nil
	}
	series := c.in.run.Series(engine.Labels{
		Broker: c.address.String(), Driver: c.address.Driver.Name, Topic: topic, Group: group, Tags: tags,
	})
	c.last.tags, c.last.topic, c.last.group, c.last.series = tags, topic, group, series
	return series, nil
}
