package mongodb

import (
	"context"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver/redial"
)

// idle is where fetches wait that found nothing: one of them looks out for messages, and who finds one sends another one to look for more.
type idle struct {
	turn  chan struct{} // of who looks out
	found chan struct{}
	wake  chan struct{} // holds one token while there may be something
}

func newIdle() *idle {
	return &idle{turn: make(chan struct{}, 1), found: make(chan struct{}), wake: make(chan struct{}, 1)}
}

// more sends one who waits to look, where there is one.
func (w *idle) more() {
	select {
	case w.found <- struct{}{}:
	default:
	}
}

// signal says that there may be something.
func (w *idle) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// wait returns when there may be something.
func (w *idle) wait(ctx context.Context, lookOut func(ctx context.Context) error) error {
	select {
	case <-w.found:
		return nil
	case w.turn <- struct{}{}:
		defer func() { <-w.turn }()
		return lookOut(ctx)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// until waits for a signal, and no longer than so long.
func (w *idle) until(ctx context.Context, longest time.Duration) error {
	timer := time.NewTimer(longest)
	defer timer.Stop()
	select {
	case <-w.wake:
	case <-w.found:
	case <-timer.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// learn decides how the consumer learns of messages, and begins with that.
func (r *consumer) learn(ctx context.Context, o driver.Values) error {
	r.watch = func() {}
	how, interval := o.String("wait"), o.Duration("pollInterval")
	if how == "poll" || how == "auto" && !r.conn.monitor.cluster().changeStreams() {
		r.lookOut = func(ctx context.Context) error { return r.idle.until(ctx, interval) }
		return nil
	}
	r.lookOut = func(ctx context.Context) error {
		longest, err := r.next(ctx)
		if err != nil {
			return err
		}
		return r.idle.until(ctx, longest)
	}
	stream, err := r.changes(ctx)
	if err != nil {
		return err
	}
	watching, end := context.WithCancel(context.Background())
	r.watch = end
	r.loops.Go(func() { r.follow(watching, stream) })
	return nil
}

// arrivals are the changes after which there may be a message: one was inserted, or given back. They come without their messages.
var arrivals = mongo.Pipeline{
	{{Key: "$match", Value: bson.D{{Key: "$or", Value: bson.A{
		bson.D{{Key: "operationType", Value: bson.D{{Key: "$in", Value: bson.A{"insert", "replace"}}}}},
		bson.D{{Key: "operationType", Value: "update"}, {Key: "updateDescription.removedFields", Value: "lease"}},
	}}}}},
	{{Key: "$project", Value: bson.D{{Key: "_id", Value: 1}, {Key: "operationType", Value: 1}}}},
}

// changes opens a change stream, from now on.
func (r *consumer) changes(ctx context.Context) (*mongo.ChangeStream, error) {
	stream, err := r.leases.Watch(ctx, arrivals, options.ChangeStream().SetMaxAwaitTime(min(time.Second, r.conn.timeout/2)))
	return stream, r.conn.reason(ctx, err)
}

// follow has each change wake who looks out, and opens the stream again where it ended.
func (r *consumer) follow(ctx context.Context, stream *mongo.ChangeStream) {
	for ok := true; ok; r.idle.signal() {
		for stream.Next(ctx) {
			r.idle.signal()
		}
		err := r.conn.reason(ctx, stream.Err())
		r.shut(stream)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			r.in.Fail(err)
		}
		if !redial.Sleep(ctx, 1) { // a server may end each at once
			return
		}
		stream, ok = redial.Until(ctx, r.changes, r.in.Fail)
	}
}

// shut closes a change stream, whose cursor the server else has for some minutes, and does not wait for long.
func (r *consumer) shut(stream *mongo.ChangeStream) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = stream.Close(ctx)
}
