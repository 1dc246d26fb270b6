package rocketmq

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// Messages of a key keep their order while a producer has many of them on their way.
func TestFIFO(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "fifo", 4)
	p, c := f.producer(nil), f.consumer("group", nil)
	const keys, each = 7, 20
	var b driver.Batch
	for i := range keys * each {
		b = append(b, driver.Message{Key: fmt.Append(nil, "key", i%keys), Body: fmt.Appendf(nil, "%05d", i)})
	}
	b = append(b, driver.Message{Body: []byte("90000")}, driver.Message{Body: []byte("90001")})
	f.send(p, b)
	last, partitions := map[string]string{}, map[string]int32{}
	for range b {
		m := f.take(c, 1, true)[0]
		key := string(m.Key)
		if string(m.Body) <= last[key] {
			t.Fatalf("of %q %s came after %s", key, m.Body, last[key])
		}
		if at, ok := partitions[key]; ok && at != m.Partition {
			t.Fatalf("of %q %s came from partition %d, and others from %d", key, m.Body, m.Partition, at)
		}
		last[key], partitions[key] = string(m.Body), m.Partition
	}
	if len(last) != keys+1 {
		t.Errorf("messages of %d keys, sent with %d and without one", len(last), keys)
	}
	places := map[int32]bool{}
	for _, at := range partitions {
		places[at] = true
	}
	if len(places) < 2 {
		t.Errorf("all keys are in partition %v", places)
	}
}

// Nothing overtakes a message of a queue in order that is given back, where the consumer has no others of it.
func TestFIFORequeue(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "fifo", 1)
	p := f.producer(nil)
	c, err := f.tryConsumer("group", 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	f.closes(c)
	f.send(p, driver.Batch{{Body: []byte("1")}, {Body: []byte("2")}, {Body: []byte("3")}})
	f.settle(c, f.take(c, 1, false), driver.Requeue)
	var got []string
	for _, m := range f.take(c, 3, true) {
		got = append(got, fmt.Sprintf("%s for the %d. time", m.Body, m.Attempt))
	}
	if want := []string{"1 for the 2. time", "2 for the 1. time", "3 for the 1. time"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	b, err := f.conn.Backlog(within(t), f.topic, f.topic+"-group")
	if err != nil || b.Messages != 0 {
		t.Errorf("a backlog of %+v, %v", b, err)
	}
}

// The backlog of a topic of FIFO messages is what is not settled.
func TestFIFOBacklog(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "fifo", 1)
	p, c := f.producer(nil), f.consumer("group", nil)
	f.send(p, driver.Batch{{Body: []byte("1")}, {Body: []byte("2")}, {Body: []byte("3")}})
	first := f.take(c, 1, false)
	if b, err := f.conn.Backlog(within(t), f.topic, f.topic+"-group"); err != nil || b.Messages != 3 || b.Estimate {
		t.Errorf("a backlog of %+v, want 3: %v", b, err)
	}
	f.settle(c, first, driver.Ack)
	f.take(c, 2, true)
	if b, err := f.conn.Backlog(within(t), f.topic, f.topic+"-group"); err != nil || b.Messages != 0 {
		t.Errorf("a backlog of %+v, want 0: %v", b, err)
	}
}

// The queue that the driver believes a message group to be in, by which it keeps the order of those that share one, is the server's.
func TestBucketsAreTheServers(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "fifo", 5)
	p, c := f.producer(nil), f.consumer("group", nil)
	var b driver.Batch
	for i := range 40 {
		b = append(b, driver.Message{Key: fmt.Append(nil, "kéy-", i, "-", i*i), Body: []byte("x")})
	}
	f.send(p, b)
	order := map[int]int32{} // the server's list of queues need not be in our order, but must be as ours each time
	for _, m := range f.take(c, len(b), true) {
		mine := bucket(string(m.Key), 5)
		if at, ok := order[mine]; ok && at != m.Partition {
			t.Errorf("bucket %d is partition %d, and of %q it is %d", mine, at, m.Key, m.Partition)
		}
		order[mine] = m.Partition
	}
	if len(order) < 3 {
		t.Errorf("40 groups are in %d of 5 buckets", len(order))
	}
}

// A group is in order or it is not, and consumers of the other kind are told.
func TestAGroupOfTheOtherKindIsRefused(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "fifo", 1)
	if err := f.conn.join(within(t), f.topic, f.topic+"-group", false, driver.StartNew, 16); err != nil {
		t.Fatal(err)
	}
	_, err := f.tryConsumer("group", 10, nil)
	if err == nil || !strings.Contains(err.Error(), "consumeMessageOrderly=false") || f.address.Driver.KindOf(err) != driver.Rejected {
		t.Errorf("a group without order for a topic of fifo messages: %v", err)
	}
}

