package amqp_test

import (
	"context"
	"errors"
	"net/url"
	"sync"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/proxy"
)

// TestASubscriberThatStopsIsGivenTheRest has a subscriber far away stop amid the load, with more under way than its prefetch: it gets as many messages as the
// broker put into a queue, and after that nothing.
func TestASubscriberThatStopsIsGivenTheRest(t *testing.T) {
	const away, rounds, prefetch = 20 * time.Millisecond, 5, 100
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
		routed := 0
		var sending sync.WaitGroup
		sending.Go(func() { routed = near.publish(ctx, topic) })
		b := make(driver.Batch, prefetch)
		received := 0
		read := func() (n int) {
			now, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
			defer cancel()
			n, err := leaves.Receive(now, b)
			if err != nil && !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
			if n > 0 {
				near.must(leaves.Settle(far.context(), b[:n], driver.Ack))
			}
			received += n
			return n
		}
		for received <= prefetch {
			read()
		}
		stopped := make(chan error, 1)
		go func() { stopped <- leaves.(driver.Stopper).Stop(far.context()) }()
		for over := false; !over; {
			read()
			select {
			case err := <-stopped:
				over = true
				near.must(err)
			default:
			}
		}
		for read() > 0 {
		}
		stop()
		sending.Wait()
		time.Sleep(3 * away) // what the broker would still have given
		if read() > 0 || received != routed || routed < 2*prefetch {
			t.Errorf("%d messages came, and the broker had %d for it", received, routed)
		}
	}
}

// publish sends until ctx ends, and gives how many messages the broker had a queue for.
func (r *rig) publish(ctx context.Context, exchange string) (routed int) {
	ch := r.channel()
	r.must(ch.Confirm(false))
	returns := ch.NotifyReturn(make(chan amqp091.Return, 1))
	for ctx.Err() == nil {
		confirmed, err := ch.PublishWithDeferredConfirm(exchange, exchange, true, false, amqp091.Publishing{Body: []byte("x")})
		r.must(err)
		if !confirmed.Wait() {
			r.Error("a message was refused")
		}
		select {
		case <-returns: // which comes before the confirmation
		default:
			routed++
		}
	}
	return routed
}
