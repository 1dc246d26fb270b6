package redis_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

func TestWaitIsProofOfReplicas(t *testing.T) {
	if testing.Short() {
		t.Skip("part of make test-full")
	}
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
	for given, want := range map[int]driver.Proof{
		0: {Confirm: driver.Accepted, How: "one server"},
		1: {Confirm: driver.Replicated, How: "one server and 1 of its replicas (WAIT)"},
	} {
		if got := proves(t, produce(t, c, url, topic, 1, map[string]any{"wait": given})); got != want {
			t.Errorf("wait %d: %v: %q", given, got.Confirm, got.How)
		}
	}
	r.freeze(t)
	defer r.thaw(t)
	for _, err := range send(t, p, "a", "b") {
		if kind := kindOf(t, "redis-streams", err); kind != driver.Timeout || !strings.Contains(err.Error(), "0 of 1 replicas") {
			t.Errorf("with the replica stopped: %v, of kind %q", err, kind)
		}
	}
	if n := s.client.XLen(t.Context(), topic).Val(); n != 1002 {
		t.Errorf("what was not proven is accepted all the same: %d messages, want 1002", n)
	}
}

func proves(t *testing.T, p driver.Producer) driver.Proof {
	t.Helper()
	return p.(driver.Prover).Proof(t.Context(), driver.ProducerConfig{}, nil)
}

// A replica that was there when a producer opened is what its confirmations prove, also when the producer connects again and it is not there any more.
func TestAReconnectProvesNoLess(t *testing.T) {
	if testing.Short() {
		t.Skip("part of make test-full")
	}
	s := start(t)
	r := replica(t, s)
	url := s.url("redis-streams") + "?profile=durable&waitTimeout=200ms"
	c := dial(t, url)
	topic := topic(t, c)
	p := produce(t, c, url, topic, 10, nil)
	mustSend(t, p, "with the replica")
	r.kill(t)
	await(t, "the server knows that the replica is gone", func() bool {
		return strings.Contains(s.client.Info(t.Context(), "replication").Val(), "connected_slaves:0")
	})
	if err := s.client.ClientKillByFilter(t.Context(), "TYPE", "normal", "SKIPME", "yes").Err(); err != nil {
		t.Fatal(err)
	}
	for range 3 { // the first may be on its way over the connection that is no more
		for _, err := range send(t, p, "without it") {
			if err == nil {
				t.Errorf("a message that one server has is confirmed, where %q is proven", proves(t, p).How)
			}
		}
	}
	await(t, "the producer is connected again", func() bool {
		err := errors.Join(send(t, p, "without it")...)
		return err != nil && strings.Contains(err.Error(), "0 of 1 replicas")
	})
	later := produce(t, c, url, topic, 10, nil)
	mustSend(t, later, "asks for less")
	for who, want := range map[driver.Producer]driver.Confirm{p: driver.Replicated, later: driver.Accepted} {
		if got := proves(t, who); got.Confirm != want {
			t.Errorf("%v: %q, want %v", got.Confirm, got.How, want)
		}
	}
}

func TestDurable(t *testing.T) {
	if testing.Short() {
		t.Skip("part of make test-full")
	}
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
	if testing.Short() {
		t.Skip("part of make test-full")
	}
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
	s := plain(t)
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
	r := group(t, c, url, topic, map[string]any{"minIdle": "1s", "claimInterval": "20ms"})
	got := receive(t, r, 10)
	if !slices.Equal(bodies(got), sent) {
		t.Errorf("taken over: %q", bodies(got))
	}
	for _, m := range got {
		if m.Attempt < 2 {
			t.Errorf("attempt %d of a message taken over", m.Attempt)
		}
	}
	if err := r.Settle(ctx, got, driver.Ack); err != nil {
		t.Fatal(err)
	}
	if b, err := c.(driver.Backlogger).Backlog(ctx, topic, "g"); b.Messages != 0 || err != nil {
		t.Errorf("backlog %d, %v", b.Messages, err)
	}
}

