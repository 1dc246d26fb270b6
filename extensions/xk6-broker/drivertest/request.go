package drivertest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

var request = []test{
	{"the verbs are there as claimed", verbsThere},
	{"each request gets its reply", replies},
	{"a request ends with its context", requestContext},
}

// verbs are the two ends of a conversation, where the driver has them.
func (k *kit) verbs(t *testing.T) (requester driver.Requester, r *receiver, replier driver.Replier) {
	t.Helper()
	_, _, p, r := k.flow(t)
	requester, _ = p.Producer.(driver.Requester)
	replier, _ = r.Consumer.(driver.Replier)
	return requester, r, replier
}

func verbsThere(t *testing.T, k *kit) {
	requester, _, replier := k.verbs(t)
	if (requester != nil) != k.f.Requests || (replier != nil) != k.f.Requests {
		t.Errorf("Requests is claimed: %t; the producer can request: %t; the consumer can reply: %t",
			k.f.Requests, requester != nil, replier != nil)
	}
}

func replies(t *testing.T, k *kit) {
	requester, r, replier := k.verbs(t)
	claimed(t, k.f.Requests && requester != nil && replier != nil, "request and reply")
	const n = 50
	ctx := k.context(t)
	errs := make(chan error, 2*n)
	var requests, answers sync.WaitGroup
	for i := range n {
		requests.Go(func() {
			body := fmt.Sprint("request ", i)
			reply, err := requester.Request(ctx, driver.Message{Body: []byte(body)})
			if want := "reply to " + body; err == nil && string(reply.Body) != want {
				err = fmt.Errorf("%q, want %q", reply.Body, want)
			}
			errs <- err
		})
	}
	answers.Go(func() {
		for got := 0; got < n; {
			b := make(driver.Batch, 10)
			count, err := r.Receive(ctx, b)
			if err != nil {
				errs <- err
				return
			}
			for _, m := range b[:count] {
				err = errors.Join(err, replier.Reply(ctx, m, driver.Message{Body: append([]byte("reply to "), m.Body...)}))
			}
			if k.f.Settle.Has(driver.Ack) {
				err = errors.Join(err, r.Settle(ctx, b[:count], driver.Ack))
			}
			errs <- err
			got += count
		}
	})
	k.within(t, "Request", requests.Wait)
	k.within(t, "Reply", answers.Wait)
	close(errs)
	for err := range errs {
		if err != nil {
			t.Error(err)
		}
	}
}

func requestContext(t *testing.T, k *kit) {
	requester, _, _ := k.verbs(t)
	claimed(t, k.f.Requests && requester != nil, "request and reply")
	ctx, cancel := context.WithTimeout(context.Background(), k.Quiet)
	defer cancel()
	k.within(t, "Request", func() { _, _ = requester.Request(ctx, driver.Message{Body: []byte("nobody replies")}) })
	if ctx.Err() == nil {
		t.Error("Request returned before its context ended, and nobody had replied")
	}
}
