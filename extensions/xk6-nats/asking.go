package nats

import (
	"context"

	"github.com/nats-io/nats.go"
)

// asking is a request to JetStream without an answer. A refused request has none: the server
// reports the refused subject only.
type asking struct {
	api    string // prefix of the subjects that questions go to
	refuse context.CancelCauseFunc
}

// ask returns a context for a request to JetStream, which also ends with a refusal, and a function
// that puts the refusal in the place of the error.
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
