package amqp

import (
	"context"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// subscriber is a consumer of an exchange with a queue of its own, which goes when it does, and with it what is in it.
type subscriber struct{ *consumer }

// consumerTag names a consumer on its channel, which has no other.
const consumerTag = "xk6-broker"

// emptyEvery is how often a queue is looked at that is to become empty.
const emptyEvery = 5 * time.Millisecond

// Stop implements [driver.Stopper]. The exchange is told to put nothing more into the queue, what is in it is delivered, and then the broker is told to
// deliver no more, which it answers after all that it has delivered.
func (s subscriber) Stop(ctx context.Context) error {
	select {
	case s.binding <- struct{}{}: // for good: nobody binds the queue again
	case <-ctx.Done():
		return ctx.Err()
	}
	s.mu.Lock()
	s.stopping = true
	in := s.intake
	s.mu.Unlock()
	err := s.empty(ctx, in)
	if err == nil {
		err = in.cancel(ctx)
	}
	switch {
	case in.IsClosed():
		return nil // nothing comes over a channel that is no more
	case err != nil:
		return err
	}
	select {
	case <-s.taken:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// empty unbinds the queue of an intake and waits until all that is in it is delivered.
func (s subscriber) empty(ctx context.Context, in *intake) error {
	err := s.conn.consuming.do(ctx, func(ch *amqp.Channel) error {
		return ch.QueueUnbind(in.queue, s.options.String("bindingKey"), s.topic, nil)
	})
	tick := time.NewTicker(emptyEvery)
	defer tick.Stop()
	for err == nil && !in.IsClosed() {
		ready := 0
		err = s.conn.consuming.do(ctx, func(ch *amqp.Channel) error {
			q, err := ch.QueueDeclarePassive(in.queue, false, true, true, false, nil)
			ready = q.Messages
			return err
		})
		if err != nil || ready == 0 {
			break
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return err
}

// cancel has the broker deliver no more; what came before can still be settled.
func (in *intake) cancel(ctx context.Context) error {
	done := make(chan error, 1)
	go func() {
		in.asking.Lock()
		defer in.asking.Unlock()
		done <- in.Cancel(consumerTag, false)
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// left is told that no more deliveries come over an intake, and says whether the consumer had asked for that, or has no use for another intake.
func (r *consumer) left(in *intake) bool {
	r.mu.Lock()
	stopping := r.stopping
	r.mu.Unlock()
	if !stopping {
		return false
	}
	if in.IsClosed() {
		r.fail(in.cause())
	}
	close(r.taken)
	<-r.life.Done()
	return true
}
