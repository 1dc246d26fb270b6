package kafka

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// maxMessageBytes is the largest body, without key and headers, that fits into a record batch of 1048588 bytes: a
// broker's message.max.bytes unless it is configured otherwise.
const maxMessageBytes = 1_048_512

// correlation are the names that Spring for Apache Kafka has given to the headers, by which others answer requests too.
var correlation = driver.Correlation{ID: "kafka_correlationId", ReplyTo: "kafka_replyTopic"}

var protocol = driver.Protocol{Name: "the protocol of Kafka"}

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
	driver.Register(driver.Driver{
		Name:        "kafka",
		Schemes:     []string{"kafka", "kafka+tls", "redpanda", "redpanda+tls"},
		Doc:         "Apache Kafka and what speaks its protocol: partitioned topics, consumer groups that commit offsets.",
		Protocol:    protocol,
		Features:    features,
		Correlation: correlation,
		Options:     append(commonOptions(), groupOptions()...),
		Open: func(ctx context.Context, t driver.Target) (driver.Conn, error) {
			return open(ctx, t, (*conn).newGroupConsumer, (*conn).groupBacklog)
		},
		Classify: classify,
		Place:    place,
	})

	features.Order = driver.Unordered
	features.Settle = driver.Ack | driver.Requeue | driver.Reject
	features.Fanout = false
	features.Attempts = true
	driver.Register(driver.Driver{
		Name:        "kafka-share",
		Schemes:     []string{"kafka-share", "kafka-share+tls"},
		Doc:         "Apache Kafka's share groups (KIP-932): a topic used as a queue, each message settled by itself.",
		Protocol:    protocol,
		Features:    features,
		Correlation: correlation,
		Options:     append(commonOptions(), shareOptions()...),
		Open: func(ctx context.Context, t driver.Target) (driver.Conn, error) {
			return open(ctx, t, (*conn).newShareConsumer, (*conn).shareBacklog)
		},
		Classify: classify,
		Place:    place,
	})

	features.Order = driver.PerPartition
	features.MaxMessageBytes = maxKMQMessageBytes
	driver.Register(driver.Driver{
		Name:        "kmq",
		Schemes:     []string{"kmq", "kmq+tls"},
		Doc:         "KMQ's protocol on Apache Kafka: a topic used as a queue by a consumer group, each message settled by itself through a topic of markers.",
		Protocol:    protocol,
		Features:    features,
		Correlation: correlation,
		Options:     kmqOptions(),
		Open:        openKMQ,
		Classify:    classify,
		Place:       kmqPlace,
	})
}

// conn is a connection to a cluster. Its own client does what is neither producing nor consuming; every producer and
// every consumer has a client, and so connections, of its own.
type conn struct {
	client  *client
	admin   *kadm.Client
	options []kgo.Opt // what every client of this connection is made with
	hosts   string
	info    driver.Info
	timeout time.Duration // of requests

	consume func(*conn, context.Context, driver.ConsumerConfig) (driver.Consumer, error)
	backlog func(*conn, context.Context, string, string) (driver.Backlog, error)

	mu      sync.Mutex
	members map[*groupConsumer]struct{} // the open consumers of groups
	sharing map[*shareConsumer]struct{} // those of share groups
}

func open(
	ctx context.Context, t driver.Target,
	consume func(*conn, context.Context, driver.ConsumerConfig) (driver.Consumer, error),
	backlog func(*conn, context.Context, string, string) (driver.Backlog, error),
) (driver.Conn, error) {
	c, err := dial(ctx, t)
	if err != nil {
		return nil, err
	}
	c.consume, c.backlog = consume, backlog
	return c, nil
}

