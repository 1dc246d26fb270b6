package amqp1

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	amqp "github.com/Azure/go-amqp"
)

// address is that of a topic.
func (c *conn) address(on *connection, topic string) string {
	return on.address(c.options.String("address"), topic, c.mode)
}

// terminus is where a consumer's messages come from. A subscription is asked for in the manner of AMQP's bindings of JMS: one that is shared by
// all that attach by its name, and stays when they leave, for a group; one of the consumer's own without.
func (r *consumer) terminus(ctx context.Context, on *connection) (address string, o *amqp.ReceiverOptions, err error) {
	o = &amqp.ReceiverOptions{Credit: -1, SettlementMode: amqp.ReceiverSettleModeFirst.Ptr()}
	if r.confirm {
		o.SettlementMode = amqp.ReceiverSettleModeSecond.Ptr()
	}
	if r.selector != "" {
		o.Filters = []amqp.LinkFilter{amqp.NewSelectorFilter(r.selector)}
	}
	if r.group != "" && r.source != "" {
		return strings.NewReplacer("{topic}", r.topic, "{group}", r.group).Replace(r.source), o, nil
	}
	if s, ok := r.conn.management.(subscriber); ok && r.conn.mode == pubsub {
		address, err = s.subscribe(ctx, r.topic, r.group, rand.Text())
		return address, o, err
	}
	o.SourceCapabilities = []string{r.conn.mode.capability()}
	if r.group != "" {
		o.SourceCapabilities = append(o.SourceCapabilities, "shared", "global")
		o.SourceDurability, o.SourceExpiryPolicy = amqp.DurabilityUnsettledState, amqp.ExpiryPolicyNever
		o.Name = subscription(r.topic, r.group) + "|" + rand.Text() // the name of a link is its own; brokers cut off what is behind the bar
	}
	return r.conn.address(on, r.topic), o, nil
}

// subscription names a group. A broker knows subscriptions by name alone, whatever their topic.
func subscription(topic, group string) string { return topic + "." + group }

// unconfirmed says in the module's words that a broker does not confirm settlements.
func (r *consumer) unconfirmed(on *connection, err error) error {
	if err == nil || !r.confirm || !strings.Contains(err.Error(), "settle") {
		return err
	}
	return fmt.Errorf("%s does not confirm settlements (rcv-settle-mode second): %w: %w", on, err, errors.ErrUnsupported)
}
