package redis_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/proxy"
)

func kindOf(t testing.TB, scheme string, err error) driver.Kind {
	t.Helper()
	d, lookup := driver.Lookup(scheme)
	if lookup != nil {
		t.Fatal(lookup)
	}
	if err == nil {
		return ""
	}
	return d.KindOf(err)
}

func numbered(name string, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("%s-%04d", name, i)
	}
	return all
}

func bodies(b driver.Batch) []string {
	all := make([]string, len(b))
	for i := range b {
		all[i] = string(b[i].Body)
	}
	return all
}

// group is a consumer of the group "g".
func group(t testing.TB, c driver.Conn, url, topic string, options map[string]any) driver.Consumer {
	t.Helper()
	return consume(t, c, url, driver.ConsumerConfig{Topic: topic, Group: "g", Prefetch: 100, Start: driver.StartEarliest}, options)
}

func TestWaitIsProofOfReplicas(t *testing.T) {
	s := start(t)
	r := replica(t, s)
	url := s.url("redis-streams")
	c := dial(t, url)
	topic := topic(t, c)
	p := produce(t, c, url, topic, 1000, map[string]any{"wait": 1, "waitTimeout": "500ms"})
	s.resetCalls(t)
	for range 10 {
		mustSend(t, p, numbered("replicated", 100)...)
	}
	if n := r.client.XLen(t.Context(), topic).Val(); n != 1000 {
		t.Errorf("1000 messages were confirmed as replicated and the replica has %d", n)
	}
	if n := s.calls(t, "wait"); n < 1 || n > 100 {
		t.Errorf("WAIT was asked %d times for 10 pipelines of 100 messages", n)
	}
	r.signal(t, syscall.SIGSTOP)
	defer r.signal(t, syscall.SIGCONT)
	for _, err := range send(t, p, "a", "b") {
		if kind := kindOf(t, "redis-streams", err); kind != driver.Timeout || !strings.Contains(err.Error(), "0 of 1 replicas") {
			t.Errorf("with the replica stopped: %v, of kind %q", err, kind)
		}
	}
	if n := s.client.XLen(t.Context(), topic).Val(); n != 1002 {
		t.Errorf("what was not proven is accepted all the same: %d messages, want 1002", n)
	}
}

func TestDurable(t *testing.T) {
	s := start(t, "--appendonly", "yes")
	url := s.url("redis-streams") + "?profile=durable"
	c := dial(t, url)
	name := topic(t, c)
	p := produce(t, c, url, name, 100, nil)
	mustSend(t, p, "no replica is there to wait for")
	if n := s.calls(t, "wait"); n != 0 {
		t.Errorf("WAIT was asked %d times without a replica", n)
	}
	replica(t, s)
	s.resetCalls(t)
	p = produce(t, c, url, name, 100, nil)
	mustSend(t, p, "a replica is there")
	if n := s.calls(t, "wait"); n != 1 {
		t.Errorf("WAIT was asked %d times for one message", n)
	}
}

func TestFsyncNeedsServer(t *testing.T) {
	s := start(t) // without an append-only file, whatever the version
	url := s.url("redis-streams")
	c := dial(t, url)
	_, err := c.NewProducer(t.Context(), driver.ProducerConfig{
		Topic: topic(t, c), Window: 1, Options: resolve(t, url, driver.OnProducer, map[string]any{"fsync": "yes"}),
	})
	if err == nil || !strings.Contains(err.Error(), "fsync") {
		t.Errorf("fsync=yes without an append-only file: %v", err)
	}
}

// TestTakesOverFromTheDead has another program read and never settle.
func TestTakesOverFromTheDead(t *testing.T) {
	s := start(t)
	url := s.url("redis-streams")
	c := dial(t, url)
	topic := topic(t, c)
	ctx := t.Context()
	if err := s.client.XGroupCreate(ctx, topic, "g", "0").Err(); err != nil {
		t.Fatal(err)
	}
	sent := numbered("abandoned", 10)
	mustSend(t, produce(t, c, url, topic, 100, nil), sent...)
	read := &redis.XReadGroupArgs{Group: "g", Consumer: "dead", Streams: []string{topic, ">"}, Count: 10}
	if got, err := s.client.XReadGroup(ctx, read).Result(); err != nil || len(got[0].Messages) != 10 {
		t.Fatal(got, err)
	}
	r := group(t, c, url, topic, map[string]any{"minIdle": "300ms", "claimInterval": "20ms"})
	got := receive(t, r, 10)
	if !slices.Equal(bodies(got), sent) {
		t.Errorf("taken over: %q", bodies(got))
	}
	for _, m := range got {
		if m.Attempt != 2 {
			t.Errorf("attempt %d of a message taken over, want 2", m.Attempt)
		}
	}
	if err := r.Settle(ctx, got, driver.Ack); err != nil {
		t.Fatal(err)
	}
	if n, err := c.(driver.Backlogger).Backlog(ctx, topic, "g"); n != 0 || err != nil {
		t.Errorf("backlog %d, %v", n, err)
	}
}

