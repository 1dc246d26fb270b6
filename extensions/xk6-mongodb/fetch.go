package mongodb

import (
	"context"
	"errors"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// oldest is the order of the index: the message that is due the longest comes first.
var oldest = bson.D{{Key: "nextDelivery", Value: 1}}

// fetch waits for a message and leases it.
func (r *consumer) fetch(open context.Context, _ int) ([]*delivery, error) {
	for open.Err() == nil {
		d, err := r.take()
		switch {
		case err != nil:
			return nil, err
		case d == nil:
			if err := r.idle.wait(open, r.await); err != nil {
				return nil, err
			}
		case r.most > 0 && d.Message.Attempt > r.most:
			r.idle.more()
			if _, err := r.end(r.Fetching(), []*delivery{d}, driver.Reject); err != nil {
				return nil, err
			}
		default:
			r.idle.more()
			return []*delivery{d}, nil
		}
	}
	return nil, open.Err()
}

// take leases one message, or returns nil. If the answer is lost, the message waits for the end of
// the lease.
func (r *consumer) take() (*delivery, error) {
	now := r.conn.now()
	until := bson.NewDateTimeFromTime(now.Add(r.time))
	token := bson.NewObjectID()
	raw, err := r.leases.FindOneAndUpdate(r.Fetching(),
		bson.D{{Key: "nextDelivery", Value: bson.D{{Key: "$lte", Value: bson.NewDateTimeFromTime(now)}}}},
		bson.D{
			{Key: "$set", Value: bson.D{{Key: "nextDelivery", Value: until}, {Key: "lease", Value: token}}},
			{Key: "$inc", Value: bson.D{{Key: "attempts", Value: 1}}},
		},
		options.FindOneAndUpdate().SetSort(oldest).SetReturnDocument(options.After),
	).Raw()
	received := driver.Now()
	if errors.Is(err, mongo.ErrNoDocuments) {
		return nil, nil // an empty topic is not an error
	}
	if err != nil {
		return nil, r.conn.reason(r.Fetching(), err)
	}
	d := &delivery{Handle: document{token: token}}
	d.Message.Topic, d.Message.Received = r.topic, received
	return d, decode(raw, d)
}

// next returns the time until the next lease or delay ends.
func (r *consumer) next(ctx context.Context) (time.Duration, error) {
	fields := bson.D{{Key: "_id", Value: 0}, {Key: "nextDelivery", Value: 1}}
	raw, err := r.leases.FindOne(ctx, bson.D{}, options.FindOne().SetSort(oldest).SetProjection(fields)).Raw()
	if errors.Is(err, mongo.ErrNoDocuments) {
		return r.time, nil
	}
	if err != nil {
		return 0, r.conn.reason(ctx, err)
	}
	at, ok := raw.Lookup("nextDelivery").TimeOK()
	if !ok { // another program's document, which is never delivered
		return r.time, nil
	}
	return min(r.time, max(at.Sub(r.conn.now()), time.Millisecond)), nil
}
