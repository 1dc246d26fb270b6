package kafka

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// maxMessageBytes is the largest body, without key and headers, in a record batch of 1048588 bytes:
// the default of a broker's message.max.bytes.
const maxMessageBytes = 1_048_512

// correlation has the header names of Spring for Apache Kafka.
var correlation = driver.Correlation{ID: "kafka_correlationId", ReplyTo: "kafka_replyTopic"}

func init() {
	features := driver.Features{
		Order:           driver.PerPartition,
		Confirm:         driver.Replicated,
		Deliver:         driver.AtLeastOnce,
		Settle:          driver.Ack,
		Start:           driver.StartNew | driver.StartEarliest,
		SettleConfirmed: driver.OnRequest,
		Async:           true,
		Replay:          true,
		Groups:          true,
		Fanout:          true,
		Key:             true,
		Headers:         true,
		Tombstones:      true,
		Partitions:      true,
		Position:        driver.Offset,
		Timestamps:      true,
		Receipts:        true,
		MaxMessageBytes: maxMessageBytes,
	}
	d := driver.Driver{
		Name:    "kafka",
		Schemes: []string{"kafka", "kafka+tls", "redpanda", "redpanda+tls"},
		Doc: "Apache Kafka and what speaks its protocol: partitioned topics, " +
			"consumer groups that commit offsets.",
		Features:    features,
		Correlation: correlation,
		Options:     append(commonOptions(), groupOptions()...),
		Open:        openWith((*conn).newGroupConsumer, (*conn).groupBacklog),
		Classify:    classify,
		Place:       place,
	}
	driver.Register(d)

	d.Features.Order = driver.Unordered
	d.Features.Settle = driver.Ack | driver.Requeue | driver.Reject
	d.Features.Fanout = false
	d.Features.Attempts = true
	d.Name = "kafka-share"
	d.Schemes = []string{"kafka-share", "kafka-share+tls"}
	d.Doc = "Apache Kafka's share groups (KIP-932): a topic used as a queue, each message settled by itself."
	d.Options = append(commonOptions(), shareOptions()...)
	d.Open = openWith((*conn).newShareConsumer, (*conn).shareBacklog)
	driver.Register(d)

	d.Features.Order = driver.PerPartition
	d.Features.MaxMessageBytes = maxKMQMessageBytes
	d.Name = "kmq"
	d.Schemes = []string{"kmq", "kmq+tls"}
	d.Doc = "KMQ's protocol on Apache Kafka: a topic used as a queue by a consumer group, " +
		"each message settled by itself through a topic of markers."
	d.Options = kmqOptions()
	d.Open = openKMQ
	d.Place = kmqPlace
	driver.Register(d)
}

// conn is a connection to a cluster. Its client is for administration. Every producer and consumer
// has a client, and so connections, of its own.
type conn struct {
	client  *client
	admin   *kadm.Client
	options []kgo.Opt // of every client of this connection
	hosts   string
	info    driver.Info
	timeout time.Duration // of requests

	consume func(*conn, context.Context, driver.ConsumerConfig) (driver.Consumer, error)
	backlog func(*conn, context.Context, string, string) (driver.Backlog, error)

	consumers registry
}

func openWith(
	consume func(*conn, context.Context, driver.ConsumerConfig) (driver.Consumer, error),
	backlog func(*conn, context.Context, string, string) (driver.Backlog, error),
) func(context.Context, driver.Target) (driver.Conn, error) {
	return func(ctx context.Context, t driver.Target) (driver.Conn, error) {
		c, err := dial(ctx, t)
		if err != nil {
			return nil, err
		}
		c.consume, c.backlog = consume, backlog
		return c, nil
	}
}

func dial(ctx context.Context, t driver.Target) (*conn, error) {
	options, err := clientOptions(t)
	if err != nil {
		return nil, err
	}
	c := &conn{options: options, hosts: strings.Join(t.Hosts, ","), timeout: t.Options.Duration("requestTimeout")}
	if c.client, err = newClient(options...); err != nil {
		return nil, err
	}
	c.admin = kadm.NewClient(c.client.Client)

	timeout := t.Options.Duration("connectTimeout")
	greeting, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	defer context.AfterFunc(greeting, c.client.abort)() // the library does not look at a context while it dials
	if err := c.greet(greeting); err != nil {
		c.client.drop()
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case greeting.Err() != nil:
			return nil, fmt.Errorf("no answer from %s within %s: %w", c.hosts, timeout, greeting.Err())
		}
		if first := (*kgo.ErrFirstReadEOF)(nil); errors.As(err, &first) {
			err = &refusedError{err}
		}
		return nil, err
	}
	return c, nil
}

