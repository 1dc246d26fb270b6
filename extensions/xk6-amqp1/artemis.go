package amqp1

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	amqp "github.com/Azure/go-amqp"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver/redial"
)

// AMQP 1.0 cannot manage topics. At Artemis requests are messages to a management address, with the
// name of a resource (broker, queue.NAME, address.NAME) and of an operation or attribute.

func (c *conn) artemis() bool {
	on, ok := c.link.Last()
	return ok && strings.Contains(strings.ToLower(on.product), "artemis")
}

// unmanaged returns the error of a verb at another broker than Artemis.
func (c *conn) unmanaged(verb string) error {
	return fmt.Errorf("%s: AMQP 1.0 has no management, and this is not Artemis: %w", verb, errors.ErrUnsupported)
}

// differs returns the error of a topic that exists with other settings.
func differs(name, setting string, is, asked any) error {
	return &kindError{
		driver.Rejected,
		fmt.Errorf("topic %q exists with other settings: %s is %v, not %v", name, setting, is, asked),
	}
}

// CreateTopic creates an address and, if it is a queue, the queue of its name. It does nothing at
// other brokers than Artemis.
func (c *conn) CreateTopic(ctx context.Context, spec driver.TopicSpec) error {
	if !c.artemis() {
		return nil
	}
	if c.mode == pubsub {
		return c.createAddress(ctx, spec.Name)
	}
	if err := c.routed(ctx, spec.Name, "ANYCAST"); err != nil && classify(err) != driver.NotFound {
		return err
	}
	durable := spec.Options.Bool("durable")
	config, err := json.Marshal(map[string]any{
		"name":                spec.Name,
		"address":             spec.Name,
		"routing-type":        "ANYCAST",
		"durable":             durable,
		"auto-create-address": true,
	})
	if err != nil {
		return err
	}
	if err := c.invoke(ctx, "broker", "createQueue", string(config), true); err != nil {
		return err
	}
	is, err := c.durable(ctx, spec.Name)
	if err == nil && is != durable {
		return differs(spec.Name, "durable", is, durable)
	}
	return err
}

// durable reports whether a queue survives a restart.
func (c *conn) durable(ctx context.Context, name string) (is bool, err error) {
	err = c.attribute(ctx, "queue."+name, "durable", &is)
	return is, err
}

// createAddress creates an address that copies to every subscription.
func (c *conn) createAddress(ctx context.Context, name string) error {
	err := c.invoke(ctx, "broker", "createAddress", name, "MULTICAST")
	if err == nil || classify(err) != driver.Rejected {
		return err
	}
	existing := c.routed(ctx, name, "MULTICAST")
	if existing != nil && classify(existing) == driver.NotFound {
		return err // another reason
	}
	return existing
}

// routed fails if there is no address of the name, or if it has another routing type.
func (c *conn) routed(ctx context.Context, name, kind string) error {
	var kinds []string
	err := c.attribute(ctx, "address."+name, "routingTypes", &kinds)
	if err == nil && !slices.Contains(kinds, kind) {
		return differs(name, "routing type", kinds, kind)
	}
	return err
}

// DeleteTopic deletes an address and its queues, with their consumers.
func (c *conn) DeleteTopic(ctx context.Context, topic string) error {
	if !c.artemis() {
		return c.unmanaged("delete")
	}
	return retryNull(ctx, func() error { return c.invoke(ctx, "broker", "deleteAddress", topic, true) })
}

// retryNull repeats a deletion after a null pointer in Artemis, which it reports if a consumer's
// connection breaks at that moment. The first attempt may have deleted the address.
func retryNull(ctx context.Context, do func() error) error {
	const most = 5
	for try := 1; ; try++ {
		err := do()
		switch {
		case err == nil, try > 1 && classify(err) == driver.NotFound:
			return nil
		case try == most || !strings.Contains(err.Error(), "Cannot invoke") || !redial.Sleep(ctx, 2):
			return err
		}
	}
}

// PurgeTopic purges the queues of an address. Consumers keep their messages.
func (c *conn) PurgeTopic(ctx context.Context, topic string) error {
	if !c.artemis() {
		return c.unmanaged("purge")
	}
	return c.invoke(ctx, "address."+topic, "purge")
}

// Backlog is the number of messages in a queue, including those at consumers.
func (c *conn) Backlog(ctx context.Context, topic, group string) (b driver.Backlog, err error) {
	switch {
	case !c.artemis():
		return b, c.unmanaged("backlog")
	case c.mode == queue && group != "":
		return b, errGroup
	case c.mode == pubsub && group == "":
		return b, fmt.Errorf("a consumer without a group has a queue of its own: backlog: %w", errors.ErrUnsupported)
	}
	if c.mode == pubsub {
		topic = subscription(topic, group) + ":global" // Artemis's name for a shared subscription
	}
	return b, c.attribute(ctx, "queue."+topic, "messageCount", &b.Messages)
}

