// Package raw has loops written by hand with go-amqp, which move messages as fast as it can: the
// measure for the drivers. Every loop returns the time for its messages.
package raw

import (
	"context"
	"fmt"
	"time"

	amqp "github.com/Azure/go-amqp"
)

// Produce sends count durable messages, with up to window unconfirmed, and returns when the broker
// has accepted all.
func Produce(c *amqp.Conn, topic string, body []byte, count, window int) (time.Duration, error) {
	ctx := context.Background()
	session, err := c.NewSession(ctx, nil)
	if err != nil {
		return 0, fmt.Errorf("session: %w", err)
	}
	defer func() { _ = session.Close(ctx) }()
	sender, err := session.NewSender(ctx, topic, nil)
	if err != nil {
		return 0, fmt.Errorf("sender: %w", err)
	}
	unconfirmed := make(chan amqp.SendReceipt, window)
	accepted := make(chan error, 1)
	start := time.Now()
	go func() {
		for receipt := range unconfirmed {
			state, err := receipt.Wait(ctx)
			if _, ok := state.(*amqp.StateAccepted); !ok {
				accepted <- fmt.Errorf("the answer is %T: %w", state, err)
				return
			}
		}
		accepted <- nil
	}()
	for range count {
		message := &amqp.Message{Header: &amqp.MessageHeader{Durable: true, Priority: 4}, Data: [][]byte{body}}
		receipt, err := sender.SendWithReceipt(ctx, message, nil)
		if err != nil {
			return 0, fmt.Errorf("send: %w", err)
		}
		select {
		case unconfirmed <- receipt:
		case err := <-accepted:
			return 0, err
		}
	}
	close(unconfirmed)
	err = <-accepted
	return time.Since(start), err
}

// Consume receives count messages and accepts each.
func Consume(c *amqp.Conn, topic string, count, credit int) (time.Duration, error) {
	ctx := context.Background()
	session, err := c.NewSession(ctx, nil)
	if err != nil {
		return 0, fmt.Errorf("session: %w", err)
	}
	defer func() { _ = session.Close(ctx) }()
	start := time.Now()
	options := &amqp.ReceiverOptions{Credit: int32(credit)} //gosec:disable G115 -- a small number of a test
	receiver, err := session.NewReceiver(ctx, topic, options)
	if err != nil {
		return 0, fmt.Errorf("receiver: %w", err)
	}
	for range count {
		m, err := receiver.Receive(ctx, nil)
		if err != nil {
			return 0, fmt.Errorf("receive: %w", err)
		}
		if err := receiver.AcceptMessage(ctx, m); err != nil {
			return 0, fmt.Errorf("accept: %w", err)
		}
	}
	return time.Since(start), nil
}
