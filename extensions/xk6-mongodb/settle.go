package mongodb

import (
	"context"
	"errors"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// Settle ends deliveries, by one command for all of them. Those whose lease is over, and that are another's by now, are an error, and all others are settled.
func (r *consumer) Settle(ctx context.Context, b driver.Batch, o driver.Outcome) error {
	if r.leaving.Load() {
		return driver.ErrClosed
	}
	all := make([]*delivery, 0, len(b))
	for i := range b {
		if d, ours := b[i].Token.(*delivery); ours {
			all = append(all, d)
		}
	}
	settled, err := r.end(ctx, all, o)
	r.release(all, err == nil)
	if err != nil {
		return err
	}
	if settled < int64(len(b)) {
		return &driver.PartError{Settled: int(settled), Err: errSettled}
	}
	return nil
}

// release has deliveries take no room any more: of those whose settlement failed nobody knows whether the server has done it. What is settled is not held
// any more, and the rest may be settled again, or given back when the consumer closes.
func (r *consumer) release(all []*delivery, settled bool) {
	for _, d := range all {
		if settled {
			r.held.Settled(d)
		} else {
			r.held.Doubted(d)
		}
	}
}

// these are the documents of deliveries, where they are still those deliveries: the token of a lease is that of one delivery of one document.
func these(all []*delivery) bson.D {
	ids, tokens := make(bson.A, len(all)), make(bson.A, len(all))
	for i, d := range all {
		ids[i], tokens[i] = d.id, d.token
	}
	return bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: ids}}}, {Key: "lease", Value: bson.D{{Key: "$in", Value: tokens}}}}
}

// returning is the update that ends leases; undone says that nobody has seen the message.
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

// end runs the command of an outcome and returns how many messages it was about.
func (r *consumer) end(ctx context.Context, all []*delivery, o driver.Outcome) (int64, error) {
	if o == driver.Requeue {
		done, err := r.settling.UpdateMany(ctx, these(all), returning(bson.NewDateTimeFromTime(r.conn.now().Add(r.delay)), false))
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

// bury copies messages to the topic of the dead letters, before they are deleted: who fails between the two does the first again, which finds them there.
func (r *consumer) bury(ctx context.Context, all []*delivery) error {
	cursor, err := r.leases.Find(ctx, these(all), options.Find().SetProjection(bson.D{{Key: "lease", Value: 0}, {Key: "nextDelivery", Value: 0}, {Key: "attempts", Value: 0}}))
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
	if errors.As(err, &each) && each.WriteConcernError == nil && len(each.WriteErrors) > 0 && buried(each.WriteErrors) {
		return nil
	}
	return r.conn.reason(ctx, err)
}

// duplicateKey is the code of an insert of what is there already.
const duplicateKey = 11000

func buried(refused []mongo.BulkWriteError) bool {
	for _, e := range refused {
		if e.Code != duplicateKey {
			return false
		}
	}
	return true
}

// giveUp rejects a message that was delivered often enough.
func (r *consumer) giveUp(d *delivery) error {
	_, err := r.end(r.work, []*delivery{d}, driver.Reject)
	return err
}

// giveBack returns what is not settled when the consumer closes, and what was never received as if it had not been delivered.
func (r *consumer) giveBack(ctx context.Context) error {
	waiting := r.in.Waiting()
	held := r.held.Clear()
	r.in.Clear()
	now := bson.NewDateTimeFromTime(r.conn.now())
	var errs []error
	for _, some := range []struct {
		all    []*delivery
		undone bool
	}{{held, false}, {waiting, true}} {
		if len(some.all) == 0 {
			continue
		}
		_, err := r.settling.UpdateMany(ctx, these(some.all), returning(now, some.undone))
		errs = append(errs, r.conn.reason(ctx, err))
	}
	return errors.Join(errs...)
}
