package mongodb

import (
	"context"
	"errors"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver/lease"
)

// Settle settles with one command. Messages whose lease has expired, and that another consumer has,
// are an error; the others are settled.
func (r *consumer) Settle(ctx context.Context, b driver.Batch, o driver.Outcome) error {
	return r.Consumer.Settle(b, func(all []*delivery) []error {
		settled, err := r.end(ctx, all, o)
		return lease.Count(len(all), settled, err, errSettled)
	})
}

// these selects the documents of deliveries whose leases are still theirs.
func these(all []*delivery) bson.D {
	ids, tokens := make(bson.A, len(all)), make(bson.A, len(all))
	for i, d := range all {
		ids[i], tokens[i] = d.Handle.id, d.Handle.token
	}
	return bson.D{
		{Key: "_id", Value: bson.D{{Key: "$in", Value: ids}}},
		{Key: "lease", Value: bson.D{{Key: "$in", Value: tokens}}},
	}
}

// returning returns the update that ends leases. With undone the message was not delivered.
func returning(from bson.DateTime, undone bool) bson.D {
	update := bson.D{
		{Key: "$set", Value: bson.D{{Key: "nextDelivery", Value: from}}},
		{Key: "$unset", Value: bson.D{{Key: "lease", Value: ""}}},
	}
	if undone {
		update = append(update, bson.E{Key: "$inc", Value: bson.D{{Key: "attempts", Value: -1}}})
	}
	return update
}

// end runs the command of an outcome and returns the number of its messages.
func (r *consumer) end(ctx context.Context, all []*delivery, o driver.Outcome) (int64, error) {
	if len(all) == 0 {
		return 0, nil
	}
	if o == driver.Requeue {
		done, err := r.settling.UpdateMany(
			ctx, these(all), returning(bson.NewDateTimeFromTime(r.conn.now().Add(r.delay)), false),
		)
		if err != nil {
			return 0, r.conn.reason(ctx, err)
		}
		r.idle.signal()
		return done.MatchedCount, nil
	}
	if o == driver.Reject && r.dead != nil {
		if err := r.bury(ctx, all); err != nil {
			return 0, err
		}
	}
	done, err := r.settling.DeleteMany(ctx, these(all))
	if err != nil {
		return 0, r.conn.reason(ctx, err)
	}
	return done.DeletedCount, nil
}

// bury copies messages to the dead-letter topic before they are deleted. After a failure between
// the two it is repeated, and finds the copies there.
func (r *consumer) bury(ctx context.Context, all []*delivery) error {
	hidden := bson.D{{Key: "lease", Value: 0}, {Key: "nextDelivery", Value: 0}, {Key: "attempts", Value: 0}}
	cursor, err := r.leases.Find(ctx, these(all), options.Find().SetProjection(hidden))
	if err != nil {
		return r.conn.reason(ctx, err)
	}
	var found []bson.D
	if err := cursor.All(ctx, &found); err != nil || len(found) == 0 {
		return r.conn.reason(ctx, err)
	}
	due := bson.NewDateTimeFromTime(r.conn.now())
	letters := make([]any, len(found))
	for i, document := range found {
		letters[i] = append(document, bson.E{Key: "nextDelivery", Value: due}, bson.E{Key: "attempts", Value: int32(0)})
	}
	_, err = r.dead.InsertMany(ctx, letters, options.InsertMany().SetOrdered(false))
	var each mongo.BulkWriteException
	if errors.As(err, &each) && each.WriteConcernError == nil && duplicates(each.WriteErrors) {
		return nil
	}
	return r.conn.reason(ctx, err)
}

// duplicates reports whether there are errors, and all of them are of documents that exist.
func duplicates(refused []mongo.BulkWriteError) bool {
	const duplicateKey = 11000
	for _, e := range refused {
		if e.Code != duplicateKey {
			return false
		}
	}
	return len(refused) > 0
}

// giveBack returns messages when the consumer closes. Messages that were not received count as not
// delivered.
func (r *consumer) giveBack(ctx context.Context, held, unseen []*delivery) error {
	now := bson.NewDateTimeFromTime(r.conn.now())
	update := func(all []*delivery, undone bool) error {
		if len(all) == 0 {
			return nil
		}
		_, err := r.settling.UpdateMany(ctx, these(all), returning(now, undone))
		return r.conn.reason(ctx, err)
	}
	return errors.Join(update(held, false), update(unseen, true))
}
