package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// askTimeout bounds each question to a broker.
const askTimeout = 15 * time.Second

// broker is one that is asked what it has.
type broker struct {
	address *driver.Address
	conn    driver.Backlogger
	close   func(context.Context) error
	asked   bool
}

// brokers are those whose URLs a user gave.
type brokers []*broker

// dial connects to all of them.
func dial(ctx context.Context, urls []string) (all brokers, err error) {
	for _, url := range urls {
		address, err := driver.ParseURL(url, nil)
		if err != nil {
			return all, fmt.Errorf("--broker: %w", err)
		}
		ctx, cancel := context.WithTimeout(ctx, askTimeout)
		conn, err := address.Open(ctx, "xk6-broker-merge")
		cancel()
		if err != nil {
			return all, fmt.Errorf("--broker: %w", err)
		}
		asks, ok := conn.(driver.Backlogger)
		all = append(all, &broker{address: address, conn: asks, close: conn.Close})
		if !ok {
			return all, fmt.Errorf("--broker %s: %s cannot say what it has", address, address.Driver.Name)
		}
	}
	return all, nil
}

func (all brokers) hangUp(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	for _, b := range all {
		_ = b.close(ctx) // it was only asked
	}
}

// of finds the broker of a topic: the one of that address or, where there is none, the only one of that driver; nil where there is none.
func (all brokers) of(address, driver string) *broker {
	var fitting []*broker
	for _, b := range all {
		switch {
		case b.address.Driver.Name != driver:
		case b.address.String() == address:
			return b
		default:
			fitting = append(fitting, b)
		}
	}
	if len(fitting) != 1 {
		return nil
	}
	return fitting[0]
}

// unasked is an error where there was nothing to ask one of them: then its URL is a mistake.
func (all brokers) unasked(r *result.Result) error {
	var known []string
	for _, t := range r.Topics {
		known = append(known, fmt.Sprintf("%s (%s)", t.Broker, t.Driver))
	}
	slices.Sort(known)
	for _, b := range all {
		if !b.asked {
			return fmt.Errorf("--broker %s: no group of the test keeps its messages there; the topics are on %s",
				b.address, strings.Join(slices.Compact(known), ", "))
		}
	}
	return nil
}

// backlog asks for what the broker of a topic has for a group. It is not known where none of the brokers is the topic's.
func (all brokers) backlog(ctx context.Context, address, driver, topic, group string) (said account.Backlog, known bool, err error) {
	b := all.of(address, driver)
	if b == nil {
		return said, false, nil
	}
	b.asked = true
	if b.address.Driver.Features.BacklogEstimated {
		return said, false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	has, err := b.conn.Backlog(ctx, topic, group)
	if err != nil {
		return said, false, b.address.Driver.Wrap(fmt.Sprintf("--broker %s: backlog of %s", b.address, topic), err)
	}
	return account.Backlog{Messages: has.Messages, Undelivered: has.Undelivered}, !has.Estimate, nil
}
