package kafka

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

func markedQueue(t testing.TB) *fixture {
	t.Helper()
	url := server("BROKER_URL_KMQ")
	if url == "" {
		t.Skip("no BROKER_URL_KMQ")
	}
	return newFixture(t, url)
}

// with sets options of a consumer.
func (f *fixture) with(t testing.TB, given map[string]any) func(*driver.ConsumerConfig) {
	t.Helper()
	return func(c *driver.ConsumerConfig) { c.Options = f.values(t, driver.OnConsumer, given) }
}

// comesTo waits until the backlog is so many messages.
func (f *fixture) comesTo(t testing.TB, topic, group string, want int64) {
	t.Helper()
	for ctx := within(t); ; time.Sleep(10 * time.Millisecond) {
		b, err := f.conn.(driver.Backlogger).Backlog(ctx, topic, group)
		if err == nil && b.Messages == want {
			return
		}
		if err != nil || ctx.Err() != nil {
			t.Fatalf("the backlog of %s is %d, want %d: %v", group, b.Messages, want, err)
		}
	}
}

// nothing fails the test where something comes within a moment.
func nothing(t testing.TB, c driver.Consumer, why string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
	defer cancel()
	b := make(driver.Batch, 10)
	if n, err := c.Receive(ctx, b); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%d messages came, the first %s, %v: %s", n, b[0].Body, err, why)
	}
}

// What is acknowledged behind a gap is acknowledged: only what is not comes again, once.
func TestOnlyWhatIsNotAcknowledgedComesAgain(t *testing.T) {
	t.Parallel()
	f := markedQueue(t)
	topic := f.topic(t, 1)
	c := f.consumer(t, topic, topic)
	f.send(t, f.producer(t, topic, nil), numbered("m", 10))
	b := take(t, c, 10)
	if err := c.Settle(within(t), driver.Batch{b[9], b[3], b[5], b[7], b[1]}, driver.Ack); err != nil {
		t.Fatal(err)
	}
	closed(t, c)
	other := f.consumer(t, topic, topic)
	defer func() { closed(t, other) }()
	var got []string
	for _, m := range take(t, other, 5) {
		got = append(got, fmt.Sprintf("%s attempt %d", m.Body, m.Attempt))
	}
	slices.Sort(got)
	if want := []string{"m-000 attempt 2", "m-002 attempt 2", "m-004 attempt 2", "m-006 attempt 2", "m-008 attempt 2"}; !slices.Equal(got, want) {
		t.Errorf("came again: %q", got)
	}
	nothing(t, other, "the others were acknowledged")
}

// A message that its consumer keeps for too long comes again as it was, and counts its deliveries; the other does not.
func TestAMessageIsSentAgainWhenItsTimeIsOver(t *testing.T) {
	if testing.Short() {
		t.Skip("part of make test-full")
	}
	f := markedQueue(t)
	topic := f.topic(t, 3)
	c := f.consumer(t, topic, topic, f.with(t, map[string]any{"redeliverAfter": "2s"}))
	defer func() { closed(t, c) }()
	sent := driver.Batch{
		{Key: []byte("key"), Body: []byte("kept"), Headers: []driver.Header{{Name: "stamp", Value: []byte{0, 255}}, {Name: "stamp", Value: []byte("2")}}},
		{Body: []byte("acked")},
	}
	f.send(t, f.producer(t, topic, nil), sent)
	begin := time.Now()
	first := take(t, c, 2)
	for _, m := range first {
		if string(m.Body) == "acked" {
			if err := c.Settle(within(t), driver.Batch{m}, driver.Ack); err != nil {
				t.Fatal(err)
			}
		}
	}
	for n := int32(2); n <= 3; n++ {
		m := take(t, c, 1)[0]
		if took := time.Since(begin); took < time.Second { // it was marked before it was received
			t.Errorf("it came again after %v", took)
		}
		begin = time.Now()
		if string(m.Key) != "key" || string(m.Body) != "kept" || m.Attempt != n || len(m.Headers) != 2 || m.Headers[1].Name != "stamp" || !bytes.Equal(m.Headers[0].Value, []byte{0, 255}) {
			t.Errorf("attempt %d, want %d, of %q %q %v", m.Attempt, n, m.Key, m.Body, m.Headers)
		}
		f.comesTo(t, topic, topic, 1) // while it is sent again it may count twice
		if n == 3 {
			if err := c.Settle(within(t), driver.Batch{m}, driver.Ack); err != nil {
				t.Fatal(err)
			}
		}
	}
	nothing(t, c, "all was acknowledged")
	f.comesTo(t, topic, topic, 0)
}

