package redis_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRequireSubscriber(t *testing.T) {
	s := plain(t)
	url := s.url("redis-pubsub")
	c := dial(t, url)
	channel := topic(t, c)
	careless := produce(t, c, url, channel, 10, nil)
	careful := produce(t, c, url, channel, 10, map[string]any{"requireSubscriber": true})
	mustSend(t, careless, "to nobody")
	for _, err := range send(t, careful, "to nobody") {
		if kind := kindOf(t, "redis-pubsub", err); kind != driver.Rejected {
			t.Errorf("without a subscriber: %v, of kind %q", err, kind)
		}
	}
	r := consume(t, c, url, driver.ConsumerConfig{Topic: channel, Prefetch: 10, Start: driver.StartNew}, nil)
	mustSend(t, careful, "to somebody")
	if got := bodies(receive(t, r, 1)); !slices.Equal(got, []string{"to somebody"}) {
		t.Errorf("received %q", got)
	}
}

// The core adds to an error of kind not_found what makes the topic: the driver's error has no advice of its own.
func TestSend_AbsentTopic_GivesNoAdvice(t *testing.T) {
	s := plain(t)
	for _, scheme := range []string{"redis-streams", "redis-list"} {
		url := s.url(scheme)
		c := dial(t, url)
		p, err := c.NewProducer(t.Context(), driver.ProducerConfig{Topic: "absent", Window: 1, Options: resolve(t, url, driver.OnProducer, nil)})
		if err == nil {
			err = errors.Join(send(t, p, "x")...)
			shut(t, p)
		}
		if kind := kindOf(t, scheme, err); kind != driver.NotFound || strings.Contains(err.Error(), "create") {
			t.Errorf("%s: %v, of kind %q", scheme, err, kind)
		}
	}
}

// TestIdleSubscription is silent for several timeouts: the server is asked whether it is there, and it is.
func TestIdleSubscription(t *testing.T) {
	if testing.Short() {
		t.Skip("part of make test-full")
	}
	s := start(t)
	url := s.url("redis-pubsub") + "?timeout=30ms"
	c := dial(t, url)
	r := consume(t, c, url, driver.ConsumerConfig{Topic: "channel", Prefetch: 10, Start: driver.StartNew}, nil)
	await(t, "the server has been asked three times whether it is there", func() bool { return s.calls(t, "ping") >= 4 })
	mustSend(t, produce(t, c, url, "channel", 10, nil), "still here")
	if got := bodies(receive(t, r, 1)); !slices.Equal(got, []string{"still here"}) {
		t.Errorf("received %q", got)
	}
	if n := s.calls(t, "subscribe"); n != 1 {
		t.Errorf("subscribed %d times", n)
	}
}