// Proof implements [driver.Prover]. AMQP does not return the number of copies, or whether they are
// on disk. A queue that is not durable loses durable messages in a restart.
func (c *conn) Proof(ctx context.Context, p driver.ProducerConfig, _ *driver.TopicSpec) driver.Proof {
	accepted := func(how string) driver.Proof {
		return driver.Proof{Confirm: driver.Accepted, How: "the broker accepted it, " + how}
	}
	switch {
	case !p.Options.Bool("persistent"):
		return accepted("and may lose it in a restart (persistent=false)")
	case c.mode == pubsub:
		return accepted("as a durable message")
	case !c.artemis() || c.options.String("address") != "":
		return accepted("as a durable message; whether the queue is durable is not known")
	}
	switch durable, err := c.durable(ctx, p.Topic); {
	case err != nil:
		return accepted("as a durable message; whether the queue is durable is not known")
	case !durable:
		return accepted("and loses it in a restart: the queue is not durable (durable=false)")
	}
	return accepted("as a durable message in a durable queue")
}

// invoke calls an operation of a resource.
func (c *conn) invoke(ctx context.Context, resource, operation string, args ...any) error {
	_, err := c.request(ctx, map[string]any{"_AMQ_ResourceName": resource, "_AMQ_OperationName": operation}, args)
	return err
}

// attribute reads an attribute of a resource into value.
func (c *conn) attribute(ctx context.Context, resource, name string, value any) error {
	result, err := c.request(ctx, map[string]any{"_AMQ_ResourceName": resource, "_AMQ_Attribute": name}, nil)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(result, value); err != nil {
		return fmt.Errorf("attribute %s of %s: %w", name, resource, err)
	}
	return nil
}

// request sends a request and waits for its reply, over a session of its own.
func (c *conn) request(ctx context.Context, properties map[string]any, args []any) (json.RawMessage, error) {
	body, err := json.Marshal(append([]any{}, args...))
	if err != nil {
		return nil, err
	}
	request := &amqp.Message{ApplicationProperties: properties, Value: string(body)}
	var session *amqp.Session
	var reply *amqp.Message
	err = c.session(ctx, func(ctx context.Context, s *amqp.Session, _ *connection) (err error) {
		session = s
		reply, err = exchange(ctx, s, request)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("the broker's management: %w", err)
	}
	_ = session.Close(ctx)
	return resultOf(reply)
}

func exchange(ctx context.Context, s *amqp.Session, request *amqp.Message) (*amqp.Message, error) {
	receiver, err := s.NewReceiver(ctx, "", &amqp.ReceiverOptions{DynamicAddress: true})
	if err != nil {
		return nil, err
	}
	sender, err := s.NewSender(ctx, "activemq.management", nil)
	if err != nil {
		return nil, err
	}
	to := receiver.Address()
	request.Properties = &amqp.MessageProperties{ReplyTo: &to}
	if err := sender.Send(ctx, request, nil); err != nil {
		return nil, err
	}
	reply, err := receiver.Receive(ctx, nil)
	if err != nil {
		return nil, err
	}
	return reply, receiver.AcceptMessage(ctx, reply)
}

// resultOf returns the result in a reply: an array of one element, or nothing.
func resultOf(reply *amqp.Message) (json.RawMessage, error) {
	text := string(bodyOf(reply))
	if done, _ := reply.ApplicationProperties["_AMQ_OperationSucceeded"].(bool); !done {
		return nil, managementError(text)
	}
	if text == "" || text == "null" {
		return nil, nil // the operation has no result
	}
	var all []json.RawMessage
	if err := json.Unmarshal([]byte(text), &all); err != nil || len(all) != 1 {
		return nil, fmt.Errorf("the answer of the broker's management is not an array of one element: %.100q", text)
	}
	return all[0], nil
}

// managementError returns the error of a refused request, by the codes of Artemis's messages.
func managementError(text string) error {
	var parts []string
	if json.Unmarshal([]byte(text), &parts) == nil {
		text = strings.Join(parts, ": ")
	}
	kind := driver.Rejected
	for part, k := range map[string]driver.Kind{
		"AMQ229017": driver.NotFound, "AMQ229203": driver.NotFound, "annot find resource": driver.NotFound,
		"Problem while retrieving attribute": driver.NotFound, notPermitted: driver.Denied,
	} {
		if strings.Contains(text, part) {
			kind = k
		}
	}
	return &kindError{kind, errors.New("the broker's management: " + text)}
}
