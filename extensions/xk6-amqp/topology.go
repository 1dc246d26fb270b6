package amqp

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// declare creates what a topic is, or finds it there with the same properties.
func (c *conn) declare(ch *amqp.Channel, s driver.TopicSpec) error {
	o := s.Options
	if c.mode == pubsub {
		return ch.ExchangeDeclare(s.Name, o.String("exchangeType"), true, false, false, false, o.Map("exchangeArguments"))
	}
	if err := c.declareQueue(ch, s.Name, o, s.Replicas); err != nil {
		return err
	}
	exchange := o.String("exchange")
	if exchange == "" {
		return nil
	}
	if err := ch.ExchangeDeclare(exchange, o.String("exchangeType"), true, false, false, false, o.Map("exchangeArguments")); err != nil {
		return err
	}
	for _, b := range bindings(&s) {
		if err := ch.QueueBind(s.Name, b.key, exchange, false, b.arguments); err != nil {
			return err
		}
	}
	return nil
}

// binding is how a queue is bound to its exchange.
type binding struct {
	key       string
	arguments map[string]any
}

// bindings are those of a queue to its exchange: by the topic's name where the option has none.
func bindings(s *driver.TopicSpec) []binding {
	var all []binding
	for _, item := range s.Options.Items("bindings") {
		b := binding{key: s.Name}
		switch item := item.(type) {
		case string:
			b.key = item
		case map[string]any:
			if key, ok := item["key"].(string); ok {
				b.key = key
			}
			b.arguments, _ = item["arguments"].(map[string]any)
		}
		all = append(all, b)
	}
	if len(all) == 0 {
		return []binding{{key: s.Name}}
	}
	return all
}

// refuseBindings finds what RabbitMQ would pass over.
func (c *conn) refuseBindings(s *driver.TopicSpec) error {
	if c.mode == pubsub { // whose consumers bind
		return nil
	}
	items := s.Options.Items("bindings")
	for _, item := range items {
		object, _ := item.(map[string]any)
		for name, value := range object {
			_, text := value.(string)
			_, arguments := value.(map[string]any)
			if name == "key" && !text || name == "arguments" && !arguments || name != "key" && name != "arguments" {
				return &driver.OptionError{Name: "bindings", Err: fmt.Errorf("%q: a binding is a key, or an object with key, a string, and arguments, an object", name)}
			}
		}
	}
	if s.Options.String("exchange") == "" {
		for name, given := range map[string]bool{"bindings": len(items) > 0, "exchangeArguments": len(s.Options.Map("exchangeArguments")) > 0} {
			if given {
				return &driver.OptionError{Name: name, Err: errors.New("it needs the option exchange")}
			}
		}
		return nil
	}
	if s.Options.String("exchangeType") == amqp.ExchangeHeaders {
		for i, b := range bindings(s) {
			if len(b.arguments) == 0 {
				return &driver.OptionError{Name: "bindings", Err: fmt.Errorf("binding %d has no arguments, so that an exchange of type headers would give the queue every message; "+
					"it should look like { arguments: { 'x-match': 'all', type: 'create' } }", i+1)}
			}
		}
	}
	return nil
}

// declareQueue declares a queue that consumers share, and the one for its dead letters, if it has one.
func (c *conn) declareQueue(ch *amqp.Channel, name string, o driver.Values, replicas int) error {
	if err := cmp.Or(c.refuseQueue(o), short(o.String("deadLetterQueue"), o.String("deadLetterExchange"), o.String("deadLetterRoutingKey"))); err != nil {
		return err
	}
	if dead := o.String("deadLetterQueue"); dead != "" {
		kind := amqp.Table{amqp.QueueTypeArg: o.String("queueType")}
		if _, err := ch.QueueDeclare(dead, c.isDurable(o), false, false, false, kind); err != nil {
			return err
		}
		exchange, key := o.String("deadLetterExchange"), o.String("deadLetterRoutingKey")
		switch {
		case exchange == "":
		case key == "":
			return rejectedError("deadLetterQueue with deadLetterExchange needs deadLetterRoutingKey, to bind them by")
		default:
			if err := ch.QueueBind(dead, key, exchange, false, nil); err != nil {
				return err
			}
		}
	}
	_, err := ch.QueueDeclare(name, c.isDurable(o), false, false, false, c.queueArguments(o, replicas))
	return err
}

// likeness is what is known of a queue beside what it was created as.
type likeness uint8

const (
	same likeness = iota
	another
	unknown // nobody may ask
)

// likeness reports whether a queue that is there is what it was created as. RabbitMQ does not tell what a queue is, but refuses to declare it again as
// another one. One that expires is not asked for, as that would keep it, and what is refused once is not asked again.
func (c *conn) likeness(ctx context.Context, created *driver.TopicSpec) likeness {
	o := created.Options
	if o.Duration("expires") > 0 {
		return same
	}
	if c.mayNotAsk.Load() {
		return unknown
	}
	err := c.consuming.do(ctx, func(ch *amqp.Channel) error {
		if _, err := ch.QueueDeclarePassive(created.Name, false, false, false, false, nil); err != nil {
			return err
		}
		_, err := ch.QueueDeclare(created.Name, c.isDurable(o), false, false, false, c.queueArguments(o, created.Replicas))
		return err
	})
	var refused *amqp.Error
	if errors.As(err, &refused) {
		switch refused.Code {
		case amqp.PreconditionFailed, amqp.ResourceLocked: // the latter is another client's own
			return another
		case amqp.AccessRefused:
			c.mayNotAsk.Store(true)
			return unknown
		}
	}
	return same // or not there, or not to be reached
}

