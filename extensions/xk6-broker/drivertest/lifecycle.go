package drivertest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

var lifecycle = []test{
	// Tests the verbs that more than the interface itself claims.
	{"claims have their verbs", func(k *kit) {
		f := k.flow()
		_, admin := f.conn.(driver.Admin)
		_, backlogger := f.conn.(driver.Backlogger)
		_, auditor := f.p.Producer.(driver.Auditor)
		onTopic := func(o driver.Option) bool { return o.Scope&driver.OnTopic != 0 }
		k.check(admin || !slices.ContainsFunc(k.d.Options, onTopic),
			"the driver has options of topics, but its connection is no Admin")
		k.check(backlogger || !k.f.BacklogWhole && !k.f.HeldUnseen,
			"the features describe a backlog, but the connection is no Backlogger")
		k.check(!auditor || k.onlySends(),
			"the producer is an Auditor, but the driver has consumers, whose messages are the account")
	}},
	{"close twice", func(k *kit) {
		f := k.flow()
		for _, c := range []closer{f.p, f.r, k.open()} {
			k.close(c)
			k.close(c)
		}
	}},
	{"close from many goroutines", func(k *kit) {
		f := k.flow()
		closers := []closer{f.p, f.r, k.open()}
		var all sync.WaitGroup
		for range 8 {
			for _, c := range closers {
				all.Go(func() { k.close(c) })
			}
		}
		all.Wait()
	}},
	// Right after Send most of the batch is outstanding.
	{"close waits for what was sent", func(k *kit) {
		f := k.flow()
		b := k.messages("outstanding", 1000)
		sent := f.p.hand(b)
		k.close(f.p)
		calls, errs := sent.state()
		k.must(calls == len(b) && len(errs) == 0, "Close returned after %d of %d messages: %v", calls, len(b), errs)
		f.r.finishes(b)
	}},
	// The pauses make several orders of Send and Close likely.
	{"close races with send", func(k *kit) {
		c := k.open()
		topic := k.topic(c, 1)
		for round := range 5 {
			p := k.producer(c, topic)
			for range 4 {
				p.start(k.Context(), k.messages("race", 200))
			}
			time.Sleep(time.Duration(round) * 50 * time.Microsecond)
			k.close(p)
			for _, r := range p.sent {
				r.wait()
			}
		}
	}},
	{"close ends with its context", func(k *kit) {
		url, freeze := k.freezer()
		p := k.lone(url)
		p.send(k.messages("before", 1))
		freeze()
		ctx := k.limit(quiet())
		sent := p.start(ctx, k.messages("frozen", 10))
		select { // Send has returned, or waits
		case <-sent.returned:
		case <-time.After(quiet() / 2):
		}
		_ = p.Close(ctx)
		sent.wait()
		p.unconfirmed(sent)
	}},
	{"send after close", func(k *kit) {
		p := k.lone(k.URL)
		k.close(p)
		errs := p.hand(k.messages("late", 3)).wait()
		k.check(len(errs) == 3, "%d of 3 messages failed after Close", len(errs))
		for _, err := range errs {
			k.kind(err, driver.Closed)
		}
	}},
	{"receive after close", func(k *kit) {
		f := k.consuming()
		k.close(f.r)
		_, err := f.r.receive(k.Context(), 1)
		k.is(err, driver.ErrClosed)
	}},
	// The pauses make both orders of Receive and Close likely.
	{"close wakes receive", func(k *kit) {
		f := k.consuming()
		for _, pause := range []time.Duration{0, time.Millisecond, 50 * time.Millisecond} {
			r := k.consumer(f.conn, f.topic)
			result := make(chan error, 1)
			go func() {
				_, err := r.Receive(k.Context(), make(driver.Batch, 10))
				result <- err
			}()
			time.Sleep(pause)
			k.close(r)
			k.is(<-result, driver.ErrClosed)
		}
	}},
	{"receive ends with its context", func(k *kit) {
		f := k.consuming()
		ended, cancel := context.WithCancel(k.Context())
		cancel()
		for _, ctx := range []context.Context{ended, k.limit(50 * time.Millisecond)} {
			begin := time.Now()
			_, err := f.r.receive(ctx, 10)
			k.is(err, ctx.Err())
			late := time.Since(begin) - 50*time.Millisecond
			k.check(late <= grace, "Receive returned %v after its context had ended", late)
		}
	}},
	{"receive goes on after a context ended", func(k *kit) {
		f := k.consuming()
		for _, name := range []string{"first", "second"} {
			f.r.nothing(quiet())
			f.r.finishes(f.send(name, 3))
		}
	}},
	// Ends the context of Receive about when a message comes. This call or the next
	// must return the message.
	{"no message is lost to a cancelled receive", func(k *kit) {
		f := k.consuming()
		b := k.messages("race", 100)
		var got driver.Batch
		for i := range b {
			sent := f.p.hand(b[i : i+1])
			some, err := f.r.receive(k.limit(time.Duration(i)*20*time.Microsecond), 10)
			k.must(err == nil || errors.Is(err, context.DeadlineExceeded), "Receive: %v", err)
			got = append(got, some...)
			f.p.succeed(sent)
		}
		got = append(got, f.r.take(len(b)-len(got))...)
		k.same(got, b)
	}},
	{"a consumer that comes back goes on", func(k *kit) {
		k.claims(k.kept() && k.shared() && k.acks(), "messages are kept for a consumer that left")
		f := k.flow()
		first := f.send("first", 10)
		got := f.r.finish(5)
		k.close(f.r)
		second := f.send("second", 10)
		got = append(got, k.consumer(f.conn, f.topic).finish(15)...)
		k.same(got, append(first, second...))
	}},
	{"a driver that only sends has no consumers", func(k *kit) {
		k.claims(k.onlySends(), "no consumers")
		c := k.open()
		config := k.config(k.topic(c, 1), "")
		for _, config.Start = range []driver.Start{driver.StartNew, driver.StartEarliest} {
			k.refused(c, config)
		}
	}},
	{"server unreachable", func(k *kit) {
		k.kind(k.openError(k.limit(time.Second), k.at(k.closedPort())), driver.Disconnected, driver.Timeout)
	}},
	{"server silent", func(k *kit) {
		url := k.at(k.listen().Addr().String())
		k.kind(k.openError(k.limit(time.Second), url), driver.Disconnected, driver.Timeout)
	}},
	// No context ends: the driver itself gives up after connectTimeout. It may then probe the
	// server in two ways, each for a second.
	{"connectTimeout at a deaf server", func(k *kit) {
		_, ok := k.d.Option("connectTimeout")
		k.claims(ok, "the option connectTimeout")
		const timeout = 200 * time.Millisecond
		url := withOption(k.at(k.listen().Addr().String()), "connectTimeout", timeout.String())
		begin := time.Now()
		k.kind(k.openError(k.Context(), url), driver.Timeout)
		took := time.Since(begin)
		k.check(took >= timeout && took <= timeout+4*grace, "Open took %v, and connectTimeout was %v", took, timeout)
	}},
	// Tests a second life, because a client library may start goroutines once per process.
	{"no goroutine outlives close", func(k *kit) {
		life := func(t *testing.T) {
			f := k.with(t).flow()
			f.r.finishes(f.send("life", 10))
		}
		k.Run("first life", life)
		before := goleak.IgnoreCurrent()
		k.Run("second life", life)
		var leak error
		k.eventually(func() bool {
			leak = goleak.Find(before)
			return leak == nil
		})
		k.noError("goroutines", leak)
	}},
}
