package amqp

import (
	"bytes"
	"context"
	"maps"
	"reflect"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// A topic may be deleted and created again by the same name. A stream then counts from 0, and who goes on at the old one's offset gets nothing
// until the new one is longer; the queue of a subscriber is bound to nothing any more. The broker tells neither.

// patience is how long a stream may take to deliver what it has.
const patience = 2 * time.Second

// renew finds out, once a stream has canceled the consumer, whether it is another one now, and has that read from its first message. It is
// false while that is not known.
func (r *consumer) renew(ctx context.Context, last *amqp.Delivery) (known bool, err error) {
	same, err := r.holds(ctx, last)
	if err != nil && classify(err) != driver.NotFound {
		return false, err
	}
	if !same {
		r.anew = true
		r.next.Store(0)
		*last = amqp.Delivery{}
	}
	return true, err
}

// holds reports whether the stream has the message where it was.
func (r *consumer) holds(ctx context.Context, last *amqp.Delivery) (bool, error) {
	offset, ok := integer(last.Headers, streamOffset)
	if !ok { // nothing came of it yet
		err := r.conn.consuming.do(ctx, func(ch *amqp.Channel) error {
			_, err := ch.QueueDeclarePassive(r.topic, true, false, false, false, nil)
			return err
		})
		return err == nil, err
	}
	var deliveries <-chan amqp.Delivery
	ch, err := r.conn.consuming.channel(ctx, func(ch *amqp.Channel) (err error) {
		if err = ch.Qos(1, 0, false); err == nil {
			deliveries, err = ch.Consume(r.topic, "", false, false, false, false, amqp.Table{streamOffset: offset})
		}
		return err
	})
	if err != nil {
		return false, err
	}
	defer ch.Close() //nolint:errcheck // nothing was sent on it
	select {
	case d, open := <-deliveries:
		if !open {
			return false, errCanceled
		}
		at, _ := integer(d.Headers, streamOffset)
		return at > offset || bytes.Equal(d.Body, last.Body) && maps.EqualFunc(d.Headers, last.Headers, reflect.DeepEqual), nil // it may have forgotten the oldest
	case <-time.After(patience):
		return false, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// bindEvery is how often a consumer of an exchange to which nothing comes binds its queue again, which changes nothing where it is bound.
const bindEvery = time.Second

// rebind has the queue of an intake bound to the exchange that has the name now, unless that is just being done. Deliveries are stamped meanwhile.
func (r *consumer) rebind(in *intake) {
	select {
	case r.binding <- struct{}{}:
		r.conn.running.Go(func() {
			defer func() { <-r.binding }()
			r.bindAgain(in)
		})
	default:
	}
}

func (r *consumer) bindAgain(in *intake) {
	ctx, cancel := context.WithTimeout(r.life, 10*bindEvery)
	defer cancel()
	err := r.conn.consuming.do(ctx, func(ch *amqp.Channel) error {
		return ch.QueueBind(in.queue, r.options.String("bindingKey"), r.topic, false, nil)
	})
	if classify(err) == driver.NotFound && !in.IsClosed() {
		r.inbox.Fail(err)
	}
}