// refuseQueue finds options that a queue of its kind would pass over.
func (c *conn) refuseQueue(o driver.Values) error {
	quorum := o.String("queueType") == amqp.QueueTypeQuorum
	switch {
	case c.mode == stream: // whose options say nothing of either
	case quorum && !o.Bool("durable"):
		return &driver.OptionError{Name: "durable", Err: errors.New("a quorum queue is always durable: false is for queueType=classic")}
	case !quorum && o.String("leaderLocator") == "balanced":
		return &driver.OptionError{Name: "leaderLocator", Err: errors.New("a classic queue has no leader to place: balanced is for queueType=quorum")}
	}
	set := c.queueArguments(o, 1)
	for name, value := range o.Map("queueArguments") {
		if set[name] != value {
			return &driver.OptionError{Name: "queueArguments", Err: fmt.Errorf("%q: another option of this driver sets it, to %v", name, set[name])}
		}
	}
	return nil
}

// isDurable reports whether the queue of a topic survives a restart, as every replicated one does.
func (c *conn) isDurable(o driver.Values) bool {
	return c.mode == stream || o.String("queueType") == "quorum" || o.Bool("durable")
}

// queueArguments are the optional arguments of queue.declare. What is not set is left to the broker and its policies.
func (c *conn) queueArguments(o driver.Values, replicas int) amqp.Table {
	kind := o.String("queueType")
	if c.mode == stream {
		kind = amqp.QueueTypeStream
	}
	args := amqp.Table{amqp.QueueTypeArg: kind}
	switch kind {
	case amqp.QueueTypeQuorum:
		args["x-quorum-initial-group-size"] = int64(replicas)
	case amqp.QueueTypeStream:
		args["x-initial-cluster-size"] = int64(replicas)
	}
	for option, name := range map[string]string{
		"maxLength": amqp.QueueMaxLenArg, "maxLengthBytes": amqp.QueueMaxLenBytesArg, "deliveryLimit": "x-delivery-limit",
		"maxPriority": "x-max-priority", "segmentBytes": "x-stream-max-segment-size-bytes",
	} {
		if n := o.Int(option); n > 0 {
			args[name] = n
		}
	}
	for option, name := range map[string]string{"messageTTL": amqp.QueueMessageTTLArg, "expires": amqp.QueueTTLArg} {
		if d := o.Duration(option); d > 0 {
			args[name] = d.Milliseconds()
		}
	}
	if age := o.Duration("maxAge"); age > 0 {
		args[amqp.StreamMaxAgeArg] = fmt.Sprintf("%ds", int64(age.Seconds()))
	}
	for option, name := range map[string]string{"deadLetterExchange": "x-dead-letter-exchange", "deadLetterRoutingKey": "x-dead-letter-routing-key"} {
		if s := o.String(option); s != "" {
			args[name] = s
		}
	}
	if dead := o.String("deadLetterQueue"); dead != "" && o.String("deadLetterExchange") == "" {
		args["x-dead-letter-exchange"], args["x-dead-letter-routing-key"] = "", dead
	}
	if overflow := o.String("overflow"); overflow != "" && overflow != "drop-head" {
		args[amqp.QueueOverflowArg] = overflow
	}
	if o.String("leaderLocator") == "balanced" {
		args["x-queue-leader-locator"] = "balanced"
	}
	if o.Bool("singleActiveConsumer") {
		args[amqp.SingleActiveConsumerArg] = true
	}
	if o.Bool("lazy") {
		args["x-queue-mode"] = "lazy"
	}
	for name, value := range o.Map("queueArguments") {
		if _, set := args[name]; !set {
			args[name] = value
		}
	}
	return args
}

// bind gives the queue that a consumer consumes from, which in pubsub mode it declares.
func (r *consumer) bind(ch *amqp.Channel) (string, error) {
	if r.conn.mode != pubsub {
		return r.topic, nil
	}
	if r.group != "" {
		name := groupQueue(r.topic, r.group)
		if err := r.conn.declareQueue(ch, name, r.options, 1); err != nil {
			return "", err
		}
		r.conn.remember(r.topic, name)
		return name, ch.QueueBind(name, r.options.String("bindingKey"), r.topic, false, r.options.Map("bindingArguments"))
	}
	own, err := ch.QueueDeclare("", false, true, true, false, nil) // goes when the consumer does
	if err != nil {
		return "", err
	}
	return own.Name, ch.QueueBind(own.Name, r.options.String("bindingKey"), r.topic, false, r.options.Map("bindingArguments"))
}

// groupQueue names the queue of a group of a pubsub topic.
func groupQueue(topic, group string) string { return topic + "." + group }
