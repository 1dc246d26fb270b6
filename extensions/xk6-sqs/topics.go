package sqs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// differenceError is that a queue exists and is otherwise than asked for.
type differenceError struct{ queue, attribute, has, want string }

func (e *differenceError) Error() string {
	return fmt.Sprintf("the queue %s exists, and its %s is %q, not %q", e.queue, e.attribute, e.has, e.want)
}

// ErrorCode is the service's name for it.
func (e *differenceError) ErrorCode() string { return "QueueNameExists" }

// CreateTopic creates the queue and its dead-letter queue. An existing queue must have the same
// attributes.
func (c *conn) CreateTopic(ctx context.Context, s driver.TopicSpec) error {
	name, err := c.queueName(s.Name)
	if err != nil {
		return err
	}
	want, err := c.attributes(ctx, s.Options)
	if err != nil {
		return err
	}
	return c.create(ctx, name, want)
}

// attributes returns the attributes for the options.
func (c *conn) attributes(ctx context.Context, o driver.Values) (map[string]string, error) {
	want := map[string]string{}
	for name, value := range o.Map("attributes") {
		want[name] = driver.Text(value)
	}
	if d := o.Duration("retention"); d > 0 {
		if d < time.Minute {
			return nil, &driver.OptionError{Name: "retention", Err: fmt.Errorf("%v is not 0 or from 1m to 336h", d)}
		}
		want[string(types.QueueAttributeNameMessageRetentionPeriod)] = strconv.Itoa(int(d / time.Second))
	}
	if dead := o.String("deadLetterQueue"); dead != "" {
		policy, err := c.redrive(ctx, dead, o.Int("maxReceiveCount"))
		if err != nil {
			return nil, fmt.Errorf("the dead-letter queue: %w", err)
		}
		want[string(types.QueueAttributeNameRedrivePolicy)] = policy
	}
	if c.kind == fifo {
		want[string(types.QueueAttributeNameFifoQueue)] = "true"
	}
	return want, nil
}

// redrive returns the policy for a dead-letter queue, and creates that if it does not exist.
func (c *conn) redrive(ctx context.Context, dead string, most int64) (string, error) {
	name, err := c.queueName(dead)
	if err != nil {
		return "", err
	}
	kind := map[string]string{}
	if c.kind == fifo {
		kind[string(types.QueueAttributeNameFifoQueue)] = "true"
	}
	if err := c.create(ctx, name, kind); err != nil {
		return "", err
	}
	url, err := c.queue(ctx, dead)
	if err != nil {
		return "", err
	}
	has, err := c.has(ctx, url, types.QueueAttributeNameQueueArn)
	if err != nil {
		return "", err
	}
	policy, err := json.Marshal(
		map[string]any{"deadLetterTargetArn": has[string(types.QueueAttributeNameQueueArn)], "maxReceiveCount": most},
	)
	return string(policy), err
}

// create compares first, because the service reports a difference without its name.
func (c *conn) create(ctx context.Context, name string, want map[string]string) error {
	url, err := c.queue(ctx, name)
	if err != nil && classify(err) != driver.NotFound {
		return err
	}
	if err == nil {
		return c.compare(ctx, name, url, want)
	}
	within, cancel := c.within(ctx)
	defer cancel()
	_, err = c.CreateQueue(within, &sqs.CreateQueueInput{QueueName: aws.String(name), Attributes: want})
	if errors.As(err, new(*types.QueueNameExists)) { // by somebody else, meanwhile
		if url, err = c.queue(ctx, name); err == nil {
			err = c.compare(ctx, name, url, want)
		}
	}
	return err
}

// compare returns an error if an existing queue has other attributes.
func (c *conn) compare(ctx context.Context, name, url string, want map[string]string) error {
	if len(want) == 0 {
		return nil
	}
	has, err := c.has(ctx, url, types.QueueAttributeNameAll)
	if err != nil {
		return err
	}
	for _, a := range slices.Sorted(maps.Keys(want)) {
		if !equal(has[a], want[a]) {
			return &differenceError{name, a, has[a], want[a]}
		}
	}
	return nil
}

// equal compares values of an attribute; some are JSON.
func equal(a, b string) bool {
	x, y := map[string]any{}, map[string]any{}
	if a == b || json.Unmarshal([]byte(a), &x) != nil || json.Unmarshal([]byte(b), &y) != nil {
		return a == b
	}
	return maps.EqualFunc(x, y, func(v, w any) bool { return fmt.Sprint(v) == fmt.Sprint(w) })
}

// has asks for attributes of a queue.
func (c *conn) has(ctx context.Context, url string, names ...types.QueueAttributeName) (map[string]string, error) {
	ctx, cancel := c.within(ctx)
	defer cancel()
	out, err := c.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: aws.String(url), AttributeNames: names})
	if err != nil {
		return nil, err
	}
	return out.Attributes, nil
}

// DeleteTopic deletes the queue. Its dead-letter queue stays: others may have it, too.
func (c *conn) DeleteTopic(ctx context.Context, topic string) error {
	url, err := c.queue(ctx, topic)
	if err != nil {
		return err
	}
	ctx, cancel := c.within(ctx)
	defer cancel()
	_, err = c.DeleteQueue(ctx, &sqs.DeleteQueueInput{QueueUrl: aws.String(url)})
	return err
}

// PurgeTopic removes the messages. AWS does so once a minute, and takes as long.
func (c *conn) PurgeTopic(ctx context.Context, topic string) error {
	url, err := c.queue(ctx, topic)
	if err != nil {
		return err
	}
	ctx, cancel := c.within(ctx)
	defer cancel()
	_, err = c.PurgeQueue(ctx, &sqs.PurgeQueueInput{QueueUrl: aws.String(url)})
	return err
}

// Backlog returns the service's estimate.
func (c *conn) Backlog(ctx context.Context, topic, group string) (driver.Backlog, error) {
	if group != "" {
		return driver.Backlog{}, errGroups
	}
	url, err := c.queue(ctx, topic)
	if err != nil {
		return driver.Backlog{}, err
	}
	numbers := []types.QueueAttributeName{
		types.QueueAttributeNameApproximateNumberOfMessages, types.QueueAttributeNameApproximateNumberOfMessagesNotVisible,
		types.QueueAttributeNameApproximateNumberOfMessagesDelayed,
	}
	has, err := c.has(ctx, url, numbers...)
	if err != nil {
		return driver.Backlog{}, err
	}
	b := driver.Backlog{Estimate: true}
	for _, name := range numbers {
		n, err := strconv.ParseInt(has[string(name)], 10, 64)
		if err != nil {
			return driver.Backlog{}, fmt.Errorf("the queue's %s: %w", name, err)
		}
		b.Messages += n
	}
	return b, nil
}