// TestRunningMemberGetsWhatWasGivenBack closes a consumer while another one of the group is running.
func TestRunningMemberGetsWhatWasGivenBack(t *testing.T) {
	s := plain(t)
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

func TestFieldsOfOthers(t *testing.T) {
	s := plain(t)
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
	if testing.Short() {
		t.Skip("part of make test-full")
	}
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
	if b, err := c.(driver.Backlogger).Backlog(ctx, topic, "g"); b.Messages != 0 || err != nil {
		t.Errorf("backlog %d, %v", b.Messages, err)
	}
}

// TestBacklogAfterTrim has the server trim what was not delivered: that is no backlog.
func TestBacklogAfterTrim(t *testing.T) {
	s := plain(t)
	url := s.url("redis-streams")
	c := dial(t, url)
	topic := topic(t, c)
	if err := s.client.XGroupCreate(t.Context(), topic, "g", "0").Err(); err != nil {
		t.Fatal(err)
	}
	mustSend(t, produce(t, c, url, topic, 100, map[string]any{"maxLen": 50}), numbered("trimmed", 200)...)
	left := s.client.XLen(t.Context(), topic).Val()
	if b, err := c.(driver.Backlogger).Backlog(t.Context(), topic, "g"); b.Messages != left || err != nil {
		t.Errorf("backlog %d of a stream of %d, %v", b.Messages, left, err)
	}
}

// TestBacklogAfterPendingHasGone has others delete and trim what a group was given and has not settled, more than one page of it: the server goes on to
// list it as pending, and it is no backlog.
func TestBacklogAfterPendingHasGone(t *testing.T) {
	s := plain(t)
	url := s.url("redis-streams")
	c := dial(t, url)
	topic := topic(t, c)
	if err := s.client.XGroupCreate(t.Context(), topic, "g", "0").Err(); err != nil {
		t.Fatal(err)
	}
	const sent, given = 4000, 3000
	mustSend(t, produce(t, c, url, topic, sent, nil), numbered("gone", sent)...)
	got, err := s.client.XReadGroup(t.Context(), &redis.XReadGroupArgs{Group: "g", Consumer: "c", Streams: []string{topic, ">"}, Count: given}).Result()
	if err != nil {
		t.Fatal(err)
	}
	backlog := func(when string, want int64) {
		t.Helper()
		if b, err := c.(driver.Backlogger).Backlog(t.Context(), topic, "g"); err != nil || !b.Estimate && (b.Messages != want || b.Undelivered != sent-given) {
			t.Errorf("%s: backlog %+v, %v, want %d", when, b, err, want)
		}
	}
	backlog("all is there", sent)
	ids := make([]string, given)
	for i, m := range got[0].Messages {
		ids[i] = m.ID
	}
	if err := s.client.XDel(t.Context(), topic, ids[10], ids[1500], ids[1501], ids[2990]).Err(); err != nil {
		t.Fatal(err)
	}
	backlog("some were deleted", sent-4)
	if err := s.client.XTrimMinID(t.Context(), topic, ids[1200]).Err(); err != nil {
		t.Fatal(err)
	}
	backlog("the oldest were trimmed", sent-1200-3)
	if err := s.client.XAck(t.Context(), topic, "g", ids[:2000]...).Err(); err != nil {
		t.Fatal(err)
	}
	backlog("two thousand were acknowledged", sent-2000-1)
	if err := s.client.XTrimMaxLen(t.Context(), topic, sent-given).Err(); err != nil {
		t.Fatal(err)
	}
	backlog("all that was given was trimmed", sent-given)
	if err := s.client.XTrimMaxLen(t.Context(), topic, 0).Err(); err != nil {
		t.Fatal(err)
	}
	if b, err := c.(driver.Backlogger).Backlog(t.Context(), topic, "g"); b.Messages != 0 || err != nil {
		t.Errorf("backlog %+v, %v of an empty stream", b, err)
	}
}

func TestThrottled(t *testing.T) {
	if testing.Short() {
		t.Skip("part of make test-full")
	}
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

// TestPurgeBesideTraffic purges while messages come and go: none is delivered twice, which is what setting the group back would do.
func TestPurgeBesideTraffic(t *testing.T) {
	if testing.Short() {
		t.Skip("part of make test-full")
	}
	s := start(t)
	url := s.url("redis-streams")
	c := dial(t, url)
	topic := topic(t, c)
	const purges, batch = 200, 50
	r := consume(t, c, url, driver.ConsumerConfig{Topic: topic, Group: "g", Prefetch: 1000, Start: driver.StartNew}, nil)
	p := produce(t, c, url, topic, 1000, nil)
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			for _, err := range send(t, p, numbered(strconv.Itoa(n), batch)...) {
				if err != nil {
					t.Error(err)
				}
			}
		}
	})
	received := map[string]bool{}
	all.Go(func() {
		b := make(driver.Batch, 100)
		for {
			n, err := r.Receive(ctx, b)
			if err != nil {
				return
			}
			for _, body := range bodies(b[:n]) {
				if received[body] {
					t.Errorf("%s came twice", body)
				}
				received[body] = true
			}
			if err := r.Settle(t.Context(), b[:n], driver.Ack); err != nil {
				t.Error(err)
			}
		}
	})
	for range purges {
		if err := c.(driver.Admin).PurgeTopic(t.Context(), topic); err != nil {
			t.Error(err)
		}
	}
	stop()
	all.Wait()
	if len(received) == 0 {
		t.Error("nothing came at all")
	}
	if err := c.(driver.Admin).PurgeTopic(t.Context(), topic); err != nil {
		t.Fatal(err)
	}
	if b, err := c.(driver.Backlogger).Backlog(t.Context(), topic, "g"); b != (driver.Backlog{}) || err != nil {
		t.Errorf("the backlog after a purge is %+v, %v", b, err)
	}
	mustSend(t, p, "after")
	if b, err := c.(driver.Backlogger).Backlog(t.Context(), topic, "g"); b.Messages != 1 || err != nil {
		t.Errorf("the backlog after a purge and a message is %+v, %v", b, err)
	}
	for bodies(receive(t, r, 1))[0] != "after" { // what had come before the purge comes first
	}
}

