package nats

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// receive receives n messages.
func receive(t *testing.T, k driver.Consumer, n int) driver.Batch {
	t.Helper()
	got := make(driver.Batch, 0, n)
	b := make(driver.Batch, n)
	for len(got) < n {
		m, err := k.Receive(within(t), b[:n-len(got)])
		if err != nil {
			t.Fatalf("after %d of %d: %v", len(got), n, err)
		}
		got = append(got, b[:m]...)
	}
	return got
}

func backlog(t *testing.T, c driver.Conn, topic, group string) int64 {
	t.Helper()
	return must[driver.Backlog](t)(c.(driver.Backlogger).Backlog(within(t), topic, group)).Messages
}

// becomes waits for a backlog, because acknowledgements are not confirmed.
func becomes(t *testing.T, c driver.Conn, topic, group string, want int64) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		n := backlog(t, c, topic, group)
		if n == want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("backlog %d, want %d", n, want)
		}
	}
}

func streamOf(t *testing.T, c driver.Conn, topic string) *jetstream.StreamInfo {
	t.Helper()
	var js jetstream.JetStream
	if !c.(driver.Unwrapper).As(&js) {
		t.Fatal("no jetstream.JetStream")
	}
	name := must[string](t)(js.StreamNameBySubject(within(t), topic))
	return must[jetstream.Stream](t)(js.Stream(within(t), name)).CachedInfo()
}

func TestTopicOptions(t *testing.T) {
	c, a := open(t, "embedded:")
	topic := unique("options")
	create(t, c, a, topic, map[string]any{
		"storage": "memory", "retention": "interest", "maxAge": "1h", "maxBytes": "1MiB", "maxMessages": 7,
		"discard": "new", "duplicates": "10s",
	})
	config := streamOf(t, c, topic).Config
	if config.Storage != jetstream.MemoryStorage || config.Retention != jetstream.InterestPolicy || config.MaxAge != time.Hour ||
		config.MaxBytes != 1<<20 || config.MaxMsgs != 7 || config.Discard != jetstream.DiscardNew || config.Duplicates != 10*time.Second {
		t.Errorf("%+v", config)
	}
	described := must[driver.TopicInfo](t)(c.(driver.TopicDescriber).DescribeTopic(within(t), topic))
	want := driver.TopicInfo{Replicas: 1, Options: driver.Values{
		"storage": "memory", "retention": "interest", "maxAge": time.Hour, "maxBytes": int64(1 << 20), "maxMessages": int64(7),
		"discard": "new", "duplicates": 10 * time.Second, "persist": "default",
	}}
	if !reflect.DeepEqual(described, want) {
		t.Errorf("described as %+v, want %+v", described, want)
	}
	again := driver.TopicSpec{Name: topic, Partitions: 1, Replicas: 1, Options: values(t, a, driver.OnTopic, nil)}
	if err := c.(driver.Admin).CreateTopic(within(t), again); err != nil {
		t.Errorf("the topic exists, with other settings: %v", err)
	}
}

func TestReplicasNeedACluster(t *testing.T) {
	c, a := open(t, "embedded:")
	err := c.(driver.Admin).CreateTopic(within(t), driver.TopicSpec{
		Name: unique("r3"), Partitions: 1, Replicas: 3, Options: values(t, a, driver.OnTopic, nil),
	})
	if kind := a.Driver.KindOf(err); kind != driver.Unsupported {
		t.Errorf("kind %s, want unsupported: %v", kind, err)
	}
}

// Two topics whose names give one stream must not be mixed up.
func TestTopicsOfOneStreamName(t *testing.T) {
	c, a := open(t, "embedded:")
	name := unique("same")
	create(t, c, a, name+".x", nil)
	err := c.(driver.Admin).CreateTopic(within(t), driver.TopicSpec{
		Name: name + "_x", Partitions: 1, Replicas: 1, Options: values(t, a, driver.OnTopic, nil),
	})
	if kind := a.Driver.KindOf(err); kind != driver.Rejected {
		t.Errorf("kind %s, want rejected: %v", kind, err)
	}
}