func TestDelay(t *testing.T) {
	if testing.Short() {
		t.Skip("part of make test-full")
	}
	f := newFixture(t, "delay", 1)
	p, c := f.producer(map[string]any{"deliverAfter": "1s"}), f.consumer("group", nil)
	f.send(p, driver.Batch{{Body: []byte("late"), Properties: driver.Values{"deliverAfter": 5 * time.Second}}, {Body: []byte("soon")}})
	sent := time.Now()
	if m := f.take(c, 1, true)[0]; string(m.Body) != "soon" {
		t.Errorf("%s came first", m.Body)
	}
	if m, took := f.take(c, 1, true)[0], time.Since(sent); string(m.Body) != "late" || took < 3*time.Second { // the broker counts in whole seconds
		t.Errorf("%s came after %v, and was to come after 5s", m.Body, took)
	}
}

// A topic takes messages of its type only.
func TestADelayedMessageForATopicOfNormalOnes(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "normal", 1)
	f.refused(f.producer(nil), driver.Message{Body: []byte("x"), Properties: driver.Values{"deliverAfter": time.Second}}, driver.Rejected)
}

func TestTags(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "normal", 1)
	red, all := f.consumer("red", map[string]any{"tags": "red || blue"}), f.consumer("all", nil)
	p := f.producer(map[string]any{"tag": "green"})
	f.send(p, driver.Batch{
		{Body: []byte("1")}, {Body: []byte("2"), Properties: driver.Values{"tag": "red"}}, {Body: []byte("3"), Properties: driver.Values{"tag": "blue"}},
	})
	got := map[string]any{}
	for _, m := range f.take(red, 2, true) {
		got[string(m.Body)] = m.Properties["tag"]
	}
	if got["2"] != "red" || got["3"] != "blue" {
		t.Errorf("received %v", got)
	}
	f.take(all, 3, true)
}

// What is given back comes again after requeueDelay, and not before.
func TestRequeueDelay(t *testing.T) {
	if testing.Short() {
		t.Skip("part of make test-full")
	}
	f := newFixture(t, "normal", 1)
	p, c := f.producer(nil), f.consumer("group", map[string]any{"requeueDelay": "3s"})
	f.send(p, driver.Batch{{Body: []byte("again")}})
	f.settle(c, f.take(c, 1, false), driver.Requeue)
	given := time.Now()
	m := f.take(c, 1, true)[0]
	if took := time.Since(given); m.Attempt != 2 || took < 2*time.Second {
		t.Errorf("attempt %d came after %v", m.Attempt, took)
	}
}

// What is not settled within invisibleTime comes again, also to a consumer that has room for no other. What it had before it has not to give back then.
func TestInvisibleTime(t *testing.T) {
	if testing.Short() {
		t.Skip("part of make test-full")
	}
	f := newFixture(t, "normal", 1)
	p := f.producer(nil)
	slow, err := f.tryConsumer("group", 1, map[string]any{"invisibleTime": "10s"})
	if err != nil {
		t.Fatal(err)
	}
	f.send(p, driver.Batch{{Body: []byte("again")}})
	f.take(slow, 1, false)
	if m := f.take(slow, 1, true)[0]; m.Attempt != 2 {
		t.Errorf("attempt %d", m.Attempt)
	}
	if err := slow.Close(within(t)); err != nil {
		t.Errorf("a consumer that had a message for too long did not close well: %v", err)
	}
}

func TestRejectedMessagesAreDeadLetters(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "normal", 1)
	p, c := f.producer(nil), f.consumer("group", nil)
	f.send(p, driver.Batch{{Body: []byte("1")}, {Body: []byte("2")}, {Body: []byte("3")}})
	f.settle(c, f.take(c, 3, false), driver.Reject)
	if n := f.end(deadLetterPrefix + f.topic + "-group"); n != 3 {
		t.Errorf("%d dead letters of 3", n)
	}
}

// A server asks all queues of a broker for one request: messages of one are not hidden behind another that is empty, where each would wait for the 5 s of
// a request. A server lets a message wait for that long where it comes between its look at the queues and its waiting, which is rare.
func TestAnEmptyQueueHidesNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("part of make test-full")
	}
	f := newFixture(t, "normal", 8)
	p := f.producer(nil)
	c, err := f.tryConsumer("group", 1, map[string]any{"pollTime": "5s"})
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	places := map[int32]bool{}
	for range 16 {
		f.send(p, driver.Batch{{Body: []byte("x")}})
		places[f.take(c, 1, true)[0].Partition] = true
	}
	if took := time.Since(begin); took > 30*time.Second || len(places) < 4 {
		t.Errorf("16 messages one by one, of %d partitions, took %v", len(places), took)
	}
	brief, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond) // the server would let it wait for 5 s
	defer cancel()
	_ = c.Close(brief)
}

