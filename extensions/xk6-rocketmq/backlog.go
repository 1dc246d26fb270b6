package rocketmq

import (
	"context"
	"fmt"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// Backlog counts the messages behind the group's position in each queue and retry queue. It is an
// estimate, except of FIFO topics, because the position may be past unsettled messages.
func (c *conn) Backlog(ctx context.Context, topic, group string) (all driver.Backlog, err error) {
	route, err := c.find(ctx, topic)
	if err != nil {
		return all, fmt.Errorf("topic %s: %w", topic, err)
	}
	all.Estimate = !route.fifo()
	parts, err := c.admin.parts(ctx, topic)
	if err != nil {
		return all, fmt.Errorf("topic %s: %w", topic, err)
	}
	for _, p := range parts {
		for queue := range p.queues {
			n, err := c.admin.behind(ctx, p.set, topic, group, queue)
			if err != nil {
				return all, fmt.Errorf("group %s: %w", group, err)
			}
			all.Messages += n
		}
		n, err := c.admin.behind(ctx, p.set, retryPrefix+group+"_"+topic, group, 0)
		if err != nil && !isNotFound(err) {
			return all, fmt.Errorf("group %s: %w", group, err)
		}
		all.Messages += n
	}
	return all, nil
}

// behind is how far the group's position is from the end of a queue.
func (a *admin) behind(ctx context.Context, s set, topic, group string, queue int) (int64, error) {
	at := position(topic, group, queue)
	reached, err := a.offset(ctx, s, queryOffset, at)
	if err != nil {
		return 0, err
	}
	end, err := a.offset(ctx, s, maxOffset, at)
	return max(0, end-reached), err
}