// A stream of several subjects is somebody's own: its topics can be used, not deleted.
func TestStreamOfOthers(t *testing.T) {
	c, a := open(t, "embedded:")
	var js jetstream.JetStream
	c.(driver.Unwrapper).As(&js)
	root := unique("own")
	must[jetstream.Stream](t)(js.CreateStream(within(t), jetstream.StreamConfig{Name: nameFor(root), Subjects: []string{root + ".>"}}))
	t.Cleanup(func() { _ = js.DeleteStream(context.Background(), nameFor(root)) })
	one, two := root+".one", root+".two"
	for _, topic := range []string{one, two} {
		for _, err := range send(t, producer(t, c, a, topic, nil), bodies(10)) {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := backlog(t, c, one, ""); n != 10 {
		t.Errorf("backlog %d", n)
	}
	admin := c.(driver.Admin)
	if err := admin.DeleteTopic(within(t), one); a.Driver.KindOf(err) != driver.Rejected {
		t.Errorf("DeleteTopic: %v, want rejected", err)
	}
	if err := admin.PurgeTopic(within(t), one); err != nil {
		t.Error(err)
	}
	if x, y := backlog(t, c, one, ""), backlog(t, c, two, ""); x != 0 || y != 10 {
		t.Errorf("after the purge of one topic: %d and %d", x, y)
	}
	receive(t, consumer(t, c, a, driver.ConsumerConfig{Topic: two, Group: "g", Prefetch: 10, Start: driver.StartEarliest}, nil), 10)
	_, err := c.NewConsumer(within(t), driver.ConsumerConfig{
		Topic: one, Group: "g", Prefetch: 1, Start: driver.StartNew, Options: values(t, a, driver.OnConsumer, nil),
	})
	if a.Driver.KindOf(err) != driver.Rejected {
		t.Errorf("a group of one topic used for another: %v, want rejected", err)
	}
}

func TestFullStreamThrottles(t *testing.T) {
	c, a := open(t, "embedded:")
	topic := unique("full")
	create(t, c, a, topic, map[string]any{"maxMessages": 3, "discard": "new"})
	for i, err := range send(t, producer(t, c, a, topic, nil), bodies(5)) {
		if want := i >= 3; want != (err != nil) || (want && a.Driver.KindOf(err) != driver.Throttled) {
			t.Errorf("message %d: %v", i, err)
		}
	}
}

func TestWorkQueue(t *testing.T) {
	c, a := open(t, "embedded:")
	topic := unique("queue")
	create(t, c, a, topic, map[string]any{"retention": "workqueue"})
	send(t, producer(t, c, a, topic, nil), bodies(20))
	k := consumer(t, c, a, driver.ConsumerConfig{Topic: topic, Group: "g", Prefetch: 20}, nil)
	if err := k.Settle(within(t), receive(t, k, 20), driver.Ack); err != nil {
		t.Fatal(err)
	}
	becomes(t, c, topic, "", 0) // what is acknowledged is gone
}

// A stream keeps everything for a group that comes later, or, of the retention that spends, nothing.
func TestWhatAStreamKeepsForThoseWhoComeLater(t *testing.T) {
	for retention, kept := range map[string]int64{"limits": 20, "workqueue": 20, "interest": 0} {
		c, a := open(t, "embedded:")
		topic := unique("kept")
		create(t, c, a, topic, map[string]any{"retention": retention})
		send(t, producer(t, c, a, topic, nil), bodies(20))
		consumer(t, c, a, driver.ConsumerConfig{Topic: topic, Group: "g", Prefetch: 20, Start: driver.StartEarliest}, nil)
		if n := backlog(t, c, topic, "g"); n != kept {
			t.Errorf("%s: %d are kept", retention, n)
		}
	}
}

// Why there is a pull of our own: the library's delivers on to a member that settles nothing. Where this fails, use it.
func TestTheLibrarysPullBoundsNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("part of make test-full")
	}
	const prefetch, sent = 5, 20
	c, a := open(t, "embedded:")
	topic := unique("unbounded")
	create(t, c, a, topic, nil)
	send(t, producer(t, c, a, topic, nil), bodies(sent))
	js := must[jetstream.JetStream](t)(jetstream.New(client(t, c)))
	remote := must[jetstream.Consumer](t)(js.CreateConsumer(within(t), nameFor(topic), jetstream.ConsumerConfig{AckPolicy: jetstream.AckExplicitPolicy}))
	came := make(chan struct{}, sent)
	consuming := must[jetstream.ConsumeContext](t)(remote.Consume(func(jetstream.Msg) { came <- struct{}{} }, jetstream.PullMaxMessages(prefetch)))
	defer consuming.Stop()
	for got := range sent {
		select {
		case <-came:
		case <-within(t).Done():
			t.Fatalf("%d of %d came, of which nothing was settled, where %d were asked for at a time", got, sent, prefetch)
		}
	}
}

