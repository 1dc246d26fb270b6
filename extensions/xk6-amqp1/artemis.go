package amqp1

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	amqp "github.com/Azure/go-amqp"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// artemis is Artemis's management: messages to an address of its own, which name a resource (broker, queue.NAME, address.NAME) and what of it.
type artemis struct {
	mode mode
	*desk
}

func newArtemis(c *conn) *artemis {
	return &artemis{c.mode, newDesk(c, func(ctx context.Context, p *pair) (err error) {
		if p.receiver, err = p.session.NewReceiver(ctx, "", &amqp.ReceiverOptions{DynamicAddress: true}); err != nil {
			return err
		}
		p.sender, err = p.session.NewSender(ctx, "activemq.management", nil)
		return err
	})}
}

// createTopic makes an address, and where it is a queue the queue of its name. What is there already must be of the same sort.
func (a *artemis) createTopic(ctx context.Context, spec driver.TopicSpec) error {
	if a.mode == pubsub {
		return a.createAddress(ctx, spec.Name)
	}
	if err := a.routed(ctx, spec.Name, "ANYCAST"); err != nil && classify(err) != driver.NotFound {
		return err
	}
	durable := spec.Options.Bool("durable")
	config, err := json.Marshal(map[string]any{"name": spec.Name, "address": spec.Name, "routing-type": "ANYCAST", "durable": durable, "auto-create-address": true})
	if err != nil {
		return err
	}
	if err := a.invoke(ctx, "broker", "createQueue", string(config), true); err != nil {
		return err
	}
	is, err := a.durable(ctx, spec.Name)
	if err == nil && is != durable {
		return differs(spec.Name, "durable", is, durable)
	}
	return err
}

// durable reports whether a queue outlives a restart.
func (a *artemis) durable(ctx context.Context, name string) (is bool, err error) {
	err = a.attribute(ctx, "queue."+name, "durable", &is)
	return is, err
}

// createAddress makes an address that every subscription gets all of.
func (a *artemis) createAddress(ctx context.Context, name string) error {
	err := a.invoke(ctx, "broker", "createAddress", name, "MULTICAST")
	if err == nil || classify(err) != driver.Rejected {
		return err
	}
	is := a.routed(ctx, name, "MULTICAST")
	if is != nil && classify(is) == driver.NotFound {
		return err // it was not refused for being there
	}
	return is
}

// routed fails where there is no address of the name, or it is of another sort.
func (a *artemis) routed(ctx context.Context, name, sort string) error {
	var sorts []string
	err := a.attribute(ctx, "address."+name, "routingTypes", &sorts)
	if err == nil && !slices.Contains(sorts, sort) {
		return differs(name, "routing type", sorts, sort)
	}
	return err
}

// deleteTopic deletes an address and all its queues, whoever consumes from them.
func (a *artemis) deleteTopic(ctx context.Context, topic string) error {
	return overStumbles(ctx, func() error { return a.invoke(ctx, "broker", "deleteAddress", topic, true) })
}

// overStumbles does something again where Artemis stumbled: it disconnects the consumers of what it deletes, and one whose own connection is just breaking
// is a null pointer to it. What is gone by then had been done all the same.
func overStumbles(ctx context.Context, do func() error) error {
	const most = 5
	for try := 1; ; try++ {
		err := do()
		var of *kindError
		switch {
		case err == nil:
			return nil
		case try > 1 && errors.As(err, &of) && of.kind == driver.NotFound:
			return nil
		case try == most || !strings.Contains(err.Error(), "Cannot invoke"):
			return err
		}
		select {
		case <-time.After(stumblePause):
		case <-ctx.Done():
			return err
		}
	}
}

const stumblePause = 50 * time.Millisecond

// purgeTopic empties the queues of an address, of what is not with a consumer.
func (a *artemis) purgeTopic(ctx context.Context, topic string) error {
	return a.invoke(ctx, "address."+topic, "purge")
}

// backlog is how many messages are in a queue, those with consumers among them.
func (a *artemis) backlog(ctx context.Context, topic, group string) (messages int64, err error) {
	if a.mode == pubsub {
		topic = subscription(topic, group) + ":global" // as it names what the link says is shared
	}
	return messages, a.attribute(ctx, "queue."+topic, "messageCount", &messages)
}

// invoke calls an operation of a resource.
func (a *artemis) invoke(ctx context.Context, resource, operation string, args ...any) error {
	_, err := a.request(ctx, map[string]any{"_AMQ_ResourceName": resource, "_AMQ_OperationName": operation}, append([]any{}, args...))
	return err
}

// attribute reads a property of a resource into value.
func (a *artemis) attribute(ctx context.Context, resource, name string, value any) error {
	answer, err := a.request(ctx, map[string]any{"_AMQ_ResourceName": resource, "_AMQ_Attribute": name}, []any{})
	if err != nil {
		return err
	}
	if err := json.Unmarshal(answer, value); err != nil {
		return fmt.Errorf("attribute %s of %s: %w", name, resource, err)
	}
	return nil
}

func (a *artemis) request(ctx context.Context, what map[string]any, args []any) (json.RawMessage, error) {
	body, err := json.Marshal(args)
	if err != nil {
		return nil, err
	}
	reply, err := a.ask(ctx, func(p *pair) *amqp.Message {
		to := p.receiver.Address()
		return &amqp.Message{Properties: &amqp.MessageProperties{ReplyTo: &to, CorrelationID: p.asked}, ApplicationProperties: what, Value: string(body)}
	})
	if err != nil {
		return nil, err
	}
	return artemisResult(reply)
}

// artemisResult reads a reply: an array of one element, or why there is none.
func artemisResult(reply *amqp.Message) (json.RawMessage, error) {
	text := string(bodyOf(reply))
	if done, _ := reply.ApplicationProperties["_AMQ_OperationSucceeded"].(bool); !done {
		return nil, artemisError(text)
	}
	if text == "" || text == "null" {
		return nil, nil // of an operation that gives nothing
	}
	var all []json.RawMessage
	if err := json.Unmarshal([]byte(text), &all); err != nil || len(all) != 1 {
		return nil, fmt.Errorf("the answer of the broker's management is not an array of one element: %.100q", text)
	}
	return all[0], nil
}

// artemisError is what the management says why it did not do something. Its codes are those of Artemis's messages.
func artemisError(text string) error {
	var parts []string
	if json.Unmarshal([]byte(text), &parts) == nil {
		text = strings.Join(parts, ": ")
	}
	kind := driver.Rejected
	switch {
	case strings.Contains(text, "AMQ229017"), strings.Contains(text, "AMQ229203"), strings.Contains(strings.ToLower(text), "cannot find resource"),
		strings.Contains(text, "Problem while retrieving attribute"): // as it says of a resource that is not there
		kind = driver.NotFound
	case strings.Contains(text, notPermitted):
		kind = driver.Denied
	}
	return &kindError{kind, errors.New("the broker's management: " + text)}
}
