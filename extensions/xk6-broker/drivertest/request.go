package drivertest

import (
	"errors"
	"fmt"
	"sync"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

var request = []test{
	{"the verbs are there as claimed", verbsThere},
	{"each request gets its reply", replies},
	{"a request ends with its context", requestContext},
}

// verbs returns the two ends of a conversation, nil if the driver does not have them.
func (f *flow) verbs() (driver.Requester, driver.Replier) {
	requester, _ := f.p.Producer.(driver.Requester)
	replier, _ := f.r.Consumer.(driver.Replier)
	return requester, replier
}

func verbsThere(k *kit) {
	requester, replier := k.flow().verbs()
	if (requester != nil) != k.f.Requests || (replier != nil) != k.f.Requests {
		k.Errorf("Requests is claimed: %t; the producer can request: %t; the consumer can reply: %t",
			k.f.Requests, requester != nil, replier != nil)
	}
}

func replies(k *kit) {
	f := k.flow()
	requester, replier := f.verbs()
	k.claims(k.f.Requests && requester != nil && replier != nil, "request and reply")
	const n = 50
	var requests, answers sync.WaitGroup
	for i := range n {
		requests.Go(func() {
			body := fmt.Sprint("request ", i)
			reply, err := requester.Request(k.Context(), driver.Message{Body: []byte(body)})
			if want := "reply to " + body; err != nil || string(reply.Body) != want {
				k.Errorf("Request: %q, %v; want %q", reply.Body, err, want)
			}
		})
	}
	answers.Go(func() {
		for got := 0; got < n; {
			count, err := f.answer(replier)
			if err != nil {
				k.Errorf("after %d requests: %v", got, err)
				return
			}
			got += count
		}
	})
	requests.Wait()
	answers.Wait()
}

// answer receives requests once, replies to them and acknowledges them.
func (f *flow) answer(replier driver.Replier) (int, error) {
	ctx := f.kit.Context()
	b := make(driver.Batch, 10)
	n, err := f.r.Receive(ctx, b)
	if err != nil {
		return 0, err
	}
	for _, m := range b[:n] {
		reply := driver.Message{Body: append([]byte("reply to "), m.Body...)}
		err = errors.Join(err, replier.Reply(ctx, m, reply))
	}
	if f.kit.acks() {
		err = errors.Join(err, f.r.Settle(ctx, b[:n], driver.Ack))
	}
	return n, err
}

func requestContext(k *kit) {
	requester, _ := k.flow().verbs()
	k.claims(k.f.Requests && requester != nil, "request and reply")
	ctx := k.limit(quiet())
	_, _ = requester.Request(ctx, driver.Message{Body: []byte("without a reply")})
	if ctx.Err() == nil {
		k.Error("Request returned without a reply and before its context ended")
	}
}
