package drivertest

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

var lifecycle = []test{
	{"claims have their verbs", claimsHaveVerbs},
	{"close twice", closeTwice},
	{"close from many goroutines", closeConcurrently},
	{"close waits for what was sent", closeOutstanding},
	{"close races with send", closeRacesSend},
	{"close ends with its context", closeFrozen},
	{"send after close", sendAfterClose},
	{"receive after close", receiveAfterClose},
	{"close wakes receive", closeWakesReceive},
	{"receive ends with its context", receiveContext},
	{"receive goes on after a context ended", receiveResumes},
	{"no message is lost to a cancelled receive", cancelRacesArrival},
	{"a consumer that comes back goes on", reopen},
	{"a driver that only sends has no consumers", noConsumers},
	{"server unreachable", unreachable},
	{"server silent", silent},
	{"connectTimeout at a deaf server", deaf},
	{"no goroutine outlives close", goroutines},
}

// claimsHaveVerbs is of those verbs that are claimed by more than the interface itself.
func claimsHaveVerbs(t *testing.T, k *kit) {
	c := k.open(t)
	if _, ok := c.(driver.Admin); !ok && slices.ContainsFunc(k.d.Options, func(o driver.Option) bool { return o.Scope&driver.OnTopic != 0 }) {
		t.Error("there are options of topics, and the connection is no Admin, which creates them")
	}
	if _, ok := c.(driver.Backlogger); !ok && (k.f.BacklogEstimated || k.f.BacklogWhole || k.f.HeldUnseen) {
		t.Error("the features say what a backlog tells, and the connection is no Backlogger")
	}
	if _, ok := k.producer(t, c, k.topic(t, c)).Producer.(driver.Auditor); ok && !k.onlySends() {
		t.Error("the producer is an Auditor, which is for drivers that only send: what consumers receive is the account")
	}
}

func closeTwice(t *testing.T, k *kit) {
	c := k.open(t)
	topic := k.topic(t, c)
	for what, x := range map[string]closer{"producer": k.producer(t, c, topic), "consumer": k.consumer(t, c, topic)} {
		k.close(t, what, x)
		k.close(t, what, x)
	}
	other := k.open(t)
	k.close(t, "connection", other)
	k.close(t, "connection", other)
}

func closeConcurrently(t *testing.T, k *kit) {
	c := k.open(t)
	topic := k.topic(t, c)
	p, r, other := k.producer(t, c, topic), k.consumer(t, c, topic), k.open(t)
	var all sync.WaitGroup
	errs := make(chan error, 24)
	for range 8 {
		for _, x := range []closer{p, r, other} {
			all.Go(func() { errs <- x.Close(k.context(t)) })
		}
	}
	k.within(t, "one of several Close", all.Wait)
	close(errs)
	for err := range errs {
		if err != nil && !errors.Is(err, driver.ErrClosed) {
			t.Errorf("Close: %v", err)
		}
	}
}

// closeOutstanding has nothing wait between Send and Close, so an asynchronous driver has most of the batch outstanding.
func closeOutstanding(t *testing.T, k *kit) {
	c := k.open(t)
	topic := k.topic(t, c)
	r := k.consumer(t, c, topic)
	p := k.producer(t, c, topic)
	b := messages("outstanding", 1000)
	sent := p.hand(t, b)
	k.close(t, "producer", p)
	if sent.called() < len(b) {
		t.Errorf("Close returned with done called for %d of %d messages", sent.called(), len(b))
	}
	if errs := sent.failed(); len(errs) > 0 {
		t.Errorf("Close did not wait for %d of %d messages: %v", len(errs), len(b), errs[0])
	}
	same(t, "sent before Close", bodies(r.finish(t, sent.confirmed())), bodies(b))
}

func closeRacesSend(t *testing.T, k *kit) {
	c := k.open(t)
	topic := k.topic(t, c)
	for round := range 5 {
		p := k.producer(t, c, topic)
		var senders sync.WaitGroup
		started := make(chan struct{}, 4)
		var sent [4]*receipts
		for i := range sent {
			sent[i] = p.receipts(200)
			senders.Go(func() {
				b := messages("race", 200)
				started <- struct{}{}
				p.Send(k.context(t), b, sent[i].done)
			})
		}
		for range round { // close after none, one, ... of them has begun
			<-started
		}
		k.close(t, "producer", p)
		k.within(t, "Send beside Close", senders.Wait)
		for _, r := range sent {
			p.wait(t, r)
		}
	}
}

