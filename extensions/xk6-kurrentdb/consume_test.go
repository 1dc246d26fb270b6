package kurrentdb

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/proxy"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-kurrentdb/internal/double"
)

// numbers are so many messages, numbered from first on.
func numbers(first, n int) (b driver.Batch) {
	for i := range n {
		b = append(b, driver.Message{Body: strconv.AppendInt(nil, int64(first+i), 10)})
	}
	return b
}

// A follower whose connection breaks goes on after the last message that came, in order.
func TestAFollowerGoesOn(t *testing.T) {
	if testing.Short() {
		t.Skip("part of make test-full")
	}
	f := start(t, double.Config{})
	between, err := proxy.Listen(f.server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer between.Close() //nolint:errcheck // of a test
	direct := f.open()
	f.topic(direct, "t")
	p := f.producer(direct, "t", nil)
	broken, err := f.try("kurrentdb://" + between.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer broken.Close(context.Background()) //nolint:errcheck // it never fails
	r := f.consumer(broken.(*conn), "t", "", nil)
	next := 0
	for round := range 3 {
		if err := errors.Join(f.send(p, numbers(300*round, 300))...); err != nil {
			t.Fatal(err)
		}
		for next < 300*(round+1)-150*(1-round/2) { // some wait when the connection breaks, but in the end
			b := make(driver.Batch, 50)
			n, err := r.Receive(f.context(), b)
			if err != nil {
				if f.kind(err) != driver.Disconnected {
					t.Fatalf("kind %s: %v", f.kind(err), err)
				}
				continue
			}
			for _, m := range b[:n] {
				if string(m.Body) != strconv.Itoa(next) {
					t.Fatalf("%s came, and %d was next", m.Body, next)
				}
				next++
			}
		}
		between.Cut()
	}
}

// What waits in a consumer whose connection breaks comes once, by the next one, and can be settled.
func TestWhatWaitedComesOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("part of make test-full")
	}
	f := start(t, double.Config{})
	between, err := proxy.Listen(f.server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer between.Close() //nolint:errcheck // of a test
	direct := f.open()
	f.topic(direct, "t")
	opened, err := f.try("kurrentdb://" + between.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close(context.Background()) //nolint:errcheck // it never fails
	r := f.consumer(opened.(*conn), "t", "g", nil)
	if err := errors.Join(f.send(f.producer(direct, "t", nil), numbers(0, 10))...); err != nil {
		t.Fatal(err)
	}
	f.receive(r, 1)
	m := r.(*member)
	await(t, "what waits", func() bool { return m.in.Len() == 9 })
	m.mu.Lock()
	before := m.current
	m.mu.Unlock()
	between.Cut()
	await(t, "the end of the subscription", func() bool {
		before.mu.Lock()
		defer before.mu.Unlock()
		return before.ended
	})
	for err == nil { // until the consumer knows
		_, err = r.Receive(f.context(), make(driver.Batch, 1))
	}
	if f.kind(err) != driver.Disconnected {
		t.Errorf("kind %s: %v", f.kind(err), err)
	}
	got := f.receive(r, 10)
	if err := r.Settle(f.context(), got, driver.Ack); err != nil {
		t.Error(err)
	}
	seen := map[string]bool{}
	for _, m := range got {
		seen[string(m.Body)] = true
	}
	if len(seen) != 10 {
		t.Errorf("%d of 10 messages came", len(seen))
	}
}

func TestAFollowerSettlesNothing(t *testing.T) {
	f := start(t, double.Config{})
	c := f.open()
	f.topic(c, "t")
	if err := f.send(f.producer(c, "t", nil), bodies("a"))[0]; err != nil {
		t.Fatal(err)
	}
	r := f.consumer(c, "t", "", nil)
	b := f.receive(r, 1)
	if err := r.Settle(f.context(), b, driver.Ack); err != nil {
		t.Errorf("ack: %v", err)
	}
	for _, o := range []driver.Outcome{driver.Requeue, driver.Reject} {
		if err := r.Settle(f.context(), b, o); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%v: %v", o, err)
		}
	}
}

// What is rejected is parked, which the server counts, or skipped, and what is given back too often is parked.
func TestWhatBecomesOfTheRejected(t *testing.T) {
	for reject, want := range map[string]int64{"park": 2, "skip": 1} {
		f := start(t, double.Config{})
		c := f.open()
		f.topic(c, "t")
		if err := errors.Join(f.send(f.producer(c, "t", nil), bodies("rejected", "again"))...); err != nil {
			t.Fatal(err)
		}
		r := f.consumer(c, "t", "g", map[string]any{"reject": reject, "maxRetryCount": 2})
		b := f.receive(r, 2)
		if err := r.Settle(f.context(), b[:1], driver.Reject); err != nil {
			t.Fatal(err)
		}
		for attempt := int32(1); attempt <= 3; attempt++ {
			if attempt > 1 {
				b = append(b[:1], f.receive(r, 1)...)
			}
			if b[1].Attempt != attempt {
				t.Errorf("attempt %d, want %d", b[1].Attempt, attempt)
			}
			if err := r.Settle(f.context(), b[1:], driver.Requeue); err != nil {
				t.Fatal(err)
			}
		}
		await(t, "parked messages", func() bool {
			info, err := c.group(f.context(), "t", "g")
			return err == nil && info.GetParkedMessageCount() == want && info.GetOutstandingMessagesCount() == 0
		})
	}
}

// await waits for a condition that nothing announces.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %v", what, patience)
		}
	}
}

