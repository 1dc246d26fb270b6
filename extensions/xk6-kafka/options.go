package kafka

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// commonOptions are the options of all drivers, for connections, producers and topics.
func commonOptions() []driver.Option {
	return slices.Concat(driver.ConnectOptions(), connectOptions, producerOptions, topicOptions)
}

var connectOptions = []driver.Option{
	{
		Name: "sasl", Scope: driver.OnConnect, Type: driver.Enum, Default: "auto",
		Allowed: []string{"auto", "none", "plain", "scram-sha-256", "scram-sha-512", "oauthbearer"},
		Doc: "How to authenticate; auto is oauthbearer where there is a token, plain where there is a user, " +
			"else none.",
	},
	{
		Name: "token", Scope: driver.OnConnect, Type: driver.String, Secret: true,
		Doc: "The bearer token of oauthbearer.",
	},
	{
		Name: "tokenFile", Scope: driver.OnConnect, Type: driver.File,
		Doc: "File with the bearer token of oauthbearer, read again for each connection.",
	},
	{
		Name: "ignoreAdvertised", Scope: driver.OnConnect, Type: driver.Bool, Default: "false",
		Doc: "Connect to the URL's one host whatever address the broker advertises: for one broker behind a " +
			"proxy or a forwarded port.",
	},
	{
		Name: "requestTimeout", Scope: driver.OnConnect, Type: driver.Duration, Default: "10s",
		Min: int64(100 * time.Millisecond), Max: int64(15 * time.Minute),
		Doc: "How long a request other than produce and fetch is retried, and how long an answer may be " +
			"overdue until the connection is closed.",
	},
}

var producerOptions = []driver.Option{
	{
		Name: "acks", Scope: driver.OnProducer, Type: driver.Enum, Default: "all",
		Allowed: []string{"all", "leader", "none"},
		Doc:     "Who has written a message when it is confirmed: all in-sync replicas, the leader, or none.",
	},
	{
		Name: "idempotence", Scope: driver.OnProducer, Type: driver.Bool, Default: "true",
		Doc: "Number the messages so that the broker drops what a retry sends twice; without effect unless " +
			"acks is all.",
	},
	{
		Name: "inFlight", Scope: driver.OnProducer, Type: driver.Int, Default: "5", Min: 1,
		Doc: "Produce requests in flight per broker where idempotence is off; with it there are always up to 5.",
	},
	{
		Name: "retries", Scope: driver.OnProducer, Type: driver.Int, Default: "2147483647",
		Doc: "How often the client sends a message again before it fails, within deliveryTimeout. With 0 the " +
			"first failure fails all messages that are buffered for its partition, too.",
	},
	{
		Name: "deliveryTimeout", Scope: driver.OnProducer, Type: driver.Duration, Default: "30s",
		Min: int64(time.Second), Max: int64(time.Hour),
		Doc: "How long a message may wait to be sent, or for the broker's answer, before it fails.",
	},
	{
		Name: "linger", Scope: driver.OnProducer, Type: driver.Duration, Default: "0", Max: int64(time.Minute),
		Profile: map[driver.Profile]string{driver.Throughput: "5ms"},
		Doc:     "How long a batch waits for more messages.",
	},
	{
		Name: "compression", Scope: driver.OnProducer, Type: driver.Enum, Default: "none",
		Allowed: []string{"none", "gzip", "snappy", "lz4", "zstd"}, Doc: "The codec of batches.",
	},
	{
		Name: "batchMaxBytes", Scope: driver.OnProducer, Type: driver.Size, Default: "1048588", Min: 1 << 10,
		Max: 1 << 30,
		Doc: "The largest batch, in bytes before compression; the broker's message.max.bytes has the last word.",
	},
	{
		Name: "partitioner", Scope: driver.OnProducer, Type: driver.Enum, Default: "sticky",
		Allowed: []string{"sticky", "uniform", "roundrobin"},
		Doc: "Where messages without a key go: sticky to one partition until its batch is full or sent, " +
			"uniform to one for 64 KiB, roundrobin in turn (keys ignored). Keys are hashed as Kafka's own " +
			"client does (murmur2).",
	},
	{
		Name: "partition", Scope: driver.OnProducer | driver.OnMessage, Type: driver.Int, Default: "-1", Min: -1,
		Doc: "The one partition to send to; -1 leaves it to the partitioner.",
	},
}

var topicOptions = []driver.Option{
	{
		Name: "retention", Scope: driver.OnTopic, Type: driver.Duration, Default: "0",
		Step: int64(time.Millisecond), ZeroIsDefault: true,
		Doc: "How long messages are kept (retention.ms), whole milliseconds; 0 is the broker's default, and " +
			"takes a topic that exists as it is.",
	},
	{
		Name: "minInsyncReplicas", Scope: driver.OnTopic, Type: driver.Int, Default: "0", ZeroIsDefault: true,
		Profile: map[driver.Profile]string{driver.Durable: "2"},
		Doc: "How many replicas must have a message for acks=all to succeed (min.insync.replicas), at most all " +
			"there are; 0 is the broker's default, and takes a topic that exists as it is.",
	},
	{
		Name: "configs", Scope: driver.OnTopic, Type: driver.Map,
		Doc: "Any other topic configs, such as { 'cleanup.policy': 'compact,delete' }; in a URL " +
			"configs=name=value, once for each.",
	},
}

