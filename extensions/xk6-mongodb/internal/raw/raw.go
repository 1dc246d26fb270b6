// Package raw has loops written by hand over the client library, to compare the driver with. Every
// loop returns its duration.
package raw

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"golang.org/x/sync/errgroup"
)

type message struct {
	ID           bson.ObjectID `bson:"_id,omitempty"`
	Body         []byte        `bson:"body"`
	NextDelivery time.Time     `bson:"nextDelivery"`
	Attempts     int32         `bson:"attempts"`
}

// Insert adds count messages to a collection, with several commands at a time.
func Insert(c *mongo.Collection, body []byte, count, each, inFlight int) (time.Duration, error) {
	var left atomic.Int64
	left.Store(int64(count))
	start := time.Now()
	var all errgroup.Group
	for range inFlight {
		all.Go(func() error {
			for {
				n := left.Add(-int64(each)) + int64(each)
				if n <= 0 {
					return nil
				}
				now, documents := time.Now(), make([]any, min(int64(each), n))
				for i := range documents {
					documents[i] = &message{ID: bson.NewObjectID(), Body: body, NextDelivery: now}
				}
				if _, err := c.InsertMany(context.Background(), documents, options.InsertMany().SetOrdered(false)); err != nil {
					return fmt.Errorf("insert: %w", err)
				}
			}
		})
	}
	err := all.Wait()
	return time.Since(start), err
}

// Consume leases count messages with several commands at a time, and deletes them in batches.
func Consume(c *mongo.Collection, count, each, inFlight int) (time.Duration, error) {
	ctx := context.Background()
	start := time.Now()
	var all errgroup.Group
	for range inFlight {
		all.Go(func() error {
			var ids bson.A
			settle := func() error {
				if len(ids) == 0 {
					return nil
				}
				_, err := c.DeleteMany(ctx, bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: ids}}}})
				ids = ids[:0]
				return err
			}
			for {
				var m message
				now := time.Now()
				err := c.FindOneAndUpdate(
					ctx,
					bson.D{{Key: "nextDelivery", Value: bson.D{{Key: "$lte", Value: now}}}},
					bson.D{
						{Key: "$set", Value: bson.D{{Key: "nextDelivery", Value: now.Add(30 * time.Second)}}},
						{Key: "$inc", Value: bson.D{{Key: "attempts", Value: 1}}},
					},
					options.FindOneAndUpdate().
						SetSort(bson.D{{Key: "nextDelivery", Value: 1}}).
						SetReturnDocument(options.After),
				).Decode(&m)
				if errors.Is(err, mongo.ErrNoDocuments) {
					return settle()
				}
				if err != nil {
					return fmt.Errorf("lease: %w", err)
				}
				if ids = append(ids, m.ID); len(ids) == each {
					if err := settle(); err != nil {
						return fmt.Errorf("delete: %w", err)
					}
				}
			}
		})
	}
	if err := all.Wait(); err != nil {
		return 0, err
	}
	if n, err := c.CountDocuments(ctx, bson.D{}); err != nil || n != 0 {
		return 0, fmt.Errorf("%d of %d messages are left: %w", n, count, err)
	}
	return time.Since(start), nil
}