func TestRequeueWithDelay(t *testing.T) {
	t.Parallel()
	const delay = 500 * time.Millisecond
	c, a := open(t, "embedded:")
	topic := unique("delay")
	create(t, c, a, topic, nil)
	k := consumer(t, c, a, driver.ConsumerConfig{Topic: topic, Group: "g"}, map[string]any{"nakDelay": delay.String()})
	send(t, producer(t, c, a, topic, nil), bodies(1))
	b := receive(t, k, 1)
	start := driver.Now()
	if err := k.Settle(within(t), b, driver.Requeue); err != nil {
		t.Fatal(err)
	}
	b = receive(t, k, 1)
	if b[0].Attempt != 2 || time.Duration(b[0].Received-start) < delay {
		t.Errorf("attempt %d after %v", b[0].Attempt, time.Duration(b[0].Received-start))
	}
}

func TestMaxDeliver(t *testing.T) {
	c, a := open(t, "embedded:")
	topic := unique("deliver")
	create(t, c, a, topic, nil)
	k := consumer(t, c, a, driver.ConsumerConfig{Topic: topic, Group: "g", Prefetch: 5}, map[string]any{"maxDeliver": 2})
	p := producer(t, c, a, topic, nil)
	send(t, p, bodies(1))
	for attempt := range int32(2) {
		b := receive(t, k, 1)
		if b[0].Attempt != attempt+1 {
			t.Errorf("attempt %d, want %d", b[0].Attempt, attempt+1)
		}
		if err := k.Settle(within(t), b, driver.Requeue); err != nil {
			t.Fatal(err)
		}
	}
	send(t, p, driver.Batch{{Body: []byte("next")}})
	if b := receive(t, k, 1); string(b[0].Body) != "next" {
		t.Errorf("%q came a third time", b[0].Body)
	}
}

// An unsettled message comes again after ackWait, to another member, too.
func TestAckWait(t *testing.T) {
	t.Parallel()
	c, a := open(t, "embedded:")
	topic, given := unique("wait"), map[string]any{"ackWait": "1s"}
	create(t, c, a, topic, nil)
	config := driver.ConsumerConfig{Topic: topic, Group: "g", Prefetch: 1}
	first := consumer(t, c, a, config, given)
	send(t, producer(t, c, a, topic, nil), bodies(1))
	receive(t, first, 1)
	second := consumer(t, c, a, config, given)
	if b := receive(t, second, 1); b[0].Attempt < 2 {
		t.Errorf("attempt %d", b[0].Attempt)
	}
}

func TestSettledTwice(t *testing.T) {
	c, a := open(t, "embedded:")
	topic := unique("twice")
	create(t, c, a, topic, nil)
	k := consumer(t, c, a, driver.ConsumerConfig{Topic: topic, Group: "g", ConfirmSettle: true}, nil)
	send(t, producer(t, c, a, topic, nil), bodies(1))
	b := receive(t, k, 1)
	if err := k.Settle(within(t), b, driver.Ack); err != nil {
		t.Fatal(err)
	}
	if err := k.Settle(within(t), b, driver.Ack); !errors.Is(err, jetstream.ErrMsgAlreadyAckd) {
		t.Error(err)
	}
	if err := k.Settle(within(t), bodies(1), driver.Ack); !errors.Is(err, errForeign) {
		t.Error(err)
	}
}

func TestConsumerDeleted(t *testing.T) {
	t.Parallel()
	c, a := open(t, "embedded:")
	topic := unique("deleted")
	create(t, c, a, topic, nil)
	k := consumer(t, c, a, driver.ConsumerConfig{Topic: topic, Group: "g"}, nil)
	var js jetstream.JetStream
	c.(driver.Unwrapper).As(&js)
	if err := js.DeleteConsumer(within(t), nameFor(topic), "g"); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second is the answer to asking again
		if _, err := k.Receive(within(t), make(driver.Batch, 1)); a.Driver.KindOf(err) != driver.NotFound {
			t.Errorf("%v, want not_found", err)
		}
	}
}

func TestPublishWithoutStream(t *testing.T) {
	c, a := open(t, "embedded:")
	for _, err := range send(t, producer(t, c, a, unique("absent"), nil), bodies(3)) {
		if a.Driver.KindOf(err) != driver.NotFound {
			t.Errorf("%v, want not_found", err)
		}
	}
}

// silence is a subject where somebody takes messages and answers only when told to.
func silence(t *testing.T, c driver.Conn, topic string) (answer func()) {
	t.Helper()
	asked := make(chan *nats.Msg, 100)
	sub := must[*nats.Subscription](t)(client(t, c).ChanSubscribe(topic, asked))
	t.Cleanup(func() { _ = sub.Unsubscribe() })
	return func() {
		select {
		case m := <-asked:
			if err := m.Respond([]byte(`{"stream":"S","seq":1}`)); err != nil {
				t.Error(err)
			}
		case <-time.After(patience):
			t.Error("nothing was sent")
		}
	}
}