func closeFrozen(t *testing.T, k *kit) {
	url, freeze := k.freezer(t)
	c := k.openAt(t, url)
	p := k.producer(t, c, k.topic(t, k.open(t)))
	p.send(t, messages("before", 1))
	thaw := freeze()
	defer thaw()
	ctx, cancel := context.WithTimeout(context.Background(), k.Quiet)
	defer cancel()
	sent, back := p.handing(ctx, messages("frozen", 10))
	select { // so that Close comes after Send has handed over, or while it waits
	case <-back:
	case <-time.After(k.Quiet / 2):
	}
	k.within(t, "Close of the producer of a frozen server", func() { _ = p.Close(ctx) })
	k.within(t, "Send", func() { <-back })
	p.wait(t, sent)
	if n := sent.confirmed(); k.confirmed() && n > 0 {
		t.Errorf("%d messages were confirmed by a server that was frozen", n)
	}
}

func sendAfterClose(t *testing.T, k *kit) {
	c := k.open(t)
	p := k.producer(t, c, k.topic(t, c))
	k.close(t, "producer", p)
	if errs := p.try(t, messages("late", 3)); len(errs) != 3 || !k.all(errs, driver.Closed) {
		t.Errorf("each message sent after Close should fail with ErrClosed: %v", errs)
	}
}

func receiveAfterClose(t *testing.T, k *kit) {
	k.consumes(t)
	c := k.open(t)
	r := k.consumer(t, c, k.topic(t, c))
	k.close(t, "consumer", r)
	if _, err := r.receive(t, k.context(t), 1); !errors.Is(err, driver.ErrClosed) {
		t.Errorf("Receive after Close: %v, want ErrClosed", err)
	}
}

// closeWakesReceive cannot see that Receive waits; either order must end alike, and the pauses make both likely.
func closeWakesReceive(t *testing.T, k *kit) {
	k.consumes(t)
	c := k.open(t)
	topic := k.topic(t, c)
	for _, pause := range []time.Duration{0, time.Millisecond, 50 * time.Millisecond} {
		r := k.consumer(t, c, topic)
		result := make(chan error, 1)
		ctx := k.context(t)
		go func() {
			_, err := r.Receive(ctx, make(driver.Batch, 10))
			result <- err
		}()
		time.Sleep(pause)
		k.close(t, "consumer", r)
		k.within(t, "Receive, after Close,", func() {
			if err := <-result; !errors.Is(err, driver.ErrClosed) {
				result <- err
			}
		})
		select {
		case err := <-result:
			t.Errorf("Receive woken by Close: %v, want ErrClosed", err)
		default:
		}
	}
}

func receiveContext(t *testing.T, k *kit) {
	k.consumes(t)
	c := k.open(t)
	r := k.consumer(t, c, k.topic(t, c))
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	short, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	for _, ctx := range []context.Context{ended, short} {
		begin := time.Now()
		if _, err := r.receive(t, ctx, 10); !errors.Is(err, ctx.Err()) || err == nil {
			t.Errorf("Receive until the context ended: %v, want %v", err, ctx.Err())
		}
		if late := time.Since(begin); late > 50*time.Millisecond+k.Grace {
			t.Errorf("Receive returned after %v, its context was over after 50ms", late)
		}
	}
}

func receiveResumes(t *testing.T, k *kit) {
	k.consumes(t)
	c := k.open(t)
	topic := k.topic(t, c)
	r, p := k.consumer(t, c, topic), k.producer(t, c, topic)
	for range 2 {
		r.nothing(t, "nothing was sent")
		b := messages(unique(), 3)
		p.send(t, b)
		same(t, "sent after a cancelled Receive", bodies(r.finish(t, 3)), bodies(b))
	}
}

// cancelRacesArrival ends Receive's context about when a message comes: it must then be returned by this call or the next.
func cancelRacesArrival(t *testing.T, k *kit) {
	k.consumes(t)
	c := k.open(t)
	topic := k.topic(t, c)
	r, p := k.consumer(t, c, topic), k.producer(t, c, topic)
	b := messages("race", 100)
	var got driver.Batch
	for i := range b {
		sent := p.hand(t, b[i:i+1])
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(i)*20*time.Microsecond)
		some, err := r.receive(t, ctx, 10)
		cancel()
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Receive: %v", err)
		}
		got = append(got, some...)
		p.wait(t, sent)
	}
	got = append(got, r.take(t, len(b)-len(got))...)
	same(t, "received by calls that were cancelled", bodies(got), bodies(b))
}

