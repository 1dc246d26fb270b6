package amqp1

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	amqp "github.com/Azure/go-amqp"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// Settle ends deliveries, each by a frame of its own. Where the broker confirms, all are on their way before the first is waited for.
func (r *consumer) Settle(ctx context.Context, b driver.Batch, o driver.Outcome) error {
	if r.life.Err() != nil {
		return driver.ErrClosed
	}
	var settle func(context.Context, *delivery) error
	switch o {
	case driver.Ack:
		settle = accept
	case driver.Requeue:
		settle = giveBackAs[r.requeue]
	case driver.Reject:
		settle = reject
	default:
		return fmt.Errorf("%s: %w", o, errors.ErrUnsupported)
	}
	if !r.confirm || len(b) == 1 {
		var failed error
		for i := range b {
			if err := r.settle(ctx, b[i].Token, settle); err != nil {
				failed = err
			}
		}
		return failed
	}
	errs := make([]error, len(b))
	var all sync.WaitGroup
	for i := range b {
		all.Go(func() { errs[i] = r.settle(ctx, b[i].Token, settle) })
	}
	all.Wait()
	return driver.JoinSettled(errs...)
}

// settle ends one delivery. It makes room for another one also where that failed, as nobody knows then whether the broker has it.
func (r *consumer) settle(ctx context.Context, token any, settle func(context.Context, *delivery) error) error {
	d, ok := token.(*delivery)
	switch {
	case !ok:
		return errors.New("the message was not received by this driver")
	case d.intake.lost.Load():
		return errLost
	case d.settled.Swap(true):
		return errSettled
	}
	r.mu.Lock()
	delete(r.held, d)
	r.mu.Unlock()
	err := settle(ctx, d)
	d.intake.credit.settled(1)
	return err
}

func accept(ctx context.Context, d *delivery) error {
	return d.intake.receiver.AcceptMessage(ctx, d.message)
}

func reject(ctx context.Context, d *delivery) error {
	return d.intake.receiver.RejectMessage(ctx, d.message, nil)
}

func release(ctx context.Context, d *delivery) error {
	return d.intake.receiver.ReleaseMessage(ctx, d.message)
}

func modify(ctx context.Context, d *delivery) error {
	return d.intake.receiver.ModifyMessage(ctx, d.message, &amqp.ModifyMessageOptions{DeliveryFailed: true})
}

func elsewhere(ctx context.Context, d *delivery) error {
	return d.intake.receiver.ModifyMessage(ctx, d.message, &amqp.ModifyMessageOptions{DeliveryFailed: true, UndeliverableHere: true})
}

// giveBackAs are the values of the option requeue.
var giveBackAs = map[string]func(context.Context, *delivery) error{"modify": modify, "elsewhere": elsewhere, "release": release}

// giveBack returns what is not settled when the consumer closes: what was received as a delivery that failed, and what was not as none. The client library
// would wait longer than ctx lives for a network that takes nothing; the connection's end ends that.
func (r *consumer) giveBack(ctx context.Context, in *intake) {
	waiting := r.in.Waiting()
	r.mu.Lock()
	held := make([]*delivery, 0, len(r.held))
	for d := range r.held {
		held = append(held, d)
	}
	clear(r.held)
	r.mu.Unlock()
	slices.SortFunc(held, func(a, b *delivery) int { return cmp.Compare(a.at, b.at) })
	back := make(chan struct{})
	go func() {
		defer close(back)
		for _, d := range held {
			if d.intake == in && !d.settled.Swap(true) && modify(ctx, d) != nil {
				return
			}
		}
		for _, d := range waiting {
			if d.intake == in && release(ctx, d) != nil {
				return
			}
		}
	}()
	select {
	case <-back:
	case <-ctx.Done():
	}
}
