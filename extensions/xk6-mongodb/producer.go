package mongodb

import (
	"context"
	"errors"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver/outbox"
)

// maxBytes is the size of documents at which a command gets no further message.
const maxBytes = 16 << 20

type outgoing = outbox.Item[bson.Raw]

// producer sends several commands at a time, each with the messages that wait.
type producer struct {
	conn       *conn
	collection *mongo.Collection
	out        *outbox.Workers[bson.Raw]
	concern    concern
	members    int // of the replica set when the producer opened
}

// NewProducer fails if the topic does not exist.
func (c *conn) NewProducer(ctx context.Context, config driver.ProducerConfig) (driver.Producer, error) {
	w, err := parseConcern(config.Options)
	if err != nil {
		return nil, err
	}
	if err := c.exists(ctx, config.Topic); err != nil {
		return nil, err
	}
	p := &producer{
		conn: c, concern: w, members: c.monitor.cluster().members,
		collection: c.db.Collection(config.Topic, options.Collection().SetWriteConcern(w.writeConcern())),
	}
	inFlight, batch := int(config.Options.Int("inFlight")), int(config.Options.Int("batch"))
	size := func(document bson.Raw) int { return len(document) }
	p.out = outbox.Start(inFlight, batch, maxBytes, size, p.insert)
	return p, nil
}

// Send queues the batch.
func (p *producer) Send(_ context.Context, b driver.Batch, done driver.Done) {
	due := p.conn.now()
	p.out.Send(b, done, func(m *driver.Message) (bson.Raw, error) { return encode(m, due) })
}

// insert sends one command. Each message has its own result.
func (p *producer) insert(ctx context.Context, all []outgoing) {
	if p.concern.majority && p.conn.monitor.cluster().members < p.members {
		report(all, errWeaker, nil)
		return
	}
	documents := make([]any, len(all))
	for i := range all {
		documents[i] = all[i].Message
	}
	_, err := p.collection.InsertMany(ctx, documents, options.InsertMany().SetOrdered(false))
	var each mongo.BulkWriteException
	if !errors.As(err, &each) || len(each.WriteErrors) == 0 && each.WriteConcernError == nil {
		report(all, p.conn.reason(ctx, err), nil)
		return
	}
	var rest error // of the messages that the server has
	if each.WriteConcernError != nil {
		rest = &concernError{each.WriteConcernError}
	}
	report(all, rest, each.WriteErrors)
}

// report reports the refused messages with their errors, and the others with err.
func report(all []outgoing, err error, refused []mongo.BulkWriteError) {
	errs := map[int]error{}
	for i := range refused {
		errs[refused[i].Index] = &refused[i]
	}
	for i, item := range all {
		if own, ok := errs[i]; ok {
			item.Done(own)
		} else {
			item.Done(err)
		}
	}
}

// Close waits for the messages sent. The rest fails with ctx's error when ctx ends.
func (p *producer) Close(ctx context.Context) error {
	p.out.Close(ctx)
	return nil
}
