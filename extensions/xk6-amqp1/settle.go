package amqp1

import (
	"context"
	"errors"
	"fmt"
	"sync"

	amqp "github.com/Azure/go-amqp"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// Settle ends each delivery by a frame. If the broker confirms, it waits for all answers together.
func (r *consumer) Settle(ctx context.Context, b driver.Batch, o driver.Outcome) error {
	if r.life.Err() != nil {
		return driver.ErrClosed
	}
	var settle func(context.Context, *delivery) error
	switch o {
	case driver.Ack:
		settle = accept
	case driver.Requeue:
		settle = requeues[r.config.Options.String("requeue")]
	case driver.Reject:
		settle = reject
	default:
		return fmt.Errorf("%s: %w", o, errors.ErrUnsupported)
	}
	if !r.config.ConfirmSettle || len(b) == 1 {
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

func (r *consumer) settle(ctx context.Context, token any, settle func(context.Context, *delivery) error) error {
	d, ok := token.(*delivery)
	switch {
	case !ok:
		return errors.New("the message was not received by this driver")
	case d.settled.Swap(true):
		return errSettled
	}
	r.mu.Lock()
	delete(r.held, d)
	r.mu.Unlock()
	return settle(ctx, d)
}

func accept(ctx context.Context, d *delivery) error {
	return d.intake.receiver.AcceptMessage(ctx, d.message)
}

func reject(ctx context.Context, d *delivery) error {
	return d.intake.receiver.RejectMessage(ctx, d.message, nil)
}

func modify(ctx context.Context, d *delivery) error {
	return d.intake.receiver.ModifyMessage(ctx, d.message, &amqp.ModifyMessageOptions{DeliveryFailed: true})
}

// requeues has the values of the option requeue.
var requeues = map[string]func(context.Context, *delivery) error{
	"modify": modify,
	"elsewhere": func(ctx context.Context, d *delivery) error {
		o := &amqp.ModifyMessageOptions{DeliveryFailed: true, UndeliverableHere: true}
		return d.intake.receiver.ModifyMessage(ctx, d.message, o)
	},
	"release": func(ctx context.Context, d *delivery) error {
		return d.intake.receiver.ReleaseMessage(ctx, d.message)
	},
}