// TestRunningMemberGetsWhatWasGivenBack closes a consumer while another one of the group is running.
func TestRunningMemberGetsWhatWasGivenBack(t *testing.T) {
	s := start(t)
	url := s.url("redis-streams")
	c := dial(t, url)
	topic := topic(t, c)
	first := group(t, c, url, topic, nil)
	mustSend(t, produce(t, c, url, topic, 100, nil), numbered("back", 20)...)
	half := receive(t, first, 10) // the others have come too and are not received
	await(t, "all are with the first", func() bool {
		p, err := s.client.XPending(t.Context(), topic, "g").Result()
		return err == nil && p.Count == 20
	})
	second := group(t, c, url, topic, nil)
	shut(t, first)
	got := receive(t, second, 20)
	attempts := map[string]int32{}
	for _, m := range got {
		attempts[string(m.Body)] = m.Attempt
	}
	for i, body := range numbered("back", 20) {
		want := int32(1)
		if i < len(half) {
			want = 2
		}
		if attempts[body] != want {
			t.Errorf("%s: attempt %d, want %d", body, attempts[body], want)
		}
	}
	consumers, err := s.client.XInfoConsumers(t.Context(), topic, "g").Result()
	if err != nil || len(consumers) != 2 {
		t.Errorf("the group has %d consumers, want the second and nobody: %v", len(consumers), err)
	}
}

// TestReplyLostOnTheWay breaks the consumer's connection when the server has sent and the client has not received.
func TestReplyLostOnTheWay(t *testing.T) {
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
			if n, err := c.(driver.Backlogger).Backlog(ctx, topic, config.Group); n != 0 || err != nil {
				t.Errorf("backlog %d, %v", n, err)
			}
		})
	}
}

// TestServerForgets restarts a server that keeps nothing: stream and group are gone.
func TestServerForgets(t *testing.T) {
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

func TestFieldsOfOthers(t *testing.T) {
	s := start(t)
	url := s.url("redis-streams")
	c := dial(t, url)
	topic := topic(t, c)
	r := consume(t, c, url, driver.ConsumerConfig{Topic: topic, Prefetch: 10, Start: driver.StartNew}, nil)
	long := strings.Repeat("n", 300)
	err := s.client.XAdd(t.Context(), &redis.XAddArgs{Stream: topic, Values: []string{"temperature", "21", long, "x", "body", "b", "h:a", ""}}).Err()
	if err != nil {
		t.Fatal(err)
	}
	m := receive(t, r, 1)[0]
	want := []driver.Header{{Name: "temperature", Value: []byte("21")}, {Name: long, Value: []byte("x")}, {Name: "a", Value: []byte{}}}
	same := func(a, b driver.Header) bool { return a.Name == b.Name && string(a.Value) == string(b.Value) }
	if string(m.Body) != "b" || m.Key != nil || !slices.EqualFunc(m.Headers, want, same) {
		t.Errorf("%q %q %q", m.Key, m.Body, m.Headers)
	}
}

func TestTrimAndDelete(t *testing.T) {
	s := start(t, "--stream-node-max-entries", "10")
	url := s.url("redis-streams")
	c := dial(t, url)
	topic := topic(t, c)
	r := group(t, c, url, topic, map[string]any{"deleteSettled": true})
	mustSend(t, produce(t, c, url, topic, 100, map[string]any{"maxLen": 50}), numbered("trimmed", 200)...)
	if n := s.client.XLen(t.Context(), topic).Val(); n < 50 || n > 70 {
		t.Errorf("%d messages are left with maxLen=50", n)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for s.client.XLen(ctx, topic).Val() > 0 && ctx.Err() == nil {
		b := make(driver.Batch, 100)
		n, err := r.Receive(ctx, b)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Settle(ctx, b[:n], driver.Ack); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := c.(driver.Backlogger).Backlog(ctx, topic, "g"); n != 0 || err != nil {
		t.Errorf("backlog %d, %v", n, err)
	}
}

// TestBacklogAfterTrim has the server trim what was not delivered: that is no backlog.
func TestBacklogAfterTrim(t *testing.T) {
	s := start(t, "--stream-node-max-entries", "10")
	url := s.url("redis-streams")
	c := dial(t, url)
	topic := topic(t, c)
	if err := s.client.XGroupCreate(t.Context(), topic, "g", "0").Err(); err != nil {
		t.Fatal(err)
	}
	mustSend(t, produce(t, c, url, topic, 100, map[string]any{"maxLen": 50}), numbered("trimmed", 200)...)
	left := s.client.XLen(t.Context(), topic).Val()
	if n, err := c.(driver.Backlogger).Backlog(t.Context(), topic, "g"); n != left || err != nil {
		t.Errorf("backlog %d of a stream of %d, %v", n, left, err)
	}
}

func TestThrottled(t *testing.T) {
	s := start(t, "--maxmemory", "3mb")
	url := s.url("redis-streams")
	c := dial(t, url)
	p := produce(t, c, url, topic(t, c), 10, nil)
	large := strings.Repeat("x", 1<<18)
	var last error
	for range 20 {
		if last = errors.Join(send(t, p, large)...); last != nil {
			break
		}
	}
	if kind := kindOf(t, "redis-streams", last); kind != driver.Throttled {
		t.Errorf("a server without memory: %v, of kind %q", last, kind)
	}
}

// TestSilentServer stops the process: what is due fails after the option timeout, and not before.
func TestSilentServer(t *testing.T) {
	s := start(t)
	url := s.url("redis-streams") + "?timeout=300ms"
	c := dial(t, url)
	p := produce(t, c, url, topic(t, c), 10, nil)
	mustSend(t, p, "before")
	s.signal(t, syscall.SIGSTOP)
	begin := time.Now()
	err := errors.Join(send(t, p, "nobody reads this")...)
	took := time.Since(begin)
	s.signal(t, syscall.SIGCONT)
	if kind := kindOf(t, "redis-streams", err); kind != driver.Timeout {
		t.Errorf("a silent server: %v, of kind %q", err, kind)
	}
	if took < 300*time.Millisecond {
		t.Errorf("given up after %v", took)
	}
	await(t, "the producer works again", func() bool { return errors.Join(send(t, p, "after")...) == nil })
}
