package drivertest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// receiver is a consumer that cannot hang a test.
type receiver struct {
	driver.Consumer
	k    *kit
	seen map[string]bool // the bodies of all that was received

	opened time.Time
}

// config describes a consumer of the topic in a group, which may be "", that sees at least what comes after it.
func (k *kit) config(t testing.TB, topic, group string) driver.ConsumerConfig {
	t.Helper()
	return driver.ConsumerConfig{
		Topic: topic, Group: group, Prefetch: window, Start: k.start(), Options: k.options(t, driver.OnConsumer),
	}
}

// consumer makes a consumer of the kit's usual group, or what stands for one where the driver has none.
func (k *kit) consumer(t testing.TB, c driver.Conn, topic string) *receiver {
	t.Helper()
	return k.consumerFrom(t, c, topic, k.start())
}

func (k *kit) consumerFrom(t testing.TB, c driver.Conn, topic string, start driver.Start) *receiver {
	t.Helper()
	if k.onlySends() {
		return k.store(t, topic)
	}
	config := k.config(t, topic, k.group(topic, "group"))
	config.Start = start
	return k.consumerWith(t, c, config)
}

// consumerWith makes a consumer as described, and closes it when the test ends.
func (k *kit) consumerWith(t testing.TB, c driver.Conn, config driver.ConsumerConfig) *receiver {
	t.Helper()
	consumer, err := k.tryConsumer(t, c, config)
	if err != nil {
		t.Fatalf("NewConsumer: %v", err)
	}
	r := &receiver{Consumer: consumer, k: k, seen: map[string]bool{}, opened: time.Now()}
	t.Cleanup(func() { k.close(t, "consumer", r) })
	return r
}

func (k *kit) tryConsumer(t testing.TB, c driver.Conn, config driver.ConsumerConfig) (consumer driver.Consumer, err error) {
	t.Helper()
	k.within(t, "NewConsumer", func() { consumer, err = c.NewConsumer(k.context(t), config) })
	return consumer, err
}

// receive calls Receive once, with room for so many, until ctx ends, and checks what holds for every call.
func (r *receiver) receive(t testing.TB, ctx context.Context, room int) (driver.Batch, error) {
	t.Helper()
	b := make(driver.Batch, room)
	var n int
	var err error
	r.k.within(t, "Receive", func() { n, err = r.Receive(ctx, b) })
	switch {
	case n < 0 || n > room:
		t.Fatalf("Receive returned %d messages in a batch of %d", n, room)
	case err == nil && n == 0:
		t.Fatal("Receive returned no message and no error")
	case err != nil && n > 0:
		t.Fatalf("Receive returned %d messages and an error: %v", n, err)
	}
	for _, m := range b[:n] {
		r.seen[string(m.Body)] = true
	}
	return b[:n], err
}

// take receives n messages and settles none.
func (r *receiver) take(t testing.TB, n int) driver.Batch {
	t.Helper()
	return r.drain(t, n, false)
}

// finish receives n messages and acknowledges them where the driver settles.
func (r *receiver) finish(t testing.TB, n int) driver.Batch {
	t.Helper()
	return r.drain(t, n, r.k.f.Settle.Has(driver.Ack))
}

func (r *receiver) drain(t testing.TB, n int, ack bool) driver.Batch {
	t.Helper()
	var all driver.Batch
	for ctx := r.k.context(t); len(all) < n; {
		b, err := r.receive(t, ctx, min(n-len(all), 100))
		if err != nil {
			t.Fatalf("Receive, after %d of %d messages: %v", len(all), n, err)
		}
		if ack {
			r.settle(t, b, driver.Ack)
		}
		all = append(all, b...)
	}
	return all
}

// settle settles, and that must not fail.
func (r *receiver) settle(t testing.TB, b driver.Batch, o driver.Outcome) {
	t.Helper()
	if err := r.trySettle(t, b, o); err != nil {
		t.Errorf("Settle of %d messages as %v: %v", len(b), o, err)
	}
}

func (r *receiver) trySettle(t testing.TB, b driver.Batch, o driver.Outcome) (err error) {
	t.Helper()
	r.k.within(t, "Settle", func() { err = r.Settle(r.k.context(t), b, o) })
	return err
}

// rest receives, and acknowledges, until nothing has come for a moment.
func (r *receiver) rest(t testing.TB, moment time.Duration) driver.Batch {
	t.Helper()
	var all driver.Batch
	for {
		ctx, cancel := context.WithTimeout(context.Background(), moment)
		b, err := r.receive(t, ctx, 100)
		cancel()
		if errors.Is(err, context.DeadlineExceeded) {
			return all
		}
		if err != nil {
			t.Fatalf("Receive: %v", err)
		}
		if r.k.f.Settle.Has(driver.Ack) {
			r.settle(t, b, driver.Ack)
		}
		all = append(all, b...)
	}
}

// nothing fails the test where a message comes within a moment.
func (r *receiver) nothing(t testing.TB, why string) {
	t.Helper()
	r.nothingFor(t, r.k.Quiet, why)
}

func (r *receiver) nothingFor(t testing.TB, moment time.Duration, why string) {
	t.Helper()
	if b := r.rest(t, moment); len(b) > 0 {
		t.Errorf("%d messages came, the first %.60q: %s", len(b), b[0].Body, why)
	}
}
