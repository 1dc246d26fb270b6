package pulsar

import (
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

func connectOptions() []driver.Option {
	const on = driver.OnConnect
	return append(driver.ConnectOptions(), []driver.Option{
		{Name: "token", Scope: on, Secret: true, Doc: "The token (JWT) to authenticate with."},
		{Name: "tokenFile", Scope: on, Type: driver.File, Doc: "File with the token, read again for each connection."},
		{
			Name: "adminUrl", Scope: on,
			Doc: "The admin API, such as http://127.0.0.1:8080; the URL's first host at port 8080, or 8443 with " +
				"TLS, where it is not given.",
		},
		{
			Name: "namespace", Scope: on, Default: "public/default",
			Doc: "Tenant and namespace of topics that are named without them.",
		},
		{Name: "listenerName", Scope: on, Doc: "Which of the brokers' advertisedListeners to connect to."},
		{
			Name: "operationTimeout", Scope: on, Type: driver.Duration, Default: "5s",
			Min: int64(100 * time.Millisecond), Max: int64(10 * time.Minute),
			Doc: "How long the broker may take to answer anything but a message that was sent.",
		},
	}...)
}

func produceOptions() []driver.Option {
	const on = driver.OnProducer
	batched := map[driver.Profile]string{driver.Throughput: "default"}
	return []driver.Option{
		{
			Name: "batching", Scope: on, Type: driver.Enum, Default: "none",
			Allowed: []string{"none", "default", "key"}, Profile: batched,
			Doc: "Send messages one by one, in batches, or in batches of one key each, which key-shared " +
				"subscriptions need.",
		},
		{
			Name: "batchDelay", Scope: on, Type: driver.Duration, Default: "1ms", Min: int64(100 * time.Microsecond),
			Max: int64(time.Minute),
			Doc: "How long a batch waits for more messages.",
		},
		{
			Name: "batchMessages", Scope: on, Type: driver.Int, Default: "1000", Min: 1, Max: 1 << 20,
			Doc: "The most messages of a batch.",
		},
		{
			Name: "batchBytes", Scope: on, Type: driver.Size, Default: "128KiB", Min: 1, Max: maxMessageBytes,
			Doc: "The most bytes of a batch, before compression.",
		},
		{
			Name: "compression", Scope: on, Type: driver.Enum, Default: "none",
			Allowed: []string{"none", "lz4", "zlib", "zstd", "snappy"},
			Doc:     "The codec of messages or batches.",
		},
		{
			Name: "sendTimeout", Scope: on, Type: driver.Duration, Default: "30s", Min: int64(10 * time.Millisecond),
			Max: int64(time.Hour),
			Doc: "How long a message may wait for the broker's answer, broken connections included, before it fails.",
		},
		{
			Name: "partition", Scope: on | driver.OnMessage, Type: driver.Int, Default: "-1", Min: -1,
			Doc: "The one partition to send to; -1 leaves it to the key, by Java's hash of strings as Pulsar's own " +
				"client does, and without one to each in turn.",
		},
		{
			Name: "eventTime", Scope: driver.OnMessage, Type: driver.Int, Max: 1 << 52,
			Doc: "When what the message tells of happened, in ms since the Unix epoch; 0, the default, sends none.",
		},
		{
			Name: "deliverAfter", Scope: driver.OnMessage, Type: driver.Duration,
			Max: int64(10 * 365 * 24 * time.Hour), SendOnly: true, Reorders: true,
			Doc: "How long the broker keeps the message from consumers of shared and key-shared subscriptions, by " +
				"its own clock's ticks (1 s by default); others get it at once.",
		},
	}
}

func consumeOptions(m mode) []driver.Option {
	const on = driver.OnConsumer
	types := m.types()
	return []driver.Option{
		{
			Name: "subscriptionType", Scope: on, Type: driver.Enum, Default: types[0], Allowed: types,
			Doc: "How the group, or a consumer without one, is subscribed; all members must say the same.",
		},
		{
			Name: "ackDelay", Scope: on, Type: driver.Duration, Default: "0", Max: int64(time.Minute),
			Profile: map[driver.Profile]string{driver.Throughput: "5ms"},
			Doc:     "How long acks that are not confirmed may wait to go together, up to 1000 of them.",
		},
	}
}

// sharedOptions are the options of shared subscriptions.
func sharedOptions() []driver.Option {
	return []driver.Option{
		{
			Name: "nackDelay", Scope: driver.OnConsumer, Type: driver.Duration, Default: "0",
			Max: int64(24 * time.Hour),
			Doc: "How long the client waits before it gives a requeued message back; 0 is as soon as it can, which " +
				"is 9 ms.",
		},
	}
}

func topicOptions() []driver.Option {
	return []driver.Option{
		{
			Name: "retention", Scope: driver.OnTopic, Type: driver.Duration, Default: "0", Step: int64(time.Minute),
			Max: int64(10 * 365 * 24 * time.Hour), ZeroIsDefault: true,
			Doc: "How long messages are kept that all groups have acknowledged, in whole minutes; 0 is the " +
				"namespace's.",
		},
	}
}