func TestAMessageThatIsNotSettledInTimeComesAgain(t *testing.T) {
	f := start(t, double.Config{})
	c := f.open()
	f.topic(c, "t")
	if err := f.send(f.producer(c, "t", nil), bodies("slow"))[0]; err != nil {
		t.Fatal(err)
	}
	r := f.consumer(c, "t", "g", map[string]any{"messageTimeout": "50ms"})
	f.receive(r, 1)
	if again := f.receive(r, 1); again[0].Attempt < 2 {
		t.Errorf("attempt %d", again[0].Attempt)
	}
}

// Only who has a message settles it, and once.
func TestSettledTwice(t *testing.T) {
	f := start(t, double.Config{})
	c := f.open()
	f.topic(c, "t")
	if err := f.send(f.producer(c, "t", nil), bodies("a"))[0]; err != nil {
		t.Fatal(err)
	}
	r := f.consumer(c, "t", "g", nil)
	b := f.receive(r, 1)
	if err := r.Settle(f.context(), b, driver.Ack); err != nil {
		t.Fatal(err)
	}
	for what, batch := range map[string]driver.Batch{"settled": b, "another's": {{}}} {
		if err := r.Settle(f.context(), batch, driver.Ack); f.kind(err) != driver.Rejected {
			t.Errorf("%s: kind %s: %v", what, f.kind(err), err)
		}
	}
}

// A group that is there with other settings is none to measure with these.
func TestAGroupWithOtherSettings(t *testing.T) {
	f := start(t, double.Config{})
	c := f.open()
	f.topic(c, "t")
	f.consumer(c, "t", "g", map[string]any{"strategy": "Pinned", "messageTimeout": "5s"})
	f.consumer(c, "t", "g", map[string]any{"strategy": "Pinned", "messageTimeout": "5s"})
	_, err := c.NewConsumer(f.context(), driver.ConsumerConfig{Topic: "t", Group: "g", Prefetch: 1, Options: f.resolve(driver.OnConsumer, nil)})
	for _, want := range []string{`option "group": g exists with`, "Pinned", "RoundRobin"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
	if f.kind(err) != driver.Rejected {
		t.Errorf("kind %s", f.kind(err))
	}
}

// A group that has more to read than it has room for does not tell how much that is: it is what the stream has behind the checkpoint.
func TestTheBacklogOfAGroupThatIsBehind(t *testing.T) {
	f := start(t, double.Config{})
	c := f.open()
	f.topic(c, "t")
	if err := errors.Join(f.send(f.producer(c, "t", nil), numbers(0, 1000))...); err != nil {
		t.Fatal(err)
	}
	r := f.consumer(c, "t", "g", nil) // with a prefetch of 100
	backlog := func(want driver.Backlog) {
		t.Helper()
		await(t, "backlog", func() bool {
			got, err := c.Backlog(f.context(), "t", "g")
			return err == nil && got == want
		})
	}
	backlog(driver.Backlog{Messages: 1000, Estimate: true})
	for range 4 {
		if err := r.Settle(f.context(), f.receive(r, 100), driver.Ack); err != nil {
			t.Fatal(err)
		}
	}
	backlog(driver.Backlog{Messages: 600, Undelivered: 500, Estimate: true}) // the rest is in memory
}
