package pulsar

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// CreateTopic creates a topic, which is partitioned if it has more than one partition.
func (c *conn) CreateTopic(ctx context.Context, s driver.TopicSpec) error {
	t, err := c.topic(s.Name)
	if err != nil {
		return err
	}
	if s.Partitions > 1 {
		err = c.admin.call(ctx, http.MethodPut, t.path()+"/partitions", s.Partitions, nil)
	} else {
		err = c.admin.call(ctx, http.MethodPut, t.path(), nil, nil)
	}
	if status := (*statusError)(nil); errors.As(err, &status) && status.code == http.StatusConflict {
		return nil
	}
	if err != nil {
		return fmt.Errorf("topic %s: %w", s.Name, err)
	}
	if keep := s.Options.Duration("retention"); keep > 0 {
		policy := retention{int64(keep / time.Minute), -1}
		if err := c.admin.call(ctx, http.MethodPost, t.path()+"/retention", policy, nil); err != nil {
			return fmt.Errorf("topic %s: retention: %w", s.Name, err)
		}
	}
	return nil
}

// retention is the retention policy of a topic.
type retention struct {
	Minutes int64 `json:"retentionTimeInMinutes"`
	MiB     int64 `json:"retentionSizeInMB"` // -1 is no limit
}

// DescribeTopic asks the admin API.
func (c *conn) DescribeTopic(ctx context.Context, topic string) (info driver.TopicInfo, err error) {
	t, err := c.topic(topic)
	if err != nil {
		return info, err
	}
	n, err := c.admin.partitions(ctx, t)
	if err != nil {
		return info, fmt.Errorf("topic %s: %w", topic, err)
	}
	info = driver.TopicInfo{Partitions: max(1, n), Replicas: 1}
	if t.domain == nonPersistent {
		return info, nil
	}
	if q, err := c.admin.persistence(ctx, t); err == nil {
		info.Replicas = max(1, q.Write)
	}
	var keep retention
	err = c.admin.call(ctx, http.MethodGet, t.path()+"/retention?applied=true", nil, &keep)
	if err == nil && keep.Minutes >= 0 {
		info.Options = driver.Values{"retention": time.Duration(keep.Minutes) * time.Minute}
	}
	return info, nil // a user may see topics without their policies
}

// DeleteTopic deletes a topic with its subscriptions, also while clients are connected to it.
func (c *conn) DeleteTopic(ctx context.Context, topic string) error {
	t, n, err := c.find(ctx, topic)
	if err != nil {
		return err
	}
	path := t.path()
	if n > 0 {
		path += "/partitions"
	}
	if err := c.admin.call(ctx, http.MethodDelete, path+"?force=true", nil, nil); err != nil {
		return fmt.Errorf("topic %s: %w", topic, err)
	}
	return nil
}

// PurgeTopic moves every subscription to the end, and drops the ledgers before it.
func (c *conn) PurgeTopic(ctx context.Context, topic string) error {
	t, _, err := c.find(ctx, topic)
	if err != nil {
		return err
	}
	if t.domain == nonPersistent {
		return fmt.Errorf("topic %s keeps nothing: %w", topic, errors.ErrUnsupported)
	}
	if err := c.admin.call(ctx, http.MethodDelete, t.path()+"/truncate", nil, nil); err != nil {
		return fmt.Errorf("topic %s: %w", topic, err)
	}
	return nil
}

// find parses the name of an existing topic, and returns its number of partitions.
func (c *conn) find(ctx context.Context, topic string) (topicName, int, error) {
	t, err := c.topic(topic)
	if err != nil {
		return t, 0, err
	}
	n, err := c.admin.partitions(ctx, t)
	if err != nil {
		return t, 0, fmt.Errorf("topic %s: %w", topic, err)
	}
	return t, n, nil
}

// unsubscribe deletes a subscription without consumers.
func (c *conn) unsubscribe(ctx context.Context, t topicName, subscription string) error {
	path := t.path() + "/subscription/" + url.PathEscape(subscription) + "?force=true"
	err := c.admin.call(ctx, http.MethodDelete, path, nil, nil)
	if status := (*statusError)(nil); errors.As(err, &status) && status.code == http.StatusNotFound {
		return nil // deleted with the topic
	}
	if err != nil {
		return fmt.Errorf("subscription %s stays: %w", subscription, err)
	}
	return nil
}