// A topic that is deleted and created again is gone on with.
func TestATopicThatIsCreatedAgain(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "normal", 1)
	p, c := f.producer(nil), f.consumer("group", nil)
	f.send(p, driver.Batch{{Body: []byte("1")}, {Body: []byte("2")}})
	f.take(c, 2, true)
	if err := c.Close(within(t)); err != nil {
		t.Fatal(err)
	}
	if err := f.conn.DeleteTopic(within(t), f.topic); err != nil {
		t.Fatal(err)
	}
	f.create(1)
	c = f.consumer("group", nil)
	for ctx := within(t); ; { // servers keep where a topic was for a while
		err := f.try(p, driver.Batch{{Body: []byte("3")}})[0]
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond)
	}
	if m := f.take(c, 1, true)[0]; string(m.Body) != "3" || m.Attempt != 1 {
		t.Errorf("%s came, for the %d. time", m.Body, m.Attempt)
	}
}

// A server that says nothing is given up by gRPC, which closes its own side, perhaps before the context has ended.
func TestWhoSaysNothingTookTooLong(t *testing.T) {
	ended := status.Error(codes.Unavailable, `connection error: desc = "error reading server preface: raw-read tcp 127.0.0.1:43464->127.0.0.1:36353: use of closed network connection"`)
	if err := explain(t.Context(), ended, "127.0.0.1:36353"); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	reset := status.Error(codes.Unavailable, `connection error: desc = "error reading server preface: EOF"`)
	if err := explain(t.Context(), reset, "127.0.0.1:36353"); err == nil || !strings.Contains(err.Error(), "does not answer as a RocketMQ proxy does") {
		t.Error(err)
	}
}

// Without a name server there is no group, and the error says who does not answer.
func TestWithoutANameServer(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "normal", 1)
	a, err := driver.ParseURL(serverURL(t), map[string]any{"nameServer": "127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	c, err := a.Open(within(t), "test")
	if err != nil {
		t.Fatal(err)
	}
	f.closes(c)
	_, err = c.NewConsumer(within(t), driver.ConsumerConfig{Topic: f.topic, Group: "g", Prefetch: 1, Start: driver.StartNew, Options: f.values(driver.OnConsumer, nil)})
	if err == nil || !strings.Contains(err.Error(), "name server") || a.Driver.KindOf(err) != driver.Disconnected {
		t.Errorf("%v", err)
	}
}

func TestOptionsThatAreRefused(t *testing.T) {
	for option, value := range map[string]any{
		"invisibleTime": "9s", "pollTime": "21s", "receives": 0, "batch": 0, "requests": 5000, "messageType": "transaction", "endpoints": "none", "maxAttempts": 0,
	} {
		if _, err := driver.ParseURL("rocketmq://127.0.0.1", map[string]any{option: value}); err == nil || !strings.Contains(err.Error(), option) {
			t.Errorf("%s: %v: %v", option, value, err)
		}
	}
	d, err := driver.Lookup("rocketmq")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Properties(map[string]any{"priority": 5}); err == nil || !strings.Contains(err.Error(), "priority") {
		t.Errorf("a property that there is not: %v", err)
	}
}

func TestWhatIsNoText(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "normal", 1)
	p := f.producer(nil)
	f.refused(p, driver.Message{Body: []byte("x"), Key: []byte{0xff}}, driver.Rejected)
	f.refused(p, driver.Message{Body: []byte("x"), Headers: []driver.Header{{Name: "a", Value: []byte{1}}}}, driver.Rejected)
	f.refused(p, driver.Message{Body: []byte("x"), Headers: []driver.Header{{Name: "a"}, {Name: "a", Value: []byte("b")}}}, driver.Rejected)
}

// proofOf says no more than a broker's settings do.
func TestProofs(t *testing.T) {
	for _, c := range []struct {
		settings map[string]string
		copies   int
		want     driver.Confirm
	}{
		{map[string]string{"brokerRole": "ASYNC_MASTER", "inSyncReplicas": "2"}, 2, driver.Accepted},
		{map[string]string{"brokerRole": "SYNC_MASTER", "inSyncReplicas": "1"}, 2, driver.Accepted},
		{map[string]string{"brokerRole": "SYNC_MASTER", "inSyncReplicas": "2"}, 1, driver.Accepted},
		{map[string]string{"brokerRole": "SYNC_MASTER"}, 2, driver.Accepted},
		{map[string]string{"brokerRole": "SYNC_MASTER", "inSyncReplicas": "2"}, 2, driver.Replicated},
	} {
		if got := proofOf(c.settings, c.copies); got.Confirm != c.want || got.How == "" {
			t.Errorf("%v with %d copies: %+v", c.settings, c.copies, got)
		}
	}
}

// A consumer that is closed while a server waits for messages for it takes none of those that come afterwards.
func TestAConsumerThatClosedTakesNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "normal", 1)
	p, c := f.producer(nil), f.consumer("group", nil)
	brief, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err := c.Receive(brief, make(driver.Batch, 1)); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	if err := c.Close(within(t)); err != nil {
		t.Fatal(err)
	}
	f.send(p, driver.Batch{{Body: []byte("1")}})
	if m := f.take(f.consumer("group", nil), 1, true)[0]; m.Attempt != 1 {
		t.Errorf("attempt %d came", m.Attempt)
	}
}
