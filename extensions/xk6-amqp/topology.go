package amqp

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// declare creates a topic, or checks that it exists with the same properties.
func (c *conn) declare(ch *amqp.Channel, s driver.TopicSpec) error {
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
	for _, key := range bindingKeys(&s) {
		if err := ch.QueueBind(s.Name, key, exchange, false, o.Map("bindingArguments")); err != nil {
			return err
		}
	}
	return nil
}

// bindingKeys returns the keys that bind a queue to its exchange: the topic's name if there is no
// option.
func bindingKeys(s *driver.TopicSpec) []string {
	if keys := s.Options.List("bindings"); len(keys) > 0 {
		return keys
	}
	return []string{s.Name}
}

// refuseBindings refuses options that RabbitMQ would ignore. In pubsub mode consumers bind.
func (c *conn) refuseBindings(o driver.Values) error {
	switch {
	case c.mode == pubsub:
		return nil
	case o.String("exchange") != "":
		if o.String("exchangeType") == amqp.ExchangeHeaders && len(o.Map("bindingArguments")) == 0 {
			return refusal("bindingArguments", "an exchange of type headers needs them")
		}
		return nil
	}
	for _, option := range []string{"bindings", "bindingArguments", "exchangeArguments"} {
		if len(o.List(option)) > 0 || len(o.Map(option)) > 0 {
			return refusal(option, "it needs the option exchange")
		}
	}
	return nil
}

func refusal(option, reason string) error {
	return &driver.OptionError{Name: option, Err: errors.New(reason)}
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