// greet checks that the cluster answers and reads its description.
func (c *conn) greet(ctx context.Context) error {
	if err := c.client.Ping(ctx); err != nil {
		return err
	}
	metadata, err := c.admin.BrokerMetadata(ctx)
	if err != nil {
		return err
	}
	versions, err := c.admin.ApiVersions(ctx)
	if err != nil {
		return err
	}
	guess := ""
	for _, v := range versions {
		if v.Err == nil {
			guess = strings.TrimPrefix(v.VersionGuess(), "v")
			break
		}
	}
	c.info = driver.Info{
		Server: product(metadata.Cluster, guess), Client: "franz-go" + clientVersion(), Nodes: len(metadata.Brokers),
	}
	return nil
}

// product names the server. A cluster id of Redpanda begins with "redpanda.". protocol is the
// version of Apache Kafka with the same requests, or "".
func product(clusterID, protocol string) string {
	switch {
	case strings.HasPrefix(clusterID, "redpanda."):
		return "Redpanda"
	case protocol == "":
		return "Apache Kafka"
	}
	return "Apache Kafka " + protocol + ", by its protocol"
}

// clientVersion is the version of franz-go in this program, after a space.
func clientVersion() string {
	build, _ := debug.ReadBuildInfo()
	if build == nil {
		return ""
	}
	for _, m := range build.Deps {
		if m.Path == "github.com/twmb/franz-go" {
			return " " + m.Version
		}
	}
	return ""
}

func (c *conn) NewConsumer(ctx context.Context, cfg driver.ConsumerConfig) (driver.Consumer, error) {
	return c.consume(c, ctx, cfg)
}

// Backlog is the distance from the group's committed offsets, or the starts of partitions without a
// commit, to their ends. It is an estimate if the topic is compacted, because the offsets without a
// record are not known, and if the broker has dropped uncommitted messages.
func (c *conn) Backlog(ctx context.Context, topic, group string) (driver.Backlog, error) {
	b, err := c.backlog(c, ctx, topic, group)
	b.Estimate = b.Estimate || b.Messages > 0 && c.compacts(ctx, topic)
	return b, err
}

// compacts reports whether the broker compacts a topic; false if its configs cannot be read.
func (c *conn) compacts(ctx context.Context, topic string) bool {
	configs, err := c.configs(ctx, topic)
	return err == nil && strings.Contains(configs["cleanup.policy"], "compact")
}

func (c *conn) Info() driver.Info { return c.info }

// As lends the *kgo.Client and *kadm.Client that the connection itself uses.
func (c *conn) As(target any) bool {
	return driver.As(target, c.admin) || driver.As(target, c.client.Client)
}

// Close ends the connection's own client.
func (c *conn) Close(ctx context.Context) error {
	c.client.end(ctx)
	return nil
}

// newClient makes a client for one producer or consumer. The cluster has answered this connection
// before, so a connection that closes at once means a stopping broker, and not a lack of TLS or
// SASL.
func (c *conn) newClient(options ...kgo.Opt) (*client, error) {
	return newClient(slices.Concat(c.options, []kgo.Opt{kgo.AlwaysRetryEOF()}, options)...)
}

// retry repeats do while the broker is not ready, such as without a coordinator or a leader. It is
// for preparations only, not for measured operations.
func (c *conn) retry(ctx context.Context, do func() error) error {
	deadline := time.After(c.timeout)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := do()
		if !kerr.IsRetriable(err) {
			return err
		}
		select {
		case <-tick.C:
		case <-deadline:
			return err
		case <-ctx.Done():
			return fmt.Errorf("%w, after %w", ctx.Err(), err)
		}
	}
}

// partitions returns how many partitions a topic has.
func (c *conn) partitions(ctx context.Context, topic string) (int, error) {
	t, err := c.metadata(ctx, topic)
	return len(t.Partitions), err
}

// leaders returns how many brokers lead partitions of a topic.
func (c *conn) leaders(ctx context.Context, topic string) (int, error) {
	t, err := c.metadata(ctx, topic)
	leaders := map[int32]bool{}
	for _, p := range t.Partitions {
		leaders[p.Leader] = true
	}
	return len(leaders), err
}
