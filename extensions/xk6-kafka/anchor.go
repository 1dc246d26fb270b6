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

// A group that begins at the end of its topic is anchored there: it commits the ends of the partitions before it reads. Left to itself
// it would look for the end when it first fetches, and again whenever a partition changes hands before its first commit: what is sent
// in between would never be delivered.

// anchor commits the given ends of a topic's partitions where the group has committed nothing. That nobody but a member may commit for
// a group that has members, on this topic or on others, is no error: then the members anchor the partitions that they get.
func (c *conn) anchor(ctx context.Context, group string, ends kadm.Offsets) error {
	missing, err := c.uncommitted(ctx, group, ends)
	if err != nil || len(missing) == 0 {
		return err
	}
	err = c.patiently(ctx, func() error { return c.admin.CommitAllOffsets(ctx, group, missing) })
	if err == nil || errors.Is(err, kerr.UnknownMemberID) {
		return nil
	}
	return fmt.Errorf("offsets of group %s: %w", group, err)
}

// begin is the library's hook for where to begin in partitions that this member has got. While the group is not anchored in all of
// them, those without a committed offset begin at their present end.
func (g *member) begin(ctx context.Context, at map[string]map[int32]kgo.Offset) (map[string]map[int32]kgo.Offset, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	var ends kadm.Offsets
	for partition, offset := range at[g.topic] {
		if g.anchors == nil || offset.EpochOffset().Offset >= 0 {
			continue
		}
		if _, ok := g.anchors[partition]; !ok {
			if ends == nil {
				var err error
				if ends, err = g.conn.offsets(ctx, g.topic, driver.StartNew); err != nil {
					return nil, err
				}
			}
			end, _ := ends.Lookup(g.topic, partition)
			g.anchors[partition] = end.At
		}
		at[g.topic][partition] = kgo.NewOffset().At(g.anchors[partition])
	}
	return at, nil
}

// anchored waits until the group has committed an offset for every partition of the topic, for which each member does its part.
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
			return errors.Join(fmt.Errorf("group %s has members, and for %d partitions of topic %s no committed offsets: %w",
				g.group, len(missing[g.topic]), g.topic, ctx.Err()), err)
		}
	}
}

// commitAnchors commits, as a member, where this member has begun in those of the partitions that are its own.
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
