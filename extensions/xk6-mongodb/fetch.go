package mongodb

import (
	"context"
	"errors"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/topology"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// oldest is the order of the index: what may be delivered longest comes first.
var oldest = bson.D{{Key: "nextDelivery", Value: 1}}

// fetch waits for a message and leases it, for [inbox.Inbox.Poll]. Its context ends the waiting, and not the leasing.
func (r *consumer) fetch(ctx context.Context, _ int) ([]*delivery, error) {
	for ctx.Err() == nil {
		if err := r.reclaim(); err != nil {
			return nil, err
		}
		d, err := r.take()
		switch {
		case err != nil:
			return nil, err
		case d == nil:
			if err := r.idle.wait(ctx, r.lookOut); err != nil {
				return nil, err
			}
		case r.most > 0 && d.message.Attempt > r.most:
			r.idle.more()
			if err := r.giveUp(d); err != nil {
				return nil, err
			}
		default:
			r.idle.more()
			return []*delivery{d}, nil
		}
	}
	return nil, ctx.Err()
}

// take leases one message; there may be none.
func (r *consumer) take() (*delivery, error) {
	now := r.conn.now()
	d := &delivery{token: bson.NewObjectID()}
	until := bson.NewDateTimeFromTime(now.Add(r.lease))
	raw, err := r.leases.FindOneAndUpdate(r.work,
		bson.D{{Key: "nextDelivery", Value: bson.D{{Key: "$lte", Value: bson.NewDateTimeFromTime(now)}}}},
		bson.D{
			{Key: "$set", Value: bson.D{{Key: "nextDelivery", Value: until}, {Key: "lease", Value: d.token}}},
			{Key: "$inc", Value: bson.D{{Key: "attempts", Value: 1}}},
		},
		options.FindOneAndUpdate().SetSort(oldest).SetReturnDocument(options.After),
	).Raw()
	d.message.Received = driver.Now()
	if errors.Is(err, mongo.ErrNoDocuments) {
		return nil, nil // that there is none is no error
	}
	if err != nil {
		if !errors.As(err, new(topology.ServerSelectionError)) {
			r.mu.Lock()
			r.lost = append(r.lost, lost{d.token, until})
			r.mu.Unlock()
		}
		return nil, r.conn.reason(r.work, err)
	}
	d.message.Topic = r.topic
	return d, d.decode(raw)
}

// lost is a lease that the server may have given and nobody has: the answer was lost on the way.
type lost struct {
	token bson.ObjectID
	until bson.DateTime
}

// reclaim gives back what was lost, as if it had not been delivered. The index finds it by the end of its lease.
func (r *consumer) reclaim() error {
	r.mu.Lock()
	all := r.lost
	r.lost = nil
	r.mu.Unlock()
	if len(all) == 0 {
		return nil
	}
	now := bson.NewDateTimeFromTime(r.conn.now())
	var tokens, ends bson.A
	var rest []lost
	for _, l := range all {
		if l.until > now {
			tokens, ends, rest = append(tokens, l.token), append(ends, l.until), append(rest, l)
		}
	}
	if len(rest) == 0 {
		return nil
	}
	_, err := r.leases.UpdateMany(r.work, bson.D{{Key: "nextDelivery", Value: bson.D{{Key: "$in", Value: ends}}}, {Key: "lease", Value: bson.D{{Key: "$in", Value: tokens}}}}, returning(now, true))
	if err != nil {
		r.mu.Lock()
		r.lost = append(r.lost, rest...)
		r.mu.Unlock()
	}
	return r.conn.reason(r.work, err)
}

// next is in how long a message may be delivered that the topic has now: at the end of a lease, or of a delay.
func (r *consumer) next(ctx context.Context) (time.Duration, error) {
	raw, err := r.leases.FindOne(ctx, bson.D{}, options.FindOne().SetSort(oldest).SetProjection(bson.D{{Key: "_id", Value: 0}, {Key: "nextDelivery", Value: 1}})).Raw()
	if errors.Is(err, mongo.ErrNoDocuments) {
		return r.lease, nil
	}
	if err != nil {
		return 0, r.conn.reason(ctx, err)
	}
	at, ok := raw.Lookup("nextDelivery").TimeOK()
	if !ok { // another program's, which is never delivered
		return r.lease, nil
	}
	return min(r.lease, max(at.Sub(r.conn.now()), time.Millisecond)), nil
}
