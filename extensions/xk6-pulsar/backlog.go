package pulsar

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// Backlog returns the messages that the group has not settled. The broker counts entries. If
// producers batch, it looks into the oldest 10,000 entries of a partition. Entries beyond count as
// one message, a batch settled in part counts as a whole.
func (c *conn) Backlog(ctx context.Context, topic, group string) (driver.Backlog, error) {
	t, n, err := c.find(ctx, topic)
	if err != nil {
		return driver.Backlog{}, err
	}
	parts := []topicName{t}
	if n > 0 {
		parts = make([]topicName, n)
		for i := range parts {
			parts[i] = t
			parts[i].local = fmt.Sprintf("%s-partition-%d", t.local, i)
		}
	}
	var all driver.Backlog
	for _, part := range parts {
		messages, err := c.admin.backlog(ctx, part, group)
		if err != nil {
			return driver.Backlog{}, fmt.Errorf("topic %s: %w", topic, err)
		}
		all.Messages += messages
	}
	return all, nil
}

func (a *admin) backlog(ctx context.Context, t topicName, group string) (int64, error) {
	var stats struct {
		In            int64 `json:"msgInCounter"` // messages since the broker has the topic
		Subscriptions map[string]struct {
			Entries int64 `json:"msgBacklog"`
		} `json:"subscriptions"`
	}
	if err := a.call(ctx, http.MethodGet, t.path()+"/stats?getPreciseBacklog=true", nil, &stats); err != nil {
		return 0, err
	}
	subscription, ok := stats.Subscriptions[group]
	if !ok {
		return 0, &statusError{code: http.StatusNotFound, reason: "no subscription " + group}
	}
	entries := subscription.Entries
	if entries == 0 || t.domain == nonPersistent {
		return entries, nil
	}
	var internal struct {
		Added int64 `json:"entriesAddedCounter"` // since the broker has the topic
	}
	if err := a.call(ctx, http.MethodGet, t.path()+"/internalStats", nil, &internal); err != nil {
		return 0, err
	}
	if internal.Added >= stats.In && internal.Added >= entries {
		return entries, nil
	}
	var within struct {
		Entries  int64 `json:"entries"`
		Messages int64 `json:"messages"`
	}
	path := t.path() + "/subscription/" + url.PathEscape(group) + "/analyzeBacklog"
	if err := a.call(ctx, http.MethodPost, path, nil, &within); err != nil {
		return 0, err
	}
	return within.Messages + max(0, entries-within.Entries), nil
}