func TestAckTimeout(t *testing.T) {
	c, a := open(t, "embedded:")
	topic := unique("silent")
	answer := silence(t, c, topic)
	p := producer(t, c, a, topic, map[string]any{"ackTimeout": "50ms"})
	for _, err := range send(t, p, bodies(3)) {
		if a.Driver.KindOf(err) != driver.Timeout || !errors.Is(err, jetstream.ErrAsyncPublishTimeout) {
			t.Errorf("%v, want timeout", err)
		}
	}
	for range 3 {
		answer() // too late, and to nobody: the slots are free again
	}
	long := producer(t, c, a, topic, nil)
	done := make(chan error, 2)
	long.Send(within(t), bodies(2), func(_ int, err error) { done <- err })
	answer()
	answer()
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// A late answer must not be taken for that to the message which has the slot now.
func TestLateAnswerIsNobodys(t *testing.T) {
	t.Parallel()
	c, a := open(t, "embedded:")
	topic := unique("late")
	answer := silence(t, c, topic)
	p := producer(t, c, a, topic, map[string]any{"ackTimeout": "200ms"})
	send(t, p, bodies(1))
	var dones atomic.Int64
	second := make(chan error, 1)
	p.Send(within(t), bodies(1), func(_ int, err error) {
		dones.Add(1)
		second <- err
	})
	answer() // the first, which has timed out
	if err := <-second; a.Driver.KindOf(err) != driver.Timeout {
		t.Errorf("the second message was told %v", err)
	}
	answer()
	if err := p.Close(within(t)); err != nil || dones.Load() != 1 {
		t.Errorf("%v, done %d times", err, dones.Load())
	}
}

func TestCloseFailsWhatIsPending(t *testing.T) {
	c, a := open(t, "embedded:")
	topic := unique("silent")
	silence(t, c, topic)
	p := producer(t, c, a, topic, nil)
	errs := make(chan error, 3)
	p.Send(within(t), bodies(3), func(_ int, err error) { errs <- err })
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_ = p.Close(ctx)
	for range 3 {
		if err := <-errs; !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	}
	if err := send(t, p, bodies(1))[0]; !errors.Is(err, driver.ErrClosed) {
		t.Error(err)
	}
}

// A done may send again, and close: no lock is held when it is called.
func TestDoneMaySend(t *testing.T) {
	c, a := open(t, "embedded:")
	topic := unique("again")
	silence(t, c, topic)
	p := producer(t, c, a, topic, map[string]any{"ackTimeout": "20ms"})
	finished := make(chan struct{})
	p.Send(within(t), bodies(1), func(int, error) {
		p.Send(within(t), bodies(1), func(int, error) { close(finished) })
	})
	select {
	case <-finished:
	case <-time.After(patience):
		t.Fatal("a send from within a done hangs")
	}
}

func TestFromReply(t *testing.T) {
	for reply, want := range map[string][2]uint64{
		"$JS.ACK.S.C.3.11.7.1700000000.0":                   {3, 7},
		"$JS.ACK.domain.HASH.S.C.3.11.7.1700000000.0":       {3, 7},
		"$JS.ACK.domain.HASH.S.C.3.11.7.1700000000.0.token": {3, 7},
	} {
		if d, s := fromReply(reply, tokenDelivered), fromReply(reply, tokenConsumerSequence); d != want[0] || s != want[1] {
			t.Errorf("%s: delivered %d, sequence %d", reply, d, s)
		}
	}
}

func TestPubAck(t *testing.T) {
	for data, want := range map[string]driver.Kind{
		`{"stream":"S","seq":1}`:                                           "",
		`{"stream":"S","domain":"D","seq":12345}`:                          "",
		`{"stream":"\"error\"","seq":1}`:                                   "",
		`{"stream":"S","seq":1,"val":"5"}`:                                 "",
		`{"stream":"S","seq":1,"duplicate": true}`:                         driver.Rejected,
		`{"seq":1,"stream":"S","duplicate":true}`:                          driver.Rejected,
		`{"stream":"S","seq":1,"error":{"code":400,"err_code":1,"seq":1}}`: driver.Rejected,
		`{"stream":"S","seq":`:                                             driver.Unknown,
		`{"error":{"code":503,"err_code":10077,"description":"maximum messages exceeded"},"stream":"S","seq":0}`: driver.Throttled,
		`{"stream":"S","seq":0,"error":{"code":400,"err_code":10054}}`:                                           driver.Rejected,
		`{}`: driver.Unknown,
		`no`: driver.Unknown,
	} {
		var place driver.Place
		for _, place := range []*driver.Place{nil, &place} {
			err := published(&nats.Msg{Data: []byte(data)}, place)
			if (err == nil) != (want == "") || (err != nil && classify(err) != want) {
				t.Errorf("%s: %v, want %q", data, err, want)
			}
		}
		if stored := place.Position != (driver.Position{}); stored != (want == "") {
			t.Errorf("%s: at position %q", data, place.Position)
		}
	}
}

func TestPubAckTellsThePlace(t *testing.T) {
	for data, want := range map[string]string{
		`{"stream":"S","seq":1}`:                      "1",
		`{"stream":"S","seq":18446744073709551615}`:   "18446744073709551615",
		`{"stream":"S","domain":"D","seq":12345}`:     "12345",
		`{"stream":"S","seq":17,"val":"5"}`:           "17",
		`{"seq":18,"stream":"S","some":"thing else"}`: "18",
		`{"stream":"S","seq":0}`:                      "",
	} {
		var place driver.Place
		if err := published(&nats.Msg{Data: []byte(data)}, &place); err != nil || place.Position.String() != want {
			t.Errorf("%s: %q, %v", data, place.Position, err)
		}
	}
	ack := &nats.Msg{Data: []byte(`{"stream":"STREAM","seq":1234567}`)}
	var place driver.Place
	if n := testing.AllocsPerRun(100, func() { _ = published(ack, &place) }); n > 0 {
		t.Errorf("%v allocations to read an ack", n)
	}
}

// What is not from a stream has no place in one.
func TestPlaceFromReply(t *testing.T) {
	for reply, want := range map[string]driver.Place{
		"$JS.ACK.S.C.3.11.7.1700000000000000001.0":             {Position: driver.At(11), Timestamp: 1700000000000000001},
		"$JS.ACK.domain.HASH.S.C.3.11.7.1700000000000000001.0": {Position: driver.At(11), Timestamp: 1700000000000000001},
		"":         {},
		"_INBOX.x": {},
	} {
		if got := streamPlace(&driver.Message{Token: &nats.Msg{Reply: reply}}); got != want {
			t.Errorf("%q: %+v", reply, got)
		}
	}
	if got := streamPlace(&driver.Message{}); got != (driver.Place{}) {
		t.Errorf("no message: %+v", got)
	}
}

// What the server drops as a duplicate is no message of its own: nobody receives it.
func TestADuplicateIsNotConfirmed(t *testing.T) {
	c, a := open(t, "embedded:")
	topic := unique("twice")
	create(t, c, a, topic, nil)
	named := func(id string) driver.Message {
		return driver.Message{Body: []byte(id), Headers: []driver.Header{{Name: "Nats-Msg-Id", Value: []byte(id)}}}
	}
	p := producer(t, c, a, topic, nil)
	errs := send(t, p, driver.Batch{named("one"), named("one"), named("two")})
	if errs[0] != nil || errs[2] != nil {
		t.Errorf("%v", errs)
	}
	if kind := a.Driver.KindOf(errs[1]); kind != driver.Rejected || !strings.Contains(fmt.Sprint(errs[1]), "Nats-Msg-Id") {
		t.Errorf("%v, of kind %q", errs[1], kind)
	}
	if n := streamOf(t, c, topic).State.Msgs; n != 2 {
		t.Errorf("the stream has %d messages", n)
	}
}

// The driver's own work for a message costs no allocation on the way out; nats.go makes none either.
func TestSendDoesNotAllocate(t *testing.T) {
	c, a := open(t, "embedded-nats:")
	p := producer(t, c, a, unique("alloc"), nil)
	b := driver.Batch{{Body: bytes.Repeat([]byte("x"), 100)}}
	ctx, done := context.Background(), func(int, error) {}
	if n := testing.AllocsPerRun(1000, func() { p.Send(ctx, b, done) }); n >= 1 {
		t.Errorf("%v allocations per message", n)
	}
}

func TestManyHeaderNames(t *testing.T) {
	h := nats.Header{}
	for i := range 1000 {
		if err := setHeaders(h, []driver.Header{{Name: fmt.Sprint("n", i), Value: []byte("v")}}); err != nil {
			t.Fatal(err)
		}
	}
	if len(h) > 100 {
		t.Errorf("%d names are kept", len(h))
	}
}
