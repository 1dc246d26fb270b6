package drivertest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

var reconnect = []test{
	{"producer and consumer work again", func(k *kit) {
		url, cut := k.cutter()
		f := k.flowAt(url, 1)
		f.deliver("before")
		for i := range 2 {
			cut()
			f.deliver(fmt.Sprint("after", i))
		}
	}},
	{"nothing confirmed is lost", confirmedSurvives},
	{"close while the server is away", func(k *kit) {
		url, proxy := k.proxied()
		f := k.flowAt(url, 1)
		f.deliver("before")
		proxy.Refuse(true)
		proxy.Cut()
		ctx := k.limit(time.Second)
		sent := f.p.start(ctx, k.messages("away", 5))
		for _, c := range []closer{f.p, f.r, f.conn} {
			_ = c.Close(ctx)
		}
		sent.wait()
		f.p.unconfirmed(sent)
	}},
	{"a server that hung goes on", func(k *kit) {
		url, freeze := k.freezer()
		f := k.flowAt(url, 1)
		f.deliver("before")
		thaw := freeze()
		sent := f.p.start(context.Background(), k.messages("hung", 5))
		b, err := f.r.receive(k.limit(quiet()), 10)
		k.check(err != nil, "%d messages came from a frozen server", len(b))
		thaw()
		sent.wait()
		f.deliver("after")
	}},
}

// deliver sends until a message has been received, through any error on the way. This defines
// that a flow works.
func (f *flow) deliver(name string) {
	f.kit.Helper()
	var last error
	n := 0
	delivered := f.kit.eventually(func() bool {
		b := f.kit.messages(fmt.Sprint(name, n), 1)
		n++
		ctx := f.kit.limit(time.Second)
		sent := f.p.start(ctx, b)
		select {
		case <-sent.all:
		case <-ctx.Done():
		}
		if _, errs := sent.state(); len(errs) > 0 {
			last = errs[0]
			<-ctx.Done() // a client that reconnects fails at once
		}
		<-sent.returned
		if err := f.arrives(string(b[0].Body)); err != nil {
			last = err
		}
		return f.r.seen[string(b[0].Body)]
	})
	f.kit.must(delivered, "no message sent after the connection broke arrived within %v: %v", f.kit.Timeout, last)
}

// arrives receives for a second, through any error but ErrClosed, until a body comes. It returns
// the last error of Receive.
func (f *flow) arrives(body string) (last error) {
	ctx := f.kit.limit(time.Second)
	for ctx.Err() == nil && !f.r.seen[body] {
		b, err := f.r.receive(ctx, 100)
		f.kit.must(!errors.Is(err, driver.ErrClosed), "Receive: %v, but the consumer is open", err)
		switch {
		case err == nil && f.kit.acks():
			_ = f.r.Settle(f.kit.limit(time.Second), b, driver.Ack) // the connection of b may be gone
		case err != nil && ctx.Err() == nil:
			last = err
			time.Sleep(5 * time.Millisecond) // do not spin
		}
	}
	return last
}

// confirmedSurvives breaks the producer's connection three times under load. The consumer has its
// own connection, if Cut leaves it alone, so that missing messages were lost by the producer or
// the broker.
func confirmedSurvives(k *kit) {
	url, cut := k.cutter()
	f := k.flow()
	f.p = k.producer(k.openAt(url), f.topic)
	f.deliver("before")
	const rounds, each = 3, 300
	missing := map[string]bool{}
	for round := range rounds {
		b := k.messages(fmt.Sprint("round", round), each)
		sent := f.interrupted(b, cut)
		f.deliver(fmt.Sprint("after", round))
		for i, r := range sent {
			r.wait()
			if r.confirmed() > 0 {
				missing[string(b[i].Body)] = true
			}
		}
	}
	k.claims(k.kept() && k.confirmed(), "delivery at least once of confirmed messages")
	confirmed := len(missing)
	k.must(confirmed > 0, "no message was confirmed")
	k.eventually(func() bool {
		maps.DeleteFunc(missing, func(body string, _ bool) bool { return f.r.seen[body] })
		if len(missing) > 0 {
			_ = f.arrives("")
		}
		return len(missing) == 0
	})
	k.check(len(missing) == 0, "%d of %d confirmed messages are lost", len(missing), confirmed)
}

// interrupted sends messages one by one and breaks the connection in the middle. A third of them
// is confirmed by then, and some are outstanding.
func (f *flow) interrupted(b driver.Batch, cut func()) (sent []*receipts) {
	for i := range b {
		sent = append(sent, f.p.start(f.kit.limit(time.Second), b[i:i+1]))
		switch i {
		case len(b) / 3:
			<-sent[0].all
		case len(b) / 2:
			cut()
		}
		<-sent[i].returned
	}
	return sent
}
