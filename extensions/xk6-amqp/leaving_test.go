package amqp_test

import (
	"context"
	"errors"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/proxy"
)

// TestASubscriberThatStopsIsGivenTheRest has a subscriber far away stop amid the load, with more under way than its prefetch: it gets as many messages as the
// broker put into a queue, and after that nothing.
func TestASubscriberThatStopsIsGivenTheRest(t *testing.T) {
	const away, rounds, prefetch = 20 * time.Millisecond, 5, 20
	raw := server(t, "rabbitmq-pubsub")
	near := newRig(t, raw)
	u, err := url.Parse(raw)
	near.must(err)
	between, err := proxy.Listen(u.Host)
	near.must(err)
	t.Cleanup(func() { _ = between.Close() })
	between.Delay(away)
	u.Host = between.Addr()
	far := newRig(t, u.String())
	for range rounds {
		topic := near.topic(nil)
		leaves := far.consumer(topic, "", prefetch)
		ctx, stop := context.WithCancel(t.Context())
		var routed atomic.Int64
		var sending sync.WaitGroup
		ch := near.channel()
		near.must(ch.Confirm(false))
		sending.Go(func() {
			if err := publishUntil(ctx, ch, topic, &routed); err != nil {
				t.Error(err)
			}
		})
		near.eventually("more is under way than the prefetch", func() bool { return routed.Load() > 2*prefetch })
		received, more := drivertest.Stop(far.context(), t, leaves)
		stop()
		sending.Wait()
		time.Sleep(3 * away) // what the broker would still have given
		if more() > 0 || int64(received) != routed.Load() {
			t.Errorf("%d messages came, and the broker had %d for it", received, routed.Load())
		}
	}
}

// publishUntil sends until ctx ends, and counts how many messages the broker had a queue for.
func publishUntil(ctx context.Context, ch *amqp091.Channel, exchange string, routed *atomic.Int64) error {
	returns := ch.NotifyReturn(make(chan amqp091.Return, 1))
	for ctx.Err() == nil {
		confirmed, err := ch.PublishWithDeferredConfirm(exchange, exchange, true, false, amqp091.Publishing{Body: []byte("x")})
		if err != nil {
			return err
		}
		if !confirmed.Wait() {
			return errors.New("a message was refused")
		}
		select {
		case <-returns: // which comes before the confirmation
		default:
			routed.Add(1)
		}
	}
	return nil
}
