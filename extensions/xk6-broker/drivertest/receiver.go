package drivertest

import (
	"context"
	"errors"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// receiver is a consumer whose calls are checked.
type receiver struct {
	driver.Consumer
	kit    *kit
	opened time.Time
	seen   map[string]bool // the bodies of all received messages
}

// config describes a consumer in a group of the topic, or in none if the group's name is empty.
func (k *kit) config(topic, group string) driver.ConsumerConfig {
	config := driver.ConsumerConfig{
		Topic: topic, Prefetch: window, Start: driver.StartEarliest, Options: k.options(driver.OnConsumer),
	}
	if k.f.Start.Has(driver.StartNew) {
		config.Start = driver.StartNew
	}
	if k.f.Groups && group != "" {
		config.Group = topic + "-" + group
	}
	return config
}

// usual describes a consumer of the kit's usual group.
func (k *kit) usual(topic string) driver.ConsumerConfig { return k.config(topic, "group") }

// consumer makes a consumer of the kit's usual group.
func (k *kit) consumer(c driver.Conn, topic string) *receiver {
	return k.consumerWith(c, k.usual(topic))
}

// consumerWith makes a consumer and closes it when the test ends. If the driver has no consumers
// it reads the messages where the server stores them.
func (k *kit) consumerWith(c driver.Conn, config driver.ConsumerConfig) *receiver {
	r := &receiver{kit: k, opened: time.Now(), seen: map[string]bool{}}
	if k.onlySends() {
		r.Consumer = &store{kit: k, topic: config.Topic, given: map[string]int{}}
		return r
	}
	var err error
	r.Consumer, err = c.NewConsumer(k.Context(), config)
	k.noError("NewConsumer", err)
	k.Cleanup(func() { k.close(r) })
	return r
}

// refused fails the test if a consumer that needs an unclaimed feature can be made.
func (k *kit) refused(c driver.Conn, config driver.ConsumerConfig) {
	consumer, err := c.NewConsumer(k.Context(), config)
	k.is(err, errors.ErrUnsupported)
	if err == nil {
		k.close(consumer)
	}
}

// receive calls Receive once, with room for a number of messages.
func (r *receiver) receive(ctx context.Context, room int) (driver.Batch, error) {
	r.kit.Helper()
	b := make(driver.Batch, room)
	n, err := r.Receive(ctx, b)
	r.kit.must(n >= 0 && n <= room && (err == nil) == (n > 0),
		"Receive returned %d messages in a batch of %d and the error %v", n, room, err)
	for _, m := range b[:n] {
		r.seen[string(m.Body)] = true
	}
	return b[:n], err
}

// next calls Receive once, which must succeed.
func (r *receiver) next(room int) driver.Batch {
	r.kit.Helper()
	b, err := r.receive(r.kit.limit(r.kit.Timeout), room)
	r.kit.noError("Receive", err)
	return b
}

// take receives n messages, at most 100 at a time, and settles none.
func (r *receiver) take(n int) (all driver.Batch) {
	r.kit.Helper()
	for len(all) < n {
		all = append(all, r.next(min(n-len(all), 100))...)
	}
	return all
}

// finish receives n messages, and acknowledges each batch if the driver settles.
func (r *receiver) finish(n int) (all driver.Batch) {
	r.kit.Helper()
	for len(all) < n {
		b := r.next(min(n-len(all), 100))
		r.acknowledge(b)
		all = append(all, b...)
	}
	return all
}

// finishes finishes the messages wanted, in any order.
func (r *receiver) finishes(want driver.Batch) {
	r.kit.Helper()
	r.kit.same(r.finish(len(want)), want)
}

// rest finishes messages until none has come for a time.
func (r *receiver) rest(d time.Duration) (all driver.Batch) {
	r.kit.Helper()
	for {
		b, err := r.receive(r.kit.limit(d), 100)
		if errors.Is(err, context.DeadlineExceeded) {
			return all
		}
		r.kit.noError("Receive", err)
		r.acknowledge(b)
		all = append(all, b...)
	}
}

// nothing fails the test if a message comes within a time.
func (r *receiver) nothing(d time.Duration) {
	r.kit.Helper()
	r.kit.same(r.rest(d), nil)
}

func (r *receiver) acknowledge(b driver.Batch) {
	r.kit.Helper()
	if r.kit.acks() {
		r.settle(b, driver.Ack)
	}
}

// settle settles, which must succeed.
func (r *receiver) settle(b driver.Batch, o driver.Outcome) {
	r.kit.Helper()
	err := r.Settle(r.kit.Context(), b, o)
	r.kit.check(err == nil, "Settle of %d messages as %v: %v", len(b), o, err)
}

// store is the consumer of a driver that only sends. It polls the server's stored messages.
type store struct {
	kit   *kit
	topic string
	given map[string]int // the number of received messages by body
}

func (s *store) Receive(ctx context.Context, b driver.Batch) (int, error) {
	for {
		if n := s.look(b); n > 0 {
			return n, nil
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// look fills b with the messages that were stored since the last look.
func (s *store) look(b driver.Batch) (n int) {
	now, stored := driver.Now(), map[string]int{}
	for _, m := range s.kit.Stored(s.kit.T, s.topic) {
		body := string(m.Body)
		stored[body]++
		if n < len(b) && stored[body] > s.given[body] {
			s.given[body]++
			b[n] = m
			b[n].Topic, b[n].Received = s.topic, now
			n++
		}
	}
	return n
}

func (*store) Settle(context.Context, driver.Batch, driver.Outcome) error {
	return errors.ErrUnsupported
}

func (*store) Close(context.Context) error { return nil }