// A message may be older than a request may take, and comes again all the same.
func TestAnOldMessageIsSentAgain(t *testing.T) {
	if testing.Short() {
		t.Skip("part of make test-full")
	}
	f := newFixture(t, strings.TrimSuffix(markedQueue(t).address.String(), "/")+"?requestTimeout=3s")
	topic := f.topic(t, 1)
	c := f.consumer(t, topic, topic, f.with(t, map[string]any{"redeliverAfter": "4s"}))
	defer func() { closed(t, c) }()
	f.send(t, f.producer(t, topic, nil), driver.Batch{{Body: []byte("kept")}})
	for n := int32(1); n <= 2; n++ {
		if m := take(t, c, 1)[0]; string(m.Body) != "kept" || m.Attempt != n {
			t.Errorf("attempt %d, want %d, of %q", m.Attempt, n, m.Body)
		}
	}
}

// A message is given up after so many deliveries, and one that is rejected at once. Both are dead letters, with nothing of the protocol in them.
func TestDeadLetters(t *testing.T) {
	t.Parallel()
	f := markedQueue(t)
	topic, letters := f.topic(t, 2), f.topic(t, 1)
	dead := f.consumer(t, letters, letters)
	defer func() { closed(t, dead) }()
	c := f.consumer(t, topic, topic, f.with(t, map[string]any{"maxAttempts": 2, "deadLetterTopic": letters}), func(c *driver.ConsumerConfig) { c.ConfirmSettle = true })
	defer func() { closed(t, c) }()
	p := f.producer(t, topic, nil)
	f.send(t, p, driver.Batch{{Body: []byte("requeued"), Headers: []driver.Header{{Name: "h", Value: []byte("v")}}}})
	for n := range int32(2) {
		m := take(t, c, 1)
		if m[0].Attempt != n+1 {
			t.Errorf("attempt %d, want %d", m[0].Attempt, n+1)
		}
		if err := c.Settle(within(t), m, driver.Requeue); err != nil {
			t.Fatal(err)
		}
	}
	m := take(t, dead, 1)[0]
	if string(m.Body) != "requeued" || m.Attempt != 1 || len(m.Headers) != 1 {
		t.Errorf("the dead letter is %q, attempt %d, %v", m.Body, m.Attempt, m.Headers)
	}
	f.send(t, p, driver.Batch{{Body: []byte("rejected")}})
	if err := c.Settle(within(t), take(t, c, 1), driver.Reject); err != nil {
		t.Fatal(err)
	}
	if m := take(t, dead, 1)[0]; string(m.Body) != "rejected" {
		t.Errorf("the dead letter is %q", m.Body)
	}
	nothing(t, c, "all is given up")
	f.comesTo(t, topic, topic, 0)
}

// What is sent again is for one group: the others have it already.
func TestRedeliveryIsOfOneGroup(t *testing.T) {
	t.Parallel()
	f := markedQueue(t)
	topic := f.topic(t, 1)
	one, other := f.consumer(t, topic, topic+"-one"), f.consumer(t, topic, topic+"-other")
	defer func() { closed(t, one); closed(t, other) }()
	f.send(t, f.producer(t, topic, nil), numbered("m", 5))
	if err := other.Settle(within(t), take(t, other, 5), driver.Ack); err != nil {
		t.Fatal(err)
	}
	if err := one.Settle(within(t), take(t, one, 5), driver.Requeue); err != nil {
		t.Fatal(err)
	}
	if err := one.Settle(within(t), take(t, one, 5), driver.Ack); err != nil {
		t.Fatal(err)
	}
	nothing(t, other, "the other group acknowledged all")
	f.comesTo(t, topic, topic+"-other", 0) // what is passed over does not stay in it
}

func TestMarkersTopicBelongsToItsTopic(t *testing.T) {
	t.Parallel()
	f := markedQueue(t)
	topic := f.topic(t, 3)
	closed(t, f.consumer(t, topic, "workers"))
	markers := topic + "__markers__workers"
	c := f.conn.(*kmqConn)
	there, err := c.metadata(within(t), markers)
	if err != nil || len(there.Partitions) != 3 {
		t.Fatalf("%d partitions, %v", len(there.Partitions), err)
	}
	if configs, err := c.configs(within(t), markers); configs["message.timestamp.type"] != "LogAppendTime" {
		t.Errorf("%v %v", configs["message.timestamp.type"], err)
	}
	if err := f.admin().DeleteTopic(within(t), topic); err != nil {
		t.Fatal(err)
	}
	if _, err := c.metadata(within(t), markers); f.address.Driver.KindOf(err) != driver.NotFound {
		t.Errorf("the markers are still there: %v", err)
	}
	spec := driver.TopicSpec{Name: topic, Partitions: 1, Replicas: 1, Options: f.values(t, driver.OnTopic, nil)}
	if err := f.admin().CreateTopic(within(t), spec); err != nil { // for the fixture to delete
		t.Fatal(err)
	}
}

