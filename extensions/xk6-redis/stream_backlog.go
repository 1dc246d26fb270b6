package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// The server's lag counts entries that were trimmed before delivery for ever. So it is corrected by
// the last known difference, as long as no entry after that point was removed; otherwise the
// entries are counted by reading the stream.

// marks are how far each group of a topic had come when its backlog was asked for last.
type marks struct {
	mu      sync.Mutex
	byGroup map[[2]string]mark // by topic and group
}

// mark is a place in a stream up to which a group had been given it.
type mark struct {
	id     string // of the last entry that it was given
	excess int64  // by how much the server's lag was too high
}

// Backlog counts the entries that were never delivered to the group, and pending entries that
// exist.
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
	var listed *redis.XPendingExtCmd
	if _, err := node.TxPipelined(ctx, func(p redis.Pipeliner) error { // of one instant
		groups, stream = p.XInfoGroups(ctx, topic), p.XInfoStream(ctx, topic)
		listed = p.XPendingExt(ctx, &redis.XPendingExtArgs{Stream: topic, Group: group, Start: "-", End: "+", Count: page})
		return nil
	}); err != nil {
		return none, err
	}
	for _, g := range groups.Val() {
		if g.Name == group {
			n, err := c.undelivered(ctx, topic, &g, stream.Val())
			if err != nil {
				return none, err
			}
			pending, err := c.pending(ctx, topic, &g, stream.Val(), listed.Val())
			return driver.Backlog{Messages: pending + n, Undelivered: n}, err
		}
	}
	return none, replyError("NOGROUP no such group")
}

// undelivered is how many entries of the stream are after the last that the group was given.
func (c streamConn) undelivered(
	ctx context.Context, topic string, g *redis.XInfoGroup, s *redis.XInfoStream,
) (n int64, err error) {
	reliable := g.Lag >= 0 && c.server.atLeast(7, 0) // before Redis 7, or after deletions, the server has no lag
	key := [2]string{topic, g.Name}
	c.marks.mu.Lock()
	last, marked := c.marks.byGroup[key]
	c.marks.mu.Unlock()
	switch {
	case s.Length == 0 || !before(g.LastDeliveredID, s.LastGeneratedID):
	case before(g.LastDeliveredID, s.FirstEntry.ID):
		n = s.Length
	case reliable && s.Length == s.EntriesAdded: // nothing has ever gone
		n = g.Lag
	case reliable && marked && !before(last.id, s.FirstEntry.ID) && before(s.MaxDeletedEntryID, last.id):
		n = g.Lag - last.excess
	default:
		if n, err = c.count(ctx, topic, g.LastDeliveredID, s); err != nil {
			return 0, err
		}
	}
	c.marks.mu.Lock()
	defer c.marks.mu.Unlock()
	if reliable {
		c.marks.byGroup[key] = mark{g.LastDeliveredID, g.Lag - n}
	} else {
		delete(c.marks.byGroup, key)
	}
	return n, nil
}

// pending counts the pending entries that are still in the stream, because the server also lists
// removed ones. Listed is the first page. Before Redis 7 the server does not report deletions.
func (c streamConn) pending(
	ctx context.Context, topic string, g *redis.XInfoGroup, s *redis.XInfoStream, listed []redis.XPendingExt,
) (n int64, err error) {
	if s.Length == 0 {
		return 0, nil
	}
	gone := s.LastGeneratedID // none after that has gone
	if c.server.atLeast(7, 0) {
		if gone = s.MaxDeletedEntryID; before(gone, s.FirstEntry.ID) {
			gone = s.FirstEntry.ID
		}
	}
	for seen := int64(0); ; {
		doubtful := len(listed)
		for doubtful > 0 && before(gone, listed[doubtful-1].ID) {
			doubtful--
		}
		there, err := c.there(ctx, topic, listed[:doubtful])
		if err != nil {
			return 0, err
		}
		n, seen = n+there, seen+int64(doubtful)
		if doubtful < page {
			return n + max(0, g.Pending-seen), nil
		}
		listed, err = c.client.XPendingExt(ctx, &redis.XPendingExtArgs{
			Stream: topic, Group: g.Name, Start: "(" + listed[page-1].ID, End: "+", Count: page,
		}).Result()
		if err != nil {
			return 0, err
		}
	}
}

// there counts which of some pending entries, in their order, are in the stream.
func (c streamConn) there(ctx context.Context, topic string, listed []redis.XPendingExt) (n int64, err error) {
	for len(listed) > 0 {
		entries, err := c.client.XRangeN(ctx, topic, listed[0].ID, listed[len(listed)-1].ID, page).Result()
		if err != nil || len(entries) == 0 {
			return n, err
		}
		for _, e := range entries {
			for len(listed) > 0 && before(listed[0].ID, e.ID) {
				listed = listed[1:]
			}
			if len(listed) > 0 && listed[0].ID == e.ID {
				n, listed = n+1, listed[1:]
			}
		}
		if len(entries) < page {
			return n, nil
		}
	}
	return n, nil
}

// count counts the entries of a stream after one, by reading from both ends until the shorter way
// is done.
func (c streamConn) count(ctx context.Context, topic, after string, s *redis.XInfoStream) (int64, error) {
	var ahead, behind int64
	for from, to := "("+after, after; ; {
		newer, err := c.client.XRangeN(ctx, topic, from, s.LastGeneratedID, page).Result()
		if err != nil {
			return 0, err
		}
		if ahead += int64(len(newer)); len(newer) < page {
			return ahead, nil
		}
		from = "(" + newer[page-1].ID
		older, err := c.client.XRevRangeN(ctx, topic, to, s.FirstEntry.ID, page).Result()
		if err != nil {
			return 0, err
		}
		if behind += int64(len(older)); len(older) < page {
			return s.Length - behind, nil
		}
		to = "(" + older[page-1].ID
	}
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
