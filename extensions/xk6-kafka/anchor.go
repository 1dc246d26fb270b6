package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// A group that begins at the end of its topic is anchored there: it commits the ends of the
// partitions before it reads. Otherwise it would look for the end when it first fetches, and again
// when a partition without a commit changes its owner, and skip the messages sent in between.

// anchor commits the given ends for partitions without a commit of the group. If the group has
// members, only they can commit, which is no error: each anchors its own partitions.
func (c *conn) anchor(ctx context.Context, group string, ends kadm.Offsets) error {
	missing, err := c.uncommitted(ctx, group, ends)
	if err != nil || len(missing) == 0 {
		return err
	}
	err = c.retry(ctx, func() error { return c.admin.CommitAllOffsets(ctx, group, missing) })
	if err == nil || errors.Is(err, kerr.UnknownMemberID) {
		return nil
	}
	return fmt.Errorf("offsets of group %s: %w", group, err)
}

// begin is the library's hook for the first offsets of assigned partitions. While the group is not
// anchored, partitions without a committed offset begin at their present end.
func (g *member) begin(
	ctx context.Context, at map[string]map[int32]kgo.Offset,
) (map[string]map[int32]kgo.Offset, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.anchors == nil {
		return at, nil
	}
	ends, err := g.conn.offsets(ctx, g.topic, driver.StartNew)
	if err != nil {
		return nil, err
	}
	for partition, offset := range at[g.topic] {
		if offset.EpochOffset().Offset >= 0 {
			continue
		}
		if _, ok := g.anchors[partition]; !ok {
			end, _ := ends.Lookup(g.topic, partition)
			g.anchors[partition] = end.At
		}
		at[g.topic][partition] = kgo.NewOffset().At(g.anchors[partition])
	}
	return at, nil
}

// anchored waits until each member has committed its part and every partition has an offset.
func (g *member) anchored(ctx context.Context, all kadm.Offsets) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		missing, err := g.conn.uncommitted(ctx, g.group, all)
		if err != nil {
			return err
		}
		if len(missing) == 0 {
			g.mu.Lock()
			g.anchors = nil
			g.mu.Unlock()
			return nil
		}
		err = g.commitAnchors(ctx, missing[g.topic])
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errors.Join(
				fmt.Errorf("group %s has members, and for %d partitions of topic %s no committed offsets: %w",
					g.group, len(missing[g.topic]), g.topic, ctx.Err()),
				err,
			)
		}
	}
}

// commitAnchors commits, as a member, where this member began in its own partitions.
func (g *member) commitAnchors(ctx context.Context, missing map[int32]kadm.Offset) (err error) {
	mine := map[int32]kgo.EpochOffset{}
	g.mu.Lock()
	for partition := range missing {
		if at, ok := g.anchors[partition]; ok {
			mine[partition] = kgo.EpochOffset{Epoch: -1, Offset: at}
		}
	}
	g.mu.Unlock()
	if len(mine) == 0 {
		return nil
	}
	g.CommitOffsetsSync(ctx, map[string]map[int32]kgo.EpochOffset{g.topic: mine},
		func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, answer *kmsg.OffsetCommitResponse, failed error) {
			err = errors.Join(failed, commitError(answer))
		})
	return err
}
