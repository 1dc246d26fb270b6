package sqs

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// idleConnections is the number of connections of the client for administration, which is lent.
const idleConnections = 8

// conn is one account and region, or one server, with a client for administration.
type conn struct {
	kind     kind
	endpoint *endpoint
	timeout  time.Duration
	*client
}

func open(ctx context.Context, t driver.Target, k kind) (driver.Conn, error) {
	e, err := newEndpoint(ctx, t)
	if err != nil {
		return nil, err
	}
	c := &conn{kind: k, endpoint: e, timeout: t.Options.Duration("timeout"), client: e.client(idleConnections)}
	if err := c.greet(ctx, t.Options.Duration("connectTimeout")); err != nil {
		c.hangUp()
		return nil, err
	}
	return c, nil
}

// greet checks that the service answers and accepts the credentials. A refusal to list queues is an
// answer.
func (c *conn) greet(ctx context.Context, timeout time.Duration) error {
	within, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	_, err := c.ListQueues(within, &sqs.ListQueuesInput{MaxResults: aws.Int32(1)})
	switch {
	case err == nil, forbidden(err):
		return nil
	case ctx.Err() == nil && within.Err() != nil:
		return fmt.Errorf("no answer from %s within %v: %w", c.endpoint, timeout, context.DeadlineExceeded)
	}
	return err
}

// within bounds a request.
func (c *conn) within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, c.timeout)
}

// Proof returns AWS's own description of its storage, or for another server Accepted.
func (c *conn) Proof(context.Context, driver.ProducerConfig, *driver.TopicSpec) driver.Proof {
	if c.endpoint.amazon {
		return driver.Proof{
			Confirm: driver.Replicated,
			How:     "Amazon SQS, which keeps several copies and does not tell how many",
		}
	}
	return driver.Proof{
		Confirm: driver.Accepted,
		How:     "a server that speaks SQS, which does not tell what it keeps, and where",
	}
}

// Info describes the server.
func (c *conn) Info() driver.Info {
	server := "SQS at " + c.endpoint.String()
	if c.endpoint.amazon {
		server = "Amazon SQS, " + c.endpoint.config.Region
	}
	return driver.Info{
		Server: server,
		Client: "aws-sdk-go-v2/service/sqs" + driver.ModuleVersion("github.com/aws/aws-sdk-go-v2/service/sqs"),
	}
}

// As lends the client library's client.
func (c *conn) As(target any) bool { return driver.As(target, c.Client) }

// Close closes the connections for administration.
func (c *conn) Close(context.Context) error {
	c.hangUp()
	return nil
}
