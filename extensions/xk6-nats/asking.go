package nats

import (
	"context"

	"github.com/nats-io/nats.go"
)

// asking is a question to JetStream that has no answer yet. One that the server refuses never gets any: the server only
// complains, and names the subject that it refuses.
type asking struct {
	api    string // prefix of the subjects that questions go to
	refuse context.CancelCauseFunc
}

// ask gives ctx to what asks JetStream. It ends with a refusal, too, which done puts in place of the error that follows.
func (c streamConn) ask(ctx context.Context) (context.Context, func(*error)) {
	ctx, refuse := context.WithCancelCause(ctx)
	w := &asking{c.api, refuse}
	c.watch(w)
	if why := c.mute.Load(); why != nil {
		refuse(*why)
	}
	return ctx, func(err *error) {
		c.unwatch(w)
		if why := context.Cause(ctx); *err != nil && isRefusal(why) {
			*err = why
		}
		refuse(nil)
	}
}

func (a *asking) lost(error) {}
func (a *asking) regained()  {}

func (a *asking) failed(_ *nats.Subscription, err error) {
	if denies(err, "Publish", a.api+anything) || denies(err, "Subscription", nats.InboxPrefix+anything) {
		a.refuse(err)
	}
}