func reopen(t *testing.T, k *kit) {
	claimed(t, k.kept() && k.shared() && k.f.Settle.Has(driver.Ack), "messages are kept for a consumer that left")
	c := k.open(t)
	topic := k.topic(t, c)
	p := k.producer(t, c, topic)
	first := k.consumer(t, c, topic)
	b := messages("kept", 20)
	p.send(t, b[:10])
	done := first.finish(t, 5)
	k.close(t, "consumer", first)
	p.send(t, b[10:])
	again := k.consumer(t, c, topic).finish(t, 15)
	same(t, "received before and after a pause", bodies(done, again), bodies(b))
}

func noConsumers(t *testing.T, k *kit) {
	if !k.onlySends() {
		t.Skip("consumers are claimed")
	}
	c := k.open(t)
	for _, start := range []driver.Start{driver.StartNew, driver.StartEarliest} {
		consumer, err := k.tryConsumer(t, c, driver.ConsumerConfig{Topic: k.topic(t, c), Prefetch: 1, Start: start, Options: k.options(t, driver.OnConsumer)})
		unsupported(t, "a consumer", err)
		if err == nil {
			k.close(t, "consumer", consumer)
		}
	}
}

// unreachable has a grace of its own: a client that counts attempts and not time must still be back soon.
func unreachable(t *testing.T, k *kit) {
	if k.host() == "" {
		notProven(t, "the URL has no single host and port")
	}
	k.mustNotOpen(t, k.at(closedPort(t)))
}

// silent connects to a port whose connections are accepted, by the kernel, and never answered.
func silent(t *testing.T, k *kit) { k.mustNotOpen(t, k.at(k.deafServer(t))) }

// deafServer accepts connections, and says nothing.
func (k *kit) deafServer(t *testing.T) (host string) {
	t.Helper()
	if k.host() == "" {
		notProven(t, "the URL has no single host and port")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String()
}

// deaf lets no context end: what gives up is the driver. The time is the option's, whatever other options say of answers.
func deaf(t *testing.T, k *kit) {
	_, known := k.d.Option("connectTimeout")
	claimed(t, known, "the option connectTimeout")
	const timeout = 200 * time.Millisecond
	begin := time.Now()
	c, err := k.dial(t, context.Background(), withOption(k.at(k.deafServer(t)), "connectTimeout", timeout.String()))
	took := time.Since(begin)
	if err == nil {
		k.close(t, "connection", c)
		t.Fatal("Open succeeded without a server")
	}
	if kind := k.d.KindOf(err); kind != driver.Timeout {
		t.Errorf("a server that says nothing: kind %s, want timeout: %v", kind, err)
	}
	if took < timeout || took > timeout+4*k.Grace { // who is there is asked in two ways, each for a second
		t.Errorf("a server that says nothing was given up after %v, and connectTimeout was %v", took, timeout)
	}
}

func (k *kit) mustNotOpen(t *testing.T, url string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	c, err := k.dial(t, ctx, url)
	if err == nil {
		k.close(t, "connection", c)
		t.Fatal("Open succeeded without a server")
	}
	if kind := k.d.KindOf(err); kind != driver.Disconnected && kind != driver.Timeout {
		t.Errorf("Open without a server: kind %s, want disconnected or timeout: %v", kind, err)
	}
}

// goroutines looks at a second life: what a client library starts once for the whole process is there after the first.
func goroutines(t *testing.T, k *kit) {
	life := func(t *testing.T) {
		c := k.open(t)
		topic := k.topic(t, c)
		r, p := k.consumer(t, c, topic), k.producer(t, c, topic)
		p.send(t, messages("life", 10))
		r.finish(t, 10)
	}
	t.Run("first life", life)
	before := goleak.IgnoreCurrent()
	t.Run("second life", life)
	var leak error
	for deadline := time.Now().Add(k.Patience); time.Now().Before(deadline); {
		if leak = goleak.Find(before); leak == nil { // waits a moment by itself
			return
		}
	}
	t.Error(leak)
}
