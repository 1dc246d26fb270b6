package pulsar

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// Backlog is what the group has not settled. The broker counts entries, each of which is a message where producers do not batch. Where they do,
// it is asked to look into the entries, which it does for the oldest 10,000 of a partition; those beyond count as one message each, and a batch of
// which a part is settled counts as a whole.
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
	all := driver.Backlog{Estimate: c.cumulative.Load()} // what it settles the application need not have
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
	of, ok := stats.Subscriptions[group]
	if !ok {
		return 0, &statusError{code: http.StatusNotFound, what: "admin API", reason: "no subscription " + group}
	}
	if of.Entries == 0 || t.domain == nonPersistent {
		return of.Entries, nil
	}
	var internal struct {
		Added int64 `json:"entriesAddedCounter"` // since the broker has the topic
	}
	if err := a.call(ctx, http.MethodGet, t.path()+"/internalStats", nil, &internal); err != nil {
		return 0, err
	}
	if internal.Added >= stats.In && internal.Added >= of.Entries {
		return of.Entries, nil
	}
	var within struct {
		Entries  int64 `json:"entries"`
		Messages int64 `json:"messages"`
	}
	if err := a.call(ctx, http.MethodPost, t.path()+"/subscription/"+url.PathEscape(group)+"/analyzeBacklog", nil, &within); err != nil {
		return 0, err
	}
	return within.Messages + max(0, of.Entries-within.Entries), nil
}
