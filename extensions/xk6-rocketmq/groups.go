package rocketmq

import (
	"context"
	"fmt"
	"strconv"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-rocketmq/internal/remoting"
)

// orderError reports a group of the wrong kind.
type orderError struct {
	group string
	is    bool
}

func (e *orderError) Error() string {
	return fmt.Sprintf(
		"group %s is there with consumeMessageOrderly=%v, and messages of this topic need %v: a group of another name is made as they do",
		e.group,
		e.is,
		!e.is,
	)
}

// join creates a missing group and sets its missing positions.
func (c *conn) join(ctx context.Context, topic, group string, orderly bool, start driver.Start, attempts int64) error {
	parts, err := c.admin.parts(ctx, topic)
	if err != nil {
		return fmt.Errorf("topic %s: %w", topic, err)
	}
	for _, p := range parts {
		if err := c.admin.ensureGroup(ctx, p.set, group, orderly, attempts); err != nil {
			return fmt.Errorf("group %s: %w", group, err)
		}
		for queue := range p.queues {
			if err := c.admin.begin(ctx, p.set, topic, group, queue, start); err != nil {
				return fmt.Errorf("group %s: %w", group, err)
			}
		}
	}
	return nil
}

// ensureGroup creates a group at a broker. It sets the order and the number of attempts only.
func (a *admin) ensureGroup(ctx context.Context, s set, group string, orderly bool, attempts int64) error {
	var result struct {
		Orderly bool `json:"consumeMessageOrderly"`
	}
	_, body, err := a.broker.Call(ctx, s.master(), getGroup, map[string]string{"group": group}, nil)
	if err == nil {
		if err = remoting.Unmarshal(body, &result); err == nil && result.Orderly != orderly {
			err = &orderError{group, result.Orderly}
		}
		return err
	}
	if !isNotFound(err) {
		return err
	}
	_, _, err = a.broker.Call(ctx, s.master(), updateGroup, nil, text(map[string]any{
		"groupName": group, "consumeEnable": true, "consumeFromMinEnable": true, "consumeBroadcastEnable": true,
		"consumeMessageOrderly": orderly,
		"retryQueueNums":        1, "retryMaxTimes": attempts, "brokerId": 0, "whichBrokerWhenConsumeSlowly": 1,
		"notifyConsumerIdsChangedEnable": true,
	}))
	return err
}

// begin sets the position of a group in a queue without one.
func (a *admin) begin(ctx context.Context, s set, topic, group string, queue int, start driver.Start) error {
	at := position(topic, group, queue)
	if _, err := a.offset(ctx, s, queryOffset, at); !isNotFound(err) {
		return err
	}
	end := maxOffset
	if start == driver.StartEarliest {
		end = minOffset
	}
	offset, err := a.offset(ctx, s, end, at)
	if err != nil {
		return err
	}
	at["commitOffset"] = strconv.FormatInt(offset, 10)
	_, _, err = a.broker.Call(ctx, s.master(), updateOffset, at, nil)
	return err
}

// position are the fields that name a group's place in a queue.
func position(topic, group string, queue int) map[string]string {
	return map[string]string{
		"topic":             topic,
		"consumerGroup":     group,
		"queueId":           strconv.Itoa(queue),
		"setZeroIfNotFound": "false",
	}
}

// leave deletes a group of all brokers of a topic.
func (c *conn) leave(ctx context.Context, topic, group string) error {
	parts, err := c.admin.parts(ctx, topic)
	if isNotFound(err) {
		return nil // the topic is gone, and it with it
	}
	for _, p := range parts {
		if err == nil {
			err = c.admin.deleteGroup(ctx, p.set, group)
		}
	}
	if err != nil {
		return fmt.Errorf("group %s stays: %w", group, err)
	}
	return nil
}

func (a *admin) deleteGroup(ctx context.Context, s set, group string) error {
	_, _, err := a.broker.Call(
		ctx, s.master(), deleteGroup, map[string]string{"groupName": group, "cleanOffset": "true"}, nil,
	)
	if isNotFound(err) {
		return nil
	}
	return err
}
