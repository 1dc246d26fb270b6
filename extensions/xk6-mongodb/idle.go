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

// idle holds the fetches that found nothing. One of them waits for messages; a fetch that finds one
// wakes another to look for more.
type idle struct {
	turn  chan struct{} // of the fetch that waits
	found chan struct{}
	wake  chan struct{} // holds one token while there may be a message
}

func newIdle() *idle {
	return &idle{turn: make(chan struct{}, 1), found: make(chan struct{}), wake: make(chan struct{}, 1)}
}

// more wakes one idle fetch, if there is one.
func (w *idle) more() {
	select {
	case w.found <- struct{}{}:
	default:
	}
}

// signal wakes the waiting fetch.
func (w *idle) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// wait returns when there may be a message.
func (w *idle) wait(ctx context.Context, await func(ctx context.Context) error) error {
	select {
	case <-w.found:
		return nil
	case w.turn <- struct{}{}:
		defer func() { <-w.turn }()
		return await(ctx)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// until waits for a signal, at most so long.
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

// observe starts to poll or to follow a change stream, as the option wait asks.
func (r *consumer) observe(ctx context.Context, o driver.Values) error {
	how, interval := o.String("wait"), o.Duration("pollInterval")
	if how == "poll" || how == "auto" && !r.conn.monitor.cluster().changeStreams() {
		r.await = func(ctx context.Context) error { return r.idle.until(ctx, interval) }
		return nil
	}
	r.await = func(ctx context.Context) error {
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
	r.Go(func(open context.Context) { r.follow(open, stream) })
	return nil
}

// arrivals selects the changes after which there may be a message, without the message: one was
// inserted or given back.
var arrivals = mongo.Pipeline{
	{{Key: "$match", Value: bson.D{{Key: "$or", Value: bson.A{
		bson.D{{Key: "operationType", Value: bson.D{{Key: "$in", Value: bson.A{"insert", "replace"}}}}},
		bson.D{{Key: "operationType", Value: "update"}, {Key: "updateDescription.removedFields", Value: "lease"}},
	}}}}},
	{{Key: "$project", Value: bson.D{{Key: "_id", Value: 1}, {Key: "operationType", Value: 1}}}},
}

// changes opens a change stream that begins now.
func (r *consumer) changes(ctx context.Context) (*mongo.ChangeStream, error) {
	wait := min(time.Second, r.conn.timeout/2)
	stream, err := r.leases.Watch(ctx, arrivals, options.ChangeStream().SetMaxAwaitTime(wait))
	return stream, r.conn.reason(ctx, err)
}

// follow wakes the waiting fetch at each change, and opens the stream again after it ended.
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
			r.Fail(err)
		}
		if !redial.Sleep(ctx, 1) { // a server may end each stream at once
			return
		}
		stream, ok = redial.Until(ctx, r.changes, r.Fail)
	}
}

// shut closes a change stream within a second. The server would keep its cursor for minutes.
func (r *consumer) shut(stream *mongo.ChangeStream) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = stream.Close(ctx)
}