// TestSlowSubscriber lets the server drop a subscriber that does not read: it tells, and goes on.
func TestSlowSubscriber(t *testing.T) {
	if testing.Short() {
		t.Skip("part of make test-full")
	}
	s := start(t, "--client-output-buffer-limit", "pubsub 1mb 1mb 0")
	url := s.url("redis-pubsub")
	c := dial(t, url)
	r := consume(t, c, url, driver.ConsumerConfig{Topic: "channel", Prefetch: 2, Start: driver.StartNew}, nil)
	p := produce(t, c, url, "channel", 100, nil)
	large := strings.Repeat("x", 1<<20)
	for range 20 { // more than all buffers on the way
		mustSend(t, p, large)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	b := make(driver.Batch, 10)
	var err error
	for err == nil {
		_, err = r.Receive(ctx, b)
	}
	if kind := kindOf(t, "redis-pubsub", err); kind != driver.Disconnected {
		t.Fatalf("dropped by the server: %v, of kind %q", err, kind)
	}
	short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	_, _ = r.Receive(short, b) // subscribes again
	mustSend(t, p, "again")
	if got := bodies(receive(t, r, 1)); !slices.Equal(got, []string{"again"}) {
		t.Errorf("received %.20q", got)
	}
}

// TestListOfTheDead leaves the list of a consumer that never said goodbye.
func TestListOfTheDead(t *testing.T) {
	s := plain(t)
	url := s.url("redis-list")
	c := dial(t, url)
	topic := topic(t, c)
	ctx := t.Context()
	dead := "{" + topic + "}:processing:dead"
	if err := s.client.RPush(ctx, dead, "1", "2", "3").Err(); err != nil {
		t.Fatal(err)
	}
	if err := s.client.SAdd(ctx, "{"+topic+"}:consumers", "dead").Err(); err != nil {
		t.Fatal(err)
	}
	if err := s.client.Set(ctx, "{"+topic+"}:alive:dead", "1", 300*time.Millisecond).Err(); err != nil {
		t.Fatal(err)
	}
	if b, err := c.(driver.Backlogger).Backlog(ctx, topic, ""); b.Messages != 3 || err != nil {
		t.Errorf("backlog %d, %v", b.Messages, err)
	}
	mustSend(t, produce(t, c, url, topic, 10, nil), "4")
	r := consume(t, c, url, driver.ConsumerConfig{Topic: topic, Prefetch: 10, Start: driver.StartEarliest}, map[string]any{"lease": "60ms"})
	got := receive(t, r, 4)
	all := bodies(got)
	slices.Sort(all)
	if want := []string{"1", "2", "3", "4"}; !slices.Equal(all, want) {
		t.Errorf("received %q, want %q", all, want)
	}
	if err := r.Settle(ctx, got, driver.Ack); err != nil {
		t.Fatal(err)
	}
	if n := s.client.Exists(ctx, dead).Val(); n != 0 {
		t.Error("the list of the dead is still there")
	}
}

// TestTakenAway has a consumer's message taken from it, as after a lease that was over.
func TestTakenAway(t *testing.T) {
	s := plain(t)
	url := s.url("redis-list")
	c := dial(t, url)
	topic := topic(t, c)
	r := consume(t, c, url, driver.ConsumerConfig{Topic: topic, Prefetch: 10, Start: driver.StartEarliest}, nil)
	mustSend(t, produce(t, c, url, topic, 10, nil), "a", "b")
	got := receive(t, r, 2)
	keys := s.client.Keys(t.Context(), "{"+topic+"}:processing:*").Val()
	if err := s.client.LRem(t.Context(), keys[0], 1, "a").Err(); err != nil {
		t.Fatal(err)
	}
	for _, o := range []driver.Outcome{driver.Requeue, driver.Ack} {
		err := r.Settle(t.Context(), got[:1], o)
		if kind := kindOf(t, "redis-list", err); o == driver.Requeue && kind != driver.NotFound {
			t.Errorf("%v of a message that was taken away: %v, of kind %q", o, err, kind)
		}
	}
	if err := r.Settle(t.Context(), got[1:], driver.Ack); err != nil {
		t.Error(err)
	}
	if b, err := c.(driver.Backlogger).Backlog(t.Context(), topic, ""); b.Messages != 0 || err != nil {
		t.Errorf("backlog %d, %v: a message that was taken away must not come back", b.Messages, err)
	}
}

// TestSettledTwice settles a delivery a second time, alone and beside one that is not settled yet: that one is, and the other is refused.
func TestSettledTwice(t *testing.T) {
	for _, scheme := range []string{"redis-streams", "redis-list"} {
		t.Run(scheme, func(t *testing.T) {
			s := plain(t)
			url := s.url(scheme)
			c := dial(t, url)
			config := driver.ConsumerConfig{Topic: topic(t, c), Prefetch: 100, Start: driver.StartEarliest}
			if scheme == "redis-streams" {
				config.Group = "g"
			}
			r := consume(t, c, url, config, nil)
			mustSend(t, produce(t, c, url, config.Topic, 100, nil), "a", "b")
			b := receive(t, r, 2)
			if err := r.Settle(t.Context(), b[:1], driver.Ack); err != nil {
				t.Fatal(err)
			}
			for _, o := range []driver.Outcome{driver.Ack, driver.Requeue, driver.Reject} {
				if err := r.Settle(t.Context(), b[:1], o); kindOf(t, scheme, err) != driver.Rejected {
					t.Errorf("%v of a delivery that is settled: %v", o, err)
				}
			}
			if err := r.Settle(t.Context(), b, driver.Ack); kindOf(t, scheme, err) != driver.Rejected {
				t.Errorf("beside one that is not: %v", err)
			}
			if b, err := c.(driver.Backlogger).Backlog(t.Context(), config.Topic, config.Group); b.Messages != 0 || err != nil {
				t.Errorf("backlog %d, %v", b.Messages, err)
			}
		})
	}
}
