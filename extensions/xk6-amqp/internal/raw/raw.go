// Package raw has loops written by hand with amqp091-go, which move messages as fast as it can: the
// measure for the drivers. Every loop returns the time for its messages.
package raw

import (
	"errors"
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

var errNotConfirmed = errors.New("the broker refused a message")

// Publish sends count persistent messages to a queue, with up to window unconfirmed, and returns
// when all are confirmed.
func Publish(c *amqp.Connection, queue string, body []byte, count, window int) (time.Duration, error) {
	ch, err := c.Channel()
	if err != nil {
		return 0, fmt.Errorf("channel: %w", err)
	}
	defer func() { _ = ch.Close() }()
	if err := ch.Confirm(false); err != nil {
		return 0, fmt.Errorf("confirm: %w", err)
	}
	unconfirmed := make(chan *amqp.DeferredConfirmation, window)
	confirmed := make(chan error, 1)
	start := time.Now()
	go func() {
		var err error
		for one := range unconfirmed {
			if !one.Wait() {
				err = errNotConfirmed
			}
		}
		confirmed <- err
	}()
	for range count {
		var one *amqp.DeferredConfirmation
		message := amqp.Publishing{DeliveryMode: amqp.Persistent, Body: body}
		one, err = ch.PublishWithDeferredConfirm("", queue, true, false, message)
		if err != nil {
			break
		}
		unconfirmed <- one
	}
	close(unconfirmed)
	err = errors.Join(err, <-confirmed)
	return time.Since(start), err
}

// Consume receives count messages with a prefetch, and acknowledges every batch at once. The clock
// starts when the consumer is ready.
func Consume(c *amqp.Connection, queue string, count, prefetch, batch int) (time.Duration, error) {
	ch, err := c.Channel()
	if err != nil {
		return 0, fmt.Errorf("channel: %w", err)
	}
	defer func() { _ = ch.Close() }()
	if err := ch.Qos(prefetch, 0, false); err != nil {
		return 0, fmt.Errorf("qos: %w", err)
	}
	deliveries, err := ch.Consume(queue, "", false, false, false, false, nil)
	if err != nil {
		return 0, fmt.Errorf("consume: %w", err)
	}
	start := time.Now()
	for got := 1; got <= count; got++ {
		d, ok := <-deliveries
		if !ok {
			return 0, fmt.Errorf("after %d messages: %w", got-1, amqp.ErrClosed)
		}
		if got%batch == 0 || got == count {
			if err := d.Ack(true); err != nil {
				return 0, fmt.Errorf("ack: %w", err)
			}
		}
	}
	return time.Since(start), nil
}