func TestMistakesWithMarkers(t *testing.T) {
	t.Parallel()
	f := markedQueue(t)
	topic := f.topic(t, 2)
	join := func(group string, given map[string]any) error {
		_, err := f.conn.NewConsumer(within(t), driver.ConsumerConfig{
			Topic: topic, Group: group, Prefetch: 1, Start: driver.StartNew, Options: f.values(t, driver.OnConsumer, given),
		})
		return err
	}
	for _, c := range []struct {
		what, option string
		err          error
	}{
		{"no topic of dead letters", "deadLetterTopic", join("workers", map[string]any{"deadLetterTopic": newTopicName()})},
	} {
		var option *driver.OptionError
		if !errors.As(c.err, &option) || option.Name != c.option {
			t.Errorf("%s: %v, want an error about option %s", c.what, c.err, c.option)
		}
	}
	if err := join("a/b", nil); f.address.Driver.KindOf(err) != driver.Rejected {
		t.Errorf("a group whose name no topic can have: %v, want it rejected", err)
	}
}

// What one partition's markers say, in the bytes of KMQ's own library.
func TestMarkersInProgress(t *testing.T) {
	at := time.UnixMilli(1_000_000)
	m := func(offset int64) *kgo.Record { return &kgo.Record{Partition: 7, Offset: offset} }
	start := startMarkers("markers", []*kgo.Record{m(258)}, 30*time.Second)[0]
	if start.Partition != 7 || !bytes.Equal(start.Key, []byte{0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 1, 2}) || !bytes.Equal(start.Value, []byte{1, 0, 0, 0, 0, 0, 0, 117, 48}) {
		t.Errorf("%v %v", start.Key, start.Value)
	}
	if end := endMarkers("markers", []*kgo.Record{m(258)})[0]; !bytes.Equal(end.Key, start.Key) || !bytes.Equal(end.Value, []byte{0}) {
		t.Errorf("%v %v", end.Key, end.Value)
	}

	p, next := newInProgress(), int64(100)
	read := func(r *kgo.Record) {
		r.Offset, r.Timestamp = next, at
		p.read(r)
		next++
	}
	startOf := func(offset int64, after time.Duration) {
		read(startMarkers("markers", []*kgo.Record{m(offset)}, after)[0])
	}
	endOf := func(offset int64) { read(endMarkers("markers", []*kgo.Record{m(offset)})[0]) }
	due := func(after time.Duration) (offsets []int64) {
		for _, b := range p.due(at.Add(after).UnixMilli()) {
			offsets = append(offsets, b.offset)
		}
		return offsets
	}
	startOf(1, 30*time.Second)
	startOf(2, 30*time.Second)
	startOf(3, 10*time.Second)
	startOf(4, 30*time.Second)
	endOf(1)
	endOf(9) // of which nothing is known
	read(&kgo.Record{Key: []byte("no"), Value: []byte("marker")})
	if got := p.begin(); got != 101 {
		t.Errorf("the first marker that is needed is %d", got)
	}
	startOf(2, 60*time.Second) // begun anew
	if got := p.begin(); got != 102 {
		t.Errorf("the first marker that is needed is %d", got)
	}
	if got := due(9 * time.Second); len(got) != 0 {
		t.Errorf("due after 9s: %v", got)
	}
	if got := due(45 * time.Second); !slices.Equal(got, []int64{3, 4}) {
		t.Errorf("due after 45s: %v", got)
	}
	if got := due(45 * time.Second); len(got) != 0 {
		t.Errorf("due once more: %v", got)
	}
	if got := p.begin(); got != 102 {
		t.Errorf("what is sent again has not ended, and the first marker is %d", got)
	}
	endOf(3)
	endOf(4)
	if got := due(time.Minute); !slices.Equal(got, []int64{2}) {
		t.Errorf("due after a minute: %v", got)
	}
	endOf(2)
	if got := p.begin(); got != next || len(p.messages) != 0 {
		t.Errorf("all have ended: %d, %v", got, p.messages)
	}
}