func dial(ctx context.Context, t driver.Target) (*conn, error) {
	options, err := clientOptions(t)
	if err != nil {
		return nil, err
	}
	c := &conn{
		options: options, hosts: strings.Join(t.Hosts, ","), timeout: t.Options.Duration("requestTimeout"),
		members: map[*groupConsumer]struct{}{}, sharing: map[*shareConsumer]struct{}{},
	}
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
			return nil, fmt.Errorf("no answer from %s within %s: %w", strings.Join(t.Hosts, ","), timeout, greeting.Err())
		}
		if first := (*kgo.ErrFirstReadEOF)(nil); errors.As(err, &first) {
			err = &refusedError{err}
		}
		return nil, err
	}
	return c, nil
}

// greet proves that the cluster answers and learns what it is.
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
	c.info = driver.Info{Server: product(metadata.Cluster, guess), Client: "franz-go" + clientVersion(), Nodes: len(metadata.Brokers)}
	return nil
}

// product is who answers. Redpanda begins the cluster's id with its name, so that clients can tell it from others, and the protocol tells no version of
// it. protocol is the version of Apache Kafka that has the same requests, or "".
func product(clusterID, protocol string) string {
	switch redpanda := strings.HasPrefix(clusterID, "redpanda."); {
	case redpanda && protocol == "":
		return "Redpanda, by its cluster id"
	case redpanda:
		return "Redpanda, by its cluster id, with the protocol of Apache Kafka " + protocol
	case protocol == "":
		return "Apache Kafka"
	}
	return "Apache Kafka " + protocol + ", by its protocol"
}

// clientVersion is the version of franz-go that this program was built with, after a space.
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

// Backlog is how far the group's committed offsets are behind the ends of the partitions, or behind their starts where
// the group has committed nothing. Share groups count what is in flight too. Of a topic that is compacted it is an estimate: nobody returns which offsets have a
// record.
func (c *conn) Backlog(ctx context.Context, topic, group string) (driver.Backlog, error) {
	b, err := c.backlog(c, ctx, topic, group)
	b.Estimate = b.Messages > 0 && c.compacts(ctx, topic)
	return b, err
}

// compacts reports whether the broker removes records of a topic that others of their keys follow. Who may not ask has seen no such topic.
func (c *conn) compacts(ctx context.Context, topic string) bool {
	configs, err := c.configs(ctx, topic)
	return err == nil && strings.Contains(configs["cleanup.policy"], "compact")
}

func (c *conn) Info() driver.Info { return c.info }

// As lends the *kgo.Client and *kadm.Client that the connection itself uses.
func (c *conn) As(target any) bool {
	return driver.As(target, c.admin) || c.client.As(target)
}

// Close ends the connection's own client.
func (c *conn) Close(ctx context.Context) error {
	c.client.end(ctx)
	return nil
}

// newClient makes a client for one producer or consumer. By then the cluster has answered this connection: what closes a
// new connection at once is not a lack of TLS or SASL, as the library takes it for, but a broker that is going away.
func (c *conn) newClient(options ...kgo.Opt) (*client, error) {
	return newClient(slices.Concat(c.options, []kgo.Opt{kgo.AlwaysRetryEOF()}, options)...)
}

// patiently does again what failed for want of something that the broker is still getting ready: a coordinator, or news
// of a topic just made. It is for getting ready, not for what is measured.
func (c *conn) patiently(ctx context.Context, do func() error) error {
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
	detail, err := c.detail(ctx, topic)
	return len(detail.Partitions), err
}

// leaders returns how many brokers lead partitions of a topic.
func (c *conn) leaders(ctx context.Context, topic string) (int, error) {
	detail, err := c.detail(ctx, topic)
	leaders := map[int32]bool{}
	for _, p := range detail.Partitions {
		leaders[p.Leader] = true
	}
	return len(leaders), err
}

func (c *conn) detail(ctx context.Context, topic string) (detail kadm.TopicDetail, err error) {
	details, err := c.admin.ListTopicsWithInternal(ctx, topic)
	if err != nil {
		return detail, err
	}
	detail, ok := details[topic]
	switch {
	case !ok:
		return detail, errors.New("the broker's answer lacks the topic " + topic)
	case detail.Err != nil:
		return detail, fmt.Errorf("topic %s: %w", topic, detail.Err)
	}
	return detail, nil
}
