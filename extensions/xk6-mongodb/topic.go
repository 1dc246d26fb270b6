package mongodb

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

const (
	maxNamespace    = 255 // bytes of the database's name, a dot and the collection's
	indexName       = "nextDelivery_1"
	namespaceExists = 48 // code of an error that is no failure
)

// differenceError reports a collection or view that is not a topic.
type differenceError struct{ collection, has, want string }

func (e *differenceError) Error() string {
	return fmt.Sprintf("collection %s is there and no topic: it %s, and should %s", e.collection, e.has, e.want)
}

func (c *conn) name(topic string) error {
	most := maxNamespace - len(c.db.Name()) - 1
	if topic == "" || len(topic) > most || strings.ContainsAny(topic, "$\x00") || strings.HasPrefix(topic, "system.") {
		return &driver.OptionError{
			Name: "topic",
			Err: fmt.Errorf(
				"%q should have from 1 to %d bytes, as MongoDB's collections, no $ or zero byte, and not begin with \"system.\"",
				topic,
				most,
			),
		}
	}
	return nil
}

// look returns whether the collection has a topic's index. A missing collection is an error.
func (c *conn) look(ctx context.Context, topic string) (indexed bool, err error) {
	if err := c.name(topic); err != nil {
		return false, err
	}
	all, err := c.db.ListCollectionSpecifications(ctx, bson.D{{Key: "name", Value: topic}})
	if err != nil {
		return false, c.reason(ctx, err)
	}
	for _, s := range all {
		if s.Name != topic {
			continue
		}
		if s.Type != "collection" {
			return false, &differenceError{topic, "is a " + s.Type, "be a collection"}
		}
		if capped, _ := s.Options.Lookup("capped").BooleanOK(); capped {
			return false, &differenceError{topic, "is capped", "not be: messages could not be deleted"}
		}
		return c.indexed(ctx, topic)
	}
	return false, &absentError{c.db.Name(), topic}
}

// indexed reports whether a collection has the index by which messages are found.
func (c *conn) indexed(ctx context.Context, topic string) (bool, error) {
	cursor, err := c.db.Collection(topic).Indexes().List(ctx)
	if err != nil {
		return false, c.reason(ctx, err)
	}
	var all []struct {
		Name                    string
		Key                     bson.D
		Sparse, Hidden          bool
		PartialFilterExpression bson.Raw `bson:"partialFilterExpression"`
	}
	if err := cursor.All(ctx, &all); err != nil {
		return false, c.reason(ctx, err)
	}
	for _, i := range all {
		usable := len(i.Key) > 0 && i.Key[0].Key == "nextDelivery" && ascending(i.Key[0].Value) && !i.Sparse && !i.Hidden &&
			i.PartialFilterExpression == nil
		if usable {
			return true, nil
		}
		if i.Name == indexName {
			has := fmt.Sprintf(
				"has an index %s of %v, sparse %t, hidden %t, partial %t", i.Name, i.Key, i.Sparse, i.Hidden,
				i.PartialFilterExpression != nil,
			)
			return false, &differenceError{topic, has, "have one of nextDelivery, ascending, and of every document"}
		}
	}
	return false, nil
}

func ascending(direction any) bool {
	switch n := direction.(type) {
	case int32:
		return n > 0
	case int64:
		return n > 0
	case float64:
		return n > 0
	}
	return false
}

// exists returns an error if the topic does not exist.
func (c *conn) exists(ctx context.Context, topic string) error {
	indexed, err := c.look(ctx, topic)
	if err == nil && !indexed {
		err = &differenceError{topic, "has no index that begins with nextDelivery", "have one, as createTopic makes it"}
	}
	return err
}

// CreateTopic creates the collection and its index. An existing one may lack the index, and may
// have others.
func (c *conn) CreateTopic(ctx context.Context, s driver.TopicSpec) error {
	if err := c.name(s.Name); err != nil {
		return err
	}
	var refused mongo.CommandError
	if err := c.db.CreateCollection(ctx, s.Name); err != nil &&
		(!errors.As(err, &refused) || refused.Code != namespaceExists) {
		return c.reason(ctx, err)
	}
	indexed, err := c.look(ctx, s.Name)
	if err != nil || indexed {
		return err
	}
	_, err = c.db.Collection(s.Name).Indexes().CreateOne(ctx, mongo.IndexModel{
		Keys: bson.D{{Key: "nextDelivery", Value: 1}}, Options: options.Index().SetName(indexName),
	})
	return c.reason(ctx, err)
}

// DescribeTopic returns how many members have a topic.
func (c *conn) DescribeTopic(ctx context.Context, topic string) (driver.TopicInfo, error) {
	return driver.TopicInfo{Replicas: c.monitor.cluster().members}, c.exists(ctx, topic)
}

// DeleteTopic drops the collection.
func (c *conn) DeleteTopic(ctx context.Context, topic string) error {
	if _, err := c.look(ctx, topic); err != nil {
		return err
	}
	return c.reason(ctx, c.db.Collection(topic).Drop(ctx))
}

// PurgeTopic deletes all documents, including leased ones.
func (c *conn) PurgeTopic(ctx context.Context, topic string) error {
	if _, err := c.look(ctx, topic); err != nil {
		return err
	}
	_, err := c.db.Collection(topic).DeleteMany(ctx, bson.D{})
	return c.reason(ctx, err)
}

// counting counts all documents, and those never delivered, in one pass.
var counting = bson.A{bson.D{{Key: "$group", Value: bson.D{
	{Key: "_id", Value: nil},
	{Key: "messages", Value: bson.D{{Key: "$sum", Value: 1}}},
	{
		Key: "undelivered",
		Value: bson.D{
			{
				Key:   "$sum",
				Value: bson.D{{Key: "$cond", Value: bson.A{bson.D{{Key: "$eq", Value: bson.A{"$attempts", 0}}}, 1, 0}}},
			},
		},
	},
}}}}

// Backlog counts the documents: each is a message that is not settled.
func (c *conn) Backlog(ctx context.Context, topic, group string) (b driver.Backlog, err error) {
	if group != "" {
		return b, fmt.Errorf("groups: %w", errors.ErrUnsupported)
	}
	if _, err := c.look(ctx, topic); err != nil {
		return b, err
	}
	cursor, err := c.db.Collection(topic).Aggregate(ctx, counting)
	if err != nil {
		return b, c.reason(ctx, err)
	}
	var counts []struct{ Messages, Undelivered int64 }
	if err := cursor.All(ctx, &counts); err != nil || len(counts) == 0 {
		return b, c.reason(ctx, err)
	}
	return driver.Backlog{
		Messages: counts[0].Messages, Undelivered: counts[0].Undelivered,
		Estimate: c.once.Load(), // a message that is delivered once is gone before it is settled
	}, nil
}
