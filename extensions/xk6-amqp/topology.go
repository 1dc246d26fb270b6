package amqp

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// declare creates a topic, or checks that it exists with the same properties.
func (c *conn) declare(ch *amqp.Channel, s driver.TopicSpec, bindings []binding) error {
	o := s.Options
	kind, arguments := o.String("exchangeType"), o.Map("exchangeArguments")
	if c.mode == pubsub {
		return ch.ExchangeDeclare(s.Name, kind, true, false, false, false, arguments)
	}
	if err := c.declareQueue(ch, s.Name, o, s.Replicas); err != nil {
		return err
	}
	exchange := o.String("exchange")
	if exchange == "" {
		return nil
	}
	if err := ch.ExchangeDeclare(exchange, kind, true, false, false, false, arguments); err != nil {
		return err
	}
	for _, b := range bindings {
		if err := ch.QueueBind(s.Name, b.key, exchange, false, b.arguments); err != nil {
			return err
		}
	}
	return nil
}

// binding is a binding of a queue to its exchange.
type binding struct {
	key       string
	arguments map[string]any
}

// bindings returns the bindings of a queue to its exchange: by the topic's name if there is no
// option.
func bindings(s *driver.TopicSpec) (all []binding, err error) {
	items := s.Options.Items("bindings")
	if len(items) == 0 {
		return []binding{{key: s.Name}}, nil
	}
	for i, item := range items {
		b := binding{key: s.Name}
		ok := true
		switch item := item.(type) {
		case string:
			b.key = item
		case map[string]any:
			b, ok = bindingOf(item, b)
		}
		if !ok {
			return nil, refusal("bindings", fmt.Sprintf("%d is no key, and no object with key and arguments", i+1))
		}
		all = append(all, b)
	}
	return all, nil
}

// refuseBindings refuses options that RabbitMQ would ignore. In pubsub mode consumers bind.
func (c *conn) refuseBindings(o driver.Values, all []binding) error {
	switch {
	case c.mode == pubsub:
		return nil
	case o.String("exchange") != "":
		isUnbound := func(b binding) bool { return len(b.arguments) == 0 }
		if o.String("exchangeType") == amqp.ExchangeHeaders && slices.ContainsFunc(all, isUnbound) {
			return refusal("bindings", "an exchange of type headers needs bindings with arguments")
		}
	case len(o.Items("bindings")) > 0:
		return refusal("bindings", "it needs the option exchange")
	case len(o.Map("exchangeArguments")) > 0:
		return refusal("exchangeArguments", "it needs the option exchange")
	}
	return nil
}

func refusal(option, reason string) error {
	return &driver.OptionError{Name: option, Err: errors.New(reason)}
}

func bindingOf(object map[string]any, b binding) (_ binding, ok bool) {
	for name, value := range object {
		switch name {
		case "key":
			b.key, ok = value.(string)
		case "arguments":
			b.arguments, ok = value.(map[string]any)
		default:
			ok = false
		}
		if !ok {
			return b, false
		}
	}
	return b, true
}

// declareQueue declares a queue that consumers share, and the one for its dead letters, if any.
func (c *conn) declareQueue(ch *amqp.Channel, name string, o driver.Values, replicas int) error {
	letters := short(o.String("deadLetterQueue"), o.String("deadLetterExchange"), o.String("deadLetterRoutingKey"))
	if err := cmp.Or(c.refuseQueue(o), letters); err != nil {
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
			return rejectedError("deadLetterQueue with deadLetterExchange needs deadLetterRoutingKey")
		default:
			if err := ch.QueueBind(dead, key, exchange, false, nil); err != nil {
				return err
			}
		}
	}
	_, err := ch.QueueDeclare(name, c.isDurable(o), false, false, false, c.queueArguments(o, replicas))
	return err
}

// refuseQueue refuses options that a queue of its kind would ignore.
func (c *conn) refuseQueue(o driver.Values) error {
	quorum := o.String("queueType") == amqp.QueueTypeQuorum
	switch {
	case c.mode == stream: // it has neither option
	case quorum && !o.Bool("durable"):
		return refusal("durable", "a quorum queue is always durable: false is for queueType=classic")
	case !quorum && o.String("leaderLocator") == "balanced":
		return refusal("leaderLocator", "a classic queue has no leader: balanced is for queueType=quorum")
	}
	set := c.queueArguments(o, 1)
	for name, value := range o.Map("queueArguments") {
		if set[name] != value {
			return refusal("queueArguments", fmt.Sprintf("%q: another option sets it to %v", name, set[name]))
		}
	}
	return nil
}

// isDurable reports whether the queue of a topic survives a restart, as every replicated one does.
func (c *conn) isDurable(o driver.Values) bool {
	return c.mode == stream || o.String("queueType") == "quorum" || o.Bool("durable")
}

// queueArguments returns the optional arguments of queue.declare. The broker and its policies
// decide the others.
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
	for option, name := range argumentOf {
		switch v := o[option].(type) {
		case int64:
			if v > 0 {
				args[name] = v
			}
		case time.Duration:
			if v > 0 {
				args[name] = v.Milliseconds()
			}
		case string:
			if v != "" {
				args[name] = v
			}
		}
	}
	if age := o.Duration("maxAge"); age > 0 {
		args[amqp.StreamMaxAgeArg] = fmt.Sprintf("%ds", int64(age.Seconds()))
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
	for name, value := range o.Map("queueArguments") {
		if _, set := args[name]; !set {
			args[name] = value
		}
	}
	return args
}

// argumentOf has the arguments of queue.declare by the names of options.
var argumentOf = map[string]string{
	"maxLength": amqp.QueueMaxLenArg, "maxLengthBytes": amqp.QueueMaxLenBytesArg,
	"deliveryLimit": "x-delivery-limit", "maxPriority": "x-max-priority",
	"segmentBytes": "x-stream-max-segment-size-bytes",
	"messageTTL":   amqp.QueueMessageTTLArg, "expires": amqp.QueueTTLArg,
	"deadLetterExchange": "x-dead-letter-exchange", "deadLetterRoutingKey": "x-dead-letter-routing-key",
}

// bind returns the queue that a consumer consumes from. In pubsub mode it declares and binds it.
func (r *consumer) bind(ch *amqp.Channel) (name string, err error) {
	if r.conn.mode != pubsub {
		return r.topic, nil
	}
	if r.group != "" {
		name = groupQueue(r.topic, r.group)
		err = r.conn.declareQueue(ch, name, r.options, 1)
		r.conn.remember(r.topic, name)
	} else {
		var own amqp.Queue
		own, err = ch.QueueDeclare("", false, true, true, false, nil) // deleted with the consumer
		name = own.Name
	}
	if err != nil {
		return "", err
	}
	key, arguments := r.options.String("bindingKey"), r.options.Map("bindingArguments")
	return name, ch.QueueBind(name, key, r.topic, false, arguments)
}

// groupQueue names the queue of a group of a pubsub topic.
func groupQueue(topic, group string) string { return topic + "." + group }
