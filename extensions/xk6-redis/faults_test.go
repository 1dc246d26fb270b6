package redis_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/proxy"
)

// TestReplyLostOnTheWay breaks the consumer's connection when the server has sent and the client has not received.
func TestReplyLostOnTheWay(t *testing.T) {
	if testing.Short() {
		t.Skip("part of make test-full")
	}
	for _, scheme := range []string{"redis-streams", "redis-list"} {
		t.Run(scheme, func(t *testing.T) {
			s := start(t)
			between, err := proxy.Listen(s.addr())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = between.Close() })
			url := s.url(scheme)
			c, far := dial(t, url), dial(t, scheme+"://"+between.Addr())
			topic := topic(t, c)
			config := driver.ConsumerConfig{Topic: topic, Prefetch: 10, Start: driver.StartEarliest}
			if scheme == "redis-streams" {
				config.Group = "g"
			}
			r := consume(t, far, url, config, nil)
			p := produce(t, c, url, topic, 10, nil)
			mustSend(t, p, "held")
			held := receive(t, r, 1)
			await(t, "the consumer waits at the server for more", func() bool {
				return strings.Contains(s.client.Info(t.Context(), "clients").Val(), "blocked_clients:1\r")
			})
			between.Freeze()
			mustSend(t, p, "lost")
			moved := func() bool {
				if scheme == "redis-list" {
					return s.client.LLen(t.Context(), topic).Val() == 0
				}
				return s.client.XPending(t.Context(), topic, "g").Val().Count == 2
			}
			await(t, "the server has sent the second message", moved)
			between.Cut()
			between.Thaw()
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			b := make(driver.Batch, 10)
			n, err := r.Receive(ctx, b)
			for err != nil && ctx.Err() == nil { // that the connection broke
				n, err = r.Receive(ctx, b)
			}
			if err != nil || !slices.Equal(bodies(b[:n]), []string{"lost"}) {
				t.Fatalf("received %q, %v", bodies(b[:n]), err)
			}
			if err := r.Settle(ctx, append(held, b[:n]...), driver.Ack); err != nil {
				t.Fatal(err)
			}
			if b, err := c.(driver.Backlogger).Backlog(ctx, topic, config.Group); b.Messages != 0 || err != nil {
				t.Errorf("backlog %d, %v", b.Messages, err)
			}
		})
	}
}

// TestServerForgets restarts a server that keeps nothing: stream and group are gone.
func TestServerForgets(t *testing.T) {
	if testing.Short() {
		t.Skip("part of make test-full")
	}
	s := start(t)
	url := s.url("redis-streams")
	c := dial(t, url)
	topic := topic(t, c)
	r := group(t, c, url, topic, nil)
	p := produce(t, c, url, topic, 10, map[string]any{"create": true})
	mustSend(t, p, "before")
	receive(t, r, 1)
	s.kill(t)
	for _, err := range send(t, p, "while it is down") {
		if kind := kindOf(t, "redis-streams", err); kind != driver.Disconnected {
			t.Errorf("sent to a server that is down: %v, of kind %q", err, kind)
		}
	}
	s.run(t)
	mustSend(t, p, "after")
	var kinds []driver.Kind
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	b := make(driver.Batch, 10)
	n, err := r.Receive(ctx, b)
	for err != nil && ctx.Err() == nil {
		kinds = append(kinds, kindOf(t, "redis-streams", err))
		n, err = r.Receive(ctx, b)
	}
	if !slices.Equal(bodies(b[:n]), []string{"after"}) {
		t.Errorf("received %q, %v", bodies(b[:n]), err)
	}
	if !slices.Contains(kinds, driver.NotFound) && !slices.Contains(kinds, driver.Disconnected) {
		t.Errorf("nothing told that the server had been away: %v", kinds)
	}
}

// TestServerRemembers restarts one that keeps everything: what was confirmed is there.
func TestServerRemembers(t *testing.T) {
	if testing.Short() {
		t.Skip("part of make test-full")
	}
	s := start(t, "--appendonly", "yes", "--appendfsync", "always")
	url := s.url("redis-streams")
	c := dial(t, url)
	topic := topic(t, c)
	r := group(t, c, url, topic, nil)
	p := produce(t, c, url, topic, 10, nil)
	mustSend(t, p, numbered("kept", 10)...)
	s.kill(t)
	s.run(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	seen := map[string]bool{}
	for b := make(driver.Batch, 10); len(seen) < 10 && ctx.Err() == nil; {
		n, _ := r.Receive(ctx, b) // an error tells of the restart
		for _, m := range b[:n] {
			seen[string(m.Body)] = true
		}
	}
	if len(seen) != 10 {
		t.Errorf("%d of 10 confirmed messages came", len(seen))
	}
}

// TestSilentServer stops the process: what is due fails after the option timeout, and not before.
func TestSilentServer(t *testing.T) {
	if testing.Short() {
		t.Skip("part of make test-full")
	}
	s := start(t)
	url := s.url("redis-streams") + "?timeout=300ms"
	c := dial(t, url)
	p := produce(t, c, url, topic(t, c), 10, nil)
	mustSend(t, p, "before")
	s.freeze(t)
	begin := time.Now()
	err := errors.Join(send(t, p, "nobody reads this")...)
	took := time.Since(begin)
	s.thaw(t)
	if kind := kindOf(t, "redis-streams", err); kind != driver.Timeout {
		t.Errorf("a silent server: %v, of kind %q", err, kind)
	}
	if took < 300*time.Millisecond {
		t.Errorf("given up after %v", took)
	}
	await(t, "the producer works again", func() bool { return errors.Join(send(t, p, "after")...) == nil })
}
