package redis

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9/logging"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// protocol is that of Redis, which answers anything unknown with an error.
func init() {
	logging.Disable()
	driver.Register(streams())
	driver.Register(pubsub())
	driver.Register(lists())
}

// maxBulk is the default of proto-max-bulk-len in bytes, if CONFIG GET is forbidden.
const maxBulk = 512 << 20

func streams() driver.Driver {
	return driver.Driver{
		Name:    "redis-streams",
		Schemes: []string{"redis-streams"},
		Doc:     "Redis Streams: XADD, XREADGROUP with consumer groups, XACK.",
		Features: driver.Features{
			Order: driver.PerTopic, Confirm: driver.Replicated, Deliver: driver.AtLeastOnce,
			Settle: driver.Ack | driver.Requeue | driver.Reject, Start: driver.StartNew | driver.StartEarliest,
			SettleConfirmed: driver.Always,
			Async:           true, Replay: true, Groups: true, Fanout: true, Key: true, Headers: true, Attempts: true,
			Position: driver.Identifier, Timestamps: true, Receipts: true,
			MaxMessageBytes: maxBulk,
		},
		Options:  append(append(connectOptions(), confirmOptions()...), streamOptions()...),
		Open:     openStreams,
		Classify: classify,
		Place:    entryPlace,
	}
}

func streamOptions() []driver.Option {
	return []driver.Option{
		{
			Name: "maxLen", Scope: driver.OnProducer, Type: driver.Int,
			Doc: "Have the server drop the oldest messages, settled or not, when there are about so many; 0 is never.",
		},
		{
			Name: "deleteSettled", Scope: driver.OnConsumer, Type: driver.Bool,
			Doc: "Delete a message from the stream when it is acknowledged or rejected, for all groups (XDEL); otherwise the stream keeps it.",
		},
		{
			Name: "minIdle", Scope: driver.OnConsumer, Type: driver.Duration, Default: "30s", Min: int64(time.Millisecond),
			Doc: "How long a message may be with a consumer and not settled before another consumer of the group takes it over.",
		},
		{
			Name: "claimInterval", Scope: driver.OnConsumer, Type: driver.Duration, Default: "250ms",
			Min: int64(time.Millisecond),
			Doc: "How often a consumer looks for messages that another one gave back when it closed, or has held for longer than minIdle.",
		},
	}
}

// streamConn is a connection whose topics are streams.
type streamConn struct{ *conn }

func openStreams(ctx context.Context, t driver.Target) (driver.Conn, error) {
	c, err := open(ctx, t)
	if err != nil {
		return nil, err
	}
	return streamConn{c}, nil
}

// NewProducer returns a producer that appends to a stream.
func (c streamConn) NewProducer(ctx context.Context, p driver.ProducerConfig) (driver.Producer, error) {
	add := newXadd(p.Topic, p.Options.Bool("create"), p.Options.Int("maxLen"))
	return c.newProducer(ctx, p, &producer{headers: true, command: add.command, answer: add.answer})
}

// newProducer connects a producer.
func (c *conn) newProducer(ctx context.Context, config driver.ProducerConfig, p *producer) (driver.Producer, error) {
	p.link = c.link(config.Topic, 0)
	var err error
	if p.link.barrier, err = c.newBarrier(ctx, config); err != nil {
		c.moved(ctx)
		return nil, err
	}
	if _, err := p.link.Get(ctx); err != nil {
		return nil, err
	}
	return p, nil
}

var errNoFsync = errors.New("the option fsync=yes needs a server with WAITAOF (Redis 7.2) and an append-only file")

// newBarrier returns the barrier for the options wait and fsync, or nil.
func (c *conn) newBarrier(ctx context.Context, p driver.ProducerConfig) (*barrier, error) {
	b := &barrier{replicas: p.Options.Int("wait"), timeout: p.Options.Duration("waitTimeout")}
	fsync := p.Options.String("fsync")
	if b.replicas == 0 && (fsync == "no" || fsync == "") {
		return nil, nil
	}
	node, err := c.node(ctx, p.Topic)
	if err != nil {
		return nil, err
	}
	text, err := node.Info(ctx).Result()
	if err != nil {
		return nil, err
	}
	info := parseInfo(text)
	if b.replicas < 0 {
		if b.replicas, err = parseInt([]byte(info["connected_slaves"])); err != nil {
			return nil, err
		}
	}
	// Valkey reports itself as Redis 7.2, and has its WAITAOF.
	can := info["aof_enabled"] == "1" && parseVersion(info["redis_version"]).atLeast(7, 2)
	if fsync == "yes" && !can {
		return nil, errNoFsync
	}
	b.fsync = can && fsync != "no"
	if b.replicas == 0 && !b.fsync {
		return nil, nil
	}
	return b, nil
}
