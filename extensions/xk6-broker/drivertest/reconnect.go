package drivertest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

var reconnect = []test{
	{"producer and consumer work again", worksAgain},
	{"nothing confirmed is lost", confirmedSurvives},
	{"close while the server is away", closeAway},
	{"a server that hung goes on", hung},
}

// deliver sends until a message of the name is confirmed and has been received, through any error on the way: that is
// what "works again" means.
func (k *kit) deliver(t *testing.T, p *sender, r *receiver, name string) {
	t.Helper()
	var last error
	deadline := time.Now().Add(k.Patience)
	for i := 0; time.Now().Before(deadline); i++ {
		body := fmt.Sprintf("%s-%d", name, i)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		sent, back := p.handing(ctx, driver.Batch{{Body: []byte(body)}})
		select {
		case <-sent.all:
		case <-ctx.Done():
		}
		if errs := sent.failed(); len(errs) > 0 {
			last = fmt.Errorf("send: %w", errs[0])
			<-ctx.Done() // fails at once for as long as the client reconnects
		}
		cancel()
		k.within(t, "Send", func() { <-back })
		got, err := k.arrives(t, r, body)
		if got {
			return
		}
		if err != nil {
			last = fmt.Errorf("receive: %w", err)
		}
	}
	t.Fatalf("nothing sent after the connection broke arrived within %v: %v", k.Patience, last)
}

// arrives receives for a second, through any error but ErrClosed, until a body comes.
func (k *kit) arrives(t *testing.T, r *receiver, body string) (got bool, last error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	for ctx.Err() == nil {
		b, err := r.receive(t, ctx, 100)
		if errors.Is(err, driver.ErrClosed) {
			t.Fatalf("Receive: %v, and nobody closed", err)
		}
		if err != nil {
			if ctx.Err() == nil {
				last = err
				time.Sleep(5 * time.Millisecond) // an error that comes at once must not spin
			}
			continue
		}
		k.acknowledge(r, b)
		for _, m := range b {
			got = got || string(m.Body) == body
		}
		if got {
			break
		}
	}
	return got, last
}

// acknowledge may fail: the connection on which these came may be gone.
func (k *kit) acknowledge(r *receiver, b driver.Batch) {
	if k.f.Settle.Has(driver.Ack) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = r.Settle(ctx, b, driver.Ack)
	}
}

func worksAgain(t *testing.T, k *kit) {
	url, cut := k.cutter(t)
	c := k.openAt(t, url)
	topic := k.topic(t, k.open(t))
	r, p := k.consumer(t, c, topic), k.producer(t, c, topic)
	k.deliver(t, p, r, "before")
	for i := range 2 {
		cut()
		k.deliver(t, p, r, fmt.Sprint("after", i))
	}
}

// confirmedSurvives breaks the producer's connection three times under load. The consumer has a connection of its own, so
// that what is missing in the end was lost by the producer or the broker.
func confirmedSurvives(t *testing.T, k *kit) {
	url, cut := k.cutter(t)
	direct := k.open(t)
	topic := k.topic(t, direct)
	if k.Cut != nil {
		direct = nil // broken too, there is no other way to the server
	}
	c := k.openAt(t, url)
	if direct == nil {
		direct = c
	}
	r, p := k.consumer(t, direct, topic), k.producer(t, c, topic)
	k.deliver(t, p, r, "before")
	const rounds, each = 3, 300
	var sent []*receipts
	var want []driver.Batch
	for round := range rounds {
		b := messages(fmt.Sprint("round", round), each)
		for i := range b {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			r, back := p.handing(ctx, b[i:i+1])
			sent = append(sent, r)
			switch i {
			case each / 3: // some must be through before the cut, and some outstanding
				p.wait(t, sent[round*each])
			case each / 2:
				cut()
			}
			k.within(t, "Send", func() { <-back })
			cancel()
		}
		want = append(want, b)
		k.deliver(t, p, r, fmt.Sprint("after", round))
	}
	k.close(t, "producer", p) // after which every Done has been called
	claimed(t, k.kept() && k.confirmed(), "delivery at least once of what was confirmed")
	missing, confirmed := map[string]bool{}, 0
	for i, s := range sent {
		if body := string(want[i/each][i%each].Body); s.confirmed() > 0 {
			confirmed++
			missing[body] = true
		}
	}
	if confirmed == 0 {
		t.Fatal("no message was confirmed")
	}
	lost := func() bool {
		for body := range missing {
			if r.seen[body] {
				delete(missing, body)
			}
		}
		return len(missing) > 0
	}
	for deadline := time.Now().Add(k.Patience); lost() && time.Now().Before(deadline); {
		_, _ = k.arrives(t, r, "")
	}
	if len(missing) > 0 {
		t.Errorf("%d of %d messages that were confirmed are lost", len(missing), confirmed)
	}
}

func closeAway(t *testing.T, k *kit) {
	url, p := k.proxied(t)
	topic := k.topic(t, k.open(t))
	c, err := k.dial(t, k.context(t), url)
	if err != nil {
		t.Fatal(err)
	}
	s, r := k.producer(t, c, topic), k.consumer(t, c, topic)
	k.deliver(t, s, r, "before")
	p.Refuse(true)
	p.Cut()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	sent, back := s.handing(ctx, messages("away", 5))
	for what, x := range map[string]closer{"producer": s, "consumer": r, "connection": c} {
		k.within(t, "Close of the "+what+" while the server is away", func() { _ = x.Close(ctx) })
	}
	k.within(t, "Send", func() { <-back })
	s.wait(t, sent)
	if n := sent.confirmed(); n > 0 && k.confirmed() {
		t.Errorf("%d messages were confirmed by a server that was away", n)
	}
}

func hung(t *testing.T, k *kit) {
	url, freeze := k.freezer(t)
	c := k.openAt(t, url)
	topic := k.topic(t, k.open(t))
	r, p := k.consumer(t, c, topic), k.producer(t, c, topic)
	k.deliver(t, p, r, "before")
	thaw := freeze()
	ctx, cancel := context.WithTimeout(context.Background(), k.Quiet)
	defer cancel()
	sent, back := p.handing(context.Background(), messages("hung", 5))
	if b, err := r.receive(t, ctx, 10); err == nil {
		t.Errorf("%d messages came from a server that was frozen", len(b))
	}
	thaw()
	k.within(t, "Send", func() { <-back })
	p.wait(t, sent)
	k.deliver(t, p, r, "after")
}
