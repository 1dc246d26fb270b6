package mongodb

import (
	"context"
	"errors"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver/outbox"
)

// maxBytes is of how many bytes of documents a command has no second message.
const maxBytes = 16 << 20

// outgoing is a message that is not done.
type outgoing struct {
	document bson.Raw
	done     driver.Done
	i        int
}

// producer sends by as many goroutines as it may have commands under way, each of which takes what waits.
type producer struct {
	conn       *conn
	collection *mongo.Collection
	out        *outbox.Outbox[outgoing]
	batch      int // most messages of one command
	concern    concern
	members    int // that its replica set had when it opened

	life    context.Context // ends when Close gives up waiting
	stop    context.CancelCauseFunc
	sending sync.WaitGroup
}

// NewProducer fails where the topic does not exist, or is none.
func (c *conn) NewProducer(ctx context.Context, config driver.ProducerConfig) (driver.Producer, error) {
	w, err := parseConcern(config.Options)
	if err != nil {
		return nil, err
	}
	if err := c.exists(ctx, config.Topic); err != nil {
		return nil, err
	}
	p := &producer{
		conn: c, concern: w, members: c.monitor.cluster().members, batch: int(config.Options.Int("batch")),
		out:        outbox.New(func(o outgoing) int { return len(o.document) }),
		collection: c.db.Collection(config.Topic, options.Collection().SetWriteConcern(w.of())),
	}
	p.life, p.stop = context.WithCancelCause(context.Background())
	for range config.Options.Int("inFlight") {
		p.sending.Go(p.run)
	}
	return p, nil
}

// Send hands the batch to the goroutines that send.
func (p *producer) Send(_ context.Context, b driver.Batch, done driver.Done) {
	due := p.conn.now()
	add := make([]outgoing, 0, len(b))
	for i := range b {
		document, err := encode(&b[i], due)
		if err != nil {
			done(i, err)
			continue
		}
		add = append(add, outgoing{document, done, i})
	}
	if len(add) > 0 && !p.out.Put(len(add), func(i int) outgoing { return add[i] }) {
		tell(add, driver.ErrClosed, nil)
	}
}

// run sends what comes, until the producer is closed and all has gone.
func (p *producer) run() {
	var all []outgoing
	var documents []any
	for {
		clear(documents) // they must not live on here
		if all = p.out.Next(all, p.batch, maxBytes); len(all) == 0 {
			return
		}
		documents = documents[:0]
		for i := range all {
			documents = append(documents, all[i].document)
		}
		p.insert(all, documents)
	}
}

// insert sends one command and tells each message its own fate.
func (p *producer) insert(all []outgoing, documents []any) {
	if p.concern.majority && p.conn.monitor.cluster().members < p.members {
		tell(all, errWeaker, nil)
		return
	}
	_, err := p.collection.InsertMany(p.life, documents, options.InsertMany().SetOrdered(false))
	var each mongo.BulkWriteException
	if !errors.As(err, &each) || len(each.WriteErrors) == 0 && each.WriteConcernError == nil {
		tell(all, p.conn.reason(p.life, err), nil)
		return
	}
	var rest error // of those that the server has, and that are perhaps not where they are to be
	if each.WriteConcernError != nil {
		rest = &concernError{each.WriteConcernError}
	}
	tell(all, rest, each.WriteErrors)
}

// tell says what became of messages.
func tell(all []outgoing, err error, refused []mongo.BulkWriteError) {
	fates := map[int]error{}
	for i := range refused {
		fates[refused[i].Index] = &refused[i]
	}
	for i, o := range all {
		if own, ok := fates[i]; ok {
			o.done(o.i, own)
		} else {
			o.done(o.i, err)
		}
	}
}

// Close waits for what was sent. What remains when ctx ends fails with its error.
func (p *producer) Close(ctx context.Context) error {
	p.out.Close()
	defer context.AfterFunc(ctx, func() { p.stop(ctx.Err()) })()
	p.sending.Wait()
	p.stop(driver.ErrClosed)
	return nil
}
