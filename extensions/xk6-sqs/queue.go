package sqs

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// suffix is how the name of every FIFO queue ends.
const suffix = ".fifo"

var errStandard = fmt.Errorf("it ends in %s, as FIFO queues do: they are the driver sqs-fifo's", suffix)

// queueName is the name of a topic's queue.
func (c *conn) queueName(topic string) (string, error) {
	named := strings.HasSuffix(topic, suffix)
	switch {
	case topic == "":
		return "", &driver.OptionError{Name: "topic", Err: errors.New("it is empty")}
	case c.kind == standard && named:
		return "", &driver.OptionError{Name: "topic", Err: errStandard}
	case c.kind == fifo && !named:
		return topic + suffix, nil
	}
	return topic, nil
}

// queue finds a topic's queue.
func (c *conn) queue(ctx context.Context, topic string) (url string, err error) {
	name, err := c.queueName(topic)
	if err != nil {
		return "", err
	}
	ctx, cancel := c.within(ctx)
	defer cancel()
	out, err := c.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: aws.String(name)})
	if err != nil {
		return "", err
	}
	return aws.ToString(out.QueueUrl), nil
}
