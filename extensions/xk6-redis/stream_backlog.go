package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// Backlog counts the entries that were never delivered to the group, and the pending ones. It is an
// estimate if entries were removed that the server may still count.
func (c streamConn) Backlog(ctx context.Context, topic, group string) (driver.Backlog, error) {
	none := driver.Backlog{}
	if group == "" {
		return none, fmt.Errorf("the backlog of a stream without a group: %w", errors.ErrUnsupported)
	}
	node, err := c.node(ctx, topic)
	if err != nil {
		return none, err
	}
	var groups *redis.XInfoGroupsCmd
	var stream *redis.XInfoStreamCmd
	var pending *redis.XPendingCmd
	if _, err := node.TxPipelined(ctx, func(p redis.Pipeliner) error { // of one instant
		groups, stream, pending = p.XInfoGroups(ctx, topic), p.XInfoStream(ctx, topic), p.XPending(ctx, topic, group)
		return nil
	}); err != nil {
		return none, err
	}
	for _, g := range groups.Val() {
		if g.Name == group {
			return backlog(&g, stream.Val(), pending.Val()), nil
		}
	}
	return none, replyError("NOGROUP no such group")
}

// backlog sums the undelivered and the pending entries of a group.
func backlog(g *redis.XInfoGroup, s *redis.XInfoStream, pending *redis.XPending) driver.Backlog {
	if s.Length == 0 {
		return driver.Backlog{} // the server also lists removed entries as pending
	}
	left, exact := undelivered(g, s)
	return driver.Backlog{
		Messages: left + pending.Count, Undelivered: left, Estimate: !exact || !allThere(pending, s),
	}
}

// undelivered returns the number of entries behind the last that the group was given. The server's
// lag is exact as long as no entry was removed; before Redis 7 there is none.
func undelivered(g *redis.XInfoGroup, s *redis.XInfoStream) (n int64, exact bool) {
	switch {
	case !before(g.LastDeliveredID, s.LastGeneratedID):
		return 0, true
	case before(g.LastDeliveredID, s.FirstEntry.ID):
		return s.Length, true
	case g.Lag < 0 || s.EntriesAdded == 0:
		return s.Length, false
	}
	return min(g.Lag, s.Length), s.Length == s.EntriesAdded
}

// allThere reports whether all pending entries are certainly in the stream: every removed one is
// older.
func allThere(pending *redis.XPending, s *redis.XInfoStream) bool {
	if pending.Count == 0 || s.Length == s.EntriesAdded {
		return true
	}
	trimmed := before(pending.Lower, s.FirstEntry.ID)
	return s.EntriesAdded > 0 && !trimmed && before(s.MaxDeletedEntryID, pending.Lower)
}

// before reports whether an entry's ID, two numbers with a dash between them, is below another's.
func before(a, b string) bool {
	ms, n := numbers(a)
	otherMs, otherN := numbers(b)
	return cmp.Or(cmp.Compare(ms, otherMs), cmp.Compare(n, otherN)) < 0
}

func numbers(id string) (ms, n uint64) {
	first, second, _ := strings.Cut(id, "-")
	ms, _ = strconv.ParseUint(first, 10, 64)
	n, _ = strconv.ParseUint(second, 10, 64)
	return ms, n
}