// fetchOptions are the options of every consumer.
func fetchOptions(maxWait string) []driver.Option {
	return []driver.Option{
		{
			Name: "fetchMaxWait", Scope: driver.OnConsumer, Type: driver.Duration, Default: maxWait,
			Min: int64(10 * time.Millisecond), Max: int64(time.Minute),
			Doc: "How long the broker holds a fetch that finds no message; a message that comes ends it at once.",
		},
		{
			Name: "fetchMinBytes", Scope: driver.OnConsumer, Type: driver.Size, Default: "1", Min: 1, Max: 1 << 30,
			Doc: "How many bytes the broker waits for, up to fetchMaxWait, before it answers a fetch.",
		},
		{
			Name: "fetchMaxBytes", Scope: driver.OnConsumer, Type: driver.Size, Default: "50MiB", Min: 1, Max: 1 << 30,
			Doc: "The most bytes of one fetch.",
		},
		{
			Name: "fetchMaxPartitionBytes", Scope: driver.OnConsumer, Type: driver.Size, Default: "1MiB", Min: 1,
			Max: 1 << 30,
			Doc: "The most bytes of one partition in one fetch.",
		},
	}
}

// Defaults of options for the classic protocol of groups.
const (
	sessionTimeout    = 45 * time.Second
	heartbeatInterval = 500 * time.Millisecond
)

// checkProtocol refuses options that the group's protocol would ignore.
func checkProtocol(v driver.Values) error {
	if v.String("groupProtocol") != "consumer" {
		return nil
	}
	for _, o := range []struct {
		name, broker string
		def          time.Duration
	}{
		{"sessionTimeout", "group.consumer.session.timeout.ms", sessionTimeout},
		{"heartbeatInterval", "group.consumer.heartbeat.interval.ms", heartbeatInterval},
	} {
		if given := v.Duration(o.name); given != o.def {
			err := fmt.Errorf("%v is for groupProtocol=classic: with consumer the broker decides (%s)", given, o.broker)
			return &driver.OptionError{Name: o.name, Err: err}
		}
	}
	return nil
}

func groupOptions() []driver.Option {
	return slices.Concat(fetchOptions("500ms"), membershipOptions(), []driver.Option{{
		Name: "commitInterval", Scope: driver.OnConsumer, Type: driver.Duration, Default: "250ms",
		Min: int64(100 * time.Millisecond), Max: int64(time.Hour),
		Doc: "How long an ack may wait for its commit if no confirmation is asked for.",
	}})
}

// membershipOptions are the options of every member of a consumer group.
func membershipOptions() []driver.Option {
	return []driver.Option{
		{
			Name: "groupProtocol", Scope: driver.OnConsumer, Type: driver.Enum, Default: "classic",
			Allowed: []string{"classic", "consumer"},
			Doc: "Who assigns partitions: a member (classic, cooperative-sticky) or the broker (consumer, KIP-848, " +
				"Kafka 4).",
		},
		{
			Name: "sessionTimeout", Scope: driver.OnConsumer, Type: driver.Duration, Default: sessionTimeout.String(),
			Min: int64(time.Second), Max: int64(time.Hour),
			Doc: "How long a silent member keeps its partitions; classic only.",
		},
		{
			Name: "heartbeatInterval", Scope: driver.OnConsumer, Type: driver.Duration,
			Default: heartbeatInterval.String(), Min: int64(10 * time.Millisecond), Max: int64(time.Hour),
			Doc: "How often a member asks whether the group has changed, and so how long a new member may wait for " +
				"the others; classic only.",
		},
	}
}

func shareOptions() []driver.Option { return fetchOptions("100ms") }

func kmqOptions() []driver.Option {
	common := commonOptions()
	for i := range common {
		if o := &common[i]; o.Name == "batchMaxBytes" {
			o.Default, o.Max = strconv.Itoa(kmqBatchBytes), kmqBatchBytes
			o.Doc = "The largest batch, in bytes before compression; a larger one could not be sent again within " +
				"a broker's default message.max.bytes."
		}
	}
	return slices.Concat(common, fetchOptions("500ms"), membershipOptions(), []driver.Option{
		{
			Name: "redeliverAfter", Scope: driver.OnConsumer, Type: driver.Duration, Default: "30s",
			Min: int64(100 * time.Millisecond), Max: int64(24 * time.Hour), Step: int64(time.Millisecond),
			Doc: "How long a message may be with a consumer, from when it is marked as begun, until it is sent " +
				"again, whole milliseconds.",
		},
		{
			Name: "maxAttempts", Scope: driver.OnConsumer, Type: driver.Int, Default: "0", Max: 1 << 30,
			Doc: "After how many deliveries a message that is not acknowledged is given up: sent to " +
				"deadLetterTopic, or dropped where there is none; 0 is without end.",
		},
		{
			Name: "deadLetterTopic", Scope: driver.OnConsumer, Type: driver.String,
			Doc: "The topic, which must be there, that gets messages that are rejected or given up; without it " +
				"they are dropped.",
		},
	})
}