// A server closes a connection with an argument over proto-max-bulk-len: the driver refuses it, and what is sent beside it arrives.
func TestSend_BodyOverTheServersLimit_RefusesItAlone(t *testing.T) {
	s := start(t, "--proto-max-bulk-len", "1mb")
	for _, scheme := range []string{"redis-streams", "redis-list", "redis-pubsub"} {
		t.Run(scheme, func(t *testing.T) {
			url := s.url(scheme)
			c := dial(t, url)
			topic := topic(t, c)
			p := produce(t, c, url, topic, 100, nil)
			sent := numbered("small", 11)
			sent[5] = strings.Repeat("x", 1<<20+1)
			sent[10] = strings.Repeat("x", 1<<20)
			for i, err := range send(t, p, sent...) {
				switch kind := kindOf(t, scheme, err); {
				case i != 5 && err != nil:
					t.Errorf("message %d: %v", i, err)
				case i == 5 && (kind != driver.Rejected || !strings.Contains(err.Error(), "1048577 bytes is larger than the server's proto-max-bulk-len, 1048576")):
					t.Errorf("the large message: %v, of kind %q", err, kind)
				}
			}
			switch scheme {
			case "redis-streams":
				if n := s.client.XLen(t.Context(), topic).Val(); n != 10 {
					t.Errorf("%d messages are in the stream, want 10", n)
				}
			case "redis-list":
				if n := s.client.LLen(t.Context(), topic).Val(); n != 10 {
					t.Errorf("%d messages are in the list, want 10", n)
				}
			}
		})
	}
}
