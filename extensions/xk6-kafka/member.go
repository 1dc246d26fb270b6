package kafka

import (
	"context"
	"fmt"
	"sync"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// member is the common part of the consumers in a consumer group.
type member struct {
	reader
	group  string
	joined chan error // has room for the first answer of the group

	mu sync.Mutex
	// anchors has where this member began in partitions without a commit; nil if the group needs no
	// anchor.
	anchors map[int32]int64
	ends    kadm.Offsets // the anchors of the whole topic; nil if the group needs none
}

func newMember(c *conn, topic, group string) member {
	return member{reader: reader{conn: c, topic: topic}, group: group, joined: make(chan error, 1)}
}

// prepare returns the client's options for a member that consumes messages. A group that starts
// with new messages is anchored.
func (g *member) prepare(ctx context.Context, cfg driver.ConsumerConfig) ([]kgo.Opt, error) {
	if err := checkProtocol(cfg.Options); err != nil {
		return nil, err
	}
	partitions, err := g.conn.partitions(ctx, g.topic)
	if err != nil {
		return nil, err
	}
	if cfg.Start == driver.StartNew {
		if g.ends, err = g.conn.offsets(ctx, g.topic, driver.StartNew); err != nil {
			return nil, err
		}
		if err := g.conn.anchor(ctx, g.group, g.ends); err != nil {
			return nil, err
		}
		g.anchors = map[int32]int64{}
	}
	options := append(fetchOptionsOf(cfg.Options), g.options(cfg.Options)...)
	return append(options, kgo.WithHooks(newStamp(partitions)), kgo.AdjustFetchOffsetsFn(g.begin)), nil
}

// options are the client's options for any member of a group. A partition without a commit is read
// from its start: the user asks for that, or the partition is younger than the anchors.
func (g *member) options(v driver.Values) []kgo.Opt {
	options := []kgo.Opt{
		kgo.ConsumeTopics(g.topic),
		kgo.ConsumerGroup(g.group),
		kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()),
		kgo.SessionTimeout(v.Duration("sessionTimeout")),
		kgo.HeartbeatInterval(v.Duration("heartbeatInterval")),
		kgo.WithHooks(g),
	}
	if v.String("groupProtocol") == "consumer" {
		options = append(options, kgo.ServerSideBalancer(), kgo.Balancers(kgo.StickyBalancer()))
	}
	return options
}

// await returns when the group has this member and, if it needs anchors, has committed them.
func (g *member) await(ctx context.Context) error {
	select {
	case err := <-g.joined:
		if err != nil || g.ends == nil {
			return err
		}
		return g.anchored(ctx, g.ends)
	case <-ctx.Done():
		return fmt.Errorf("joining group %s: %w", g.group, ctx.Err())
	}
}

func (g *member) answer(err error) {
	select {
	case g.joined <- err:
	default:
	}
}

// OnGroupManageError is the library's hook for a member that the group refuses. The library retries
// after failures of the connection.
func (g *member) OnGroupManageError(err error) {
	if kind := classify(err); kind != driver.Disconnected && kind != driver.Timeout {
		g.answer(err)
	}
}
