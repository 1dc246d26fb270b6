package nats

import (
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// connectOptions are the connection options of both drivers.
func connectOptions() []driver.Option {
	option := func(name string, t driver.Type, preset, doc string) driver.Option {
		return driver.Option{Name: name, Scope: driver.OnConnect, Type: t, Default: preset, Doc: doc}
	}
	secret := func(name, doc string) driver.Option {
		return driver.Option{Name: name, Scope: driver.OnConnect, Secret: true, Doc: doc}
	}
	timeout := func(name, preset, doc string) driver.Option {
		o := option(name, driver.Duration, preset, doc)
		o.Min = int64(time.Millisecond)
		return o
	}
	return append(driver.ConnectOptions(), []driver.Option{
		option(
			"name", driver.String, "",
			"Name of the connection in the server's monitoring, instead of the one that the tool gives.",
		),
		secret("token", "Token; a user without a password in the URL is a token, too."),
		option("nkey", driver.File, "", "A file with the seed of an nkey."),
		option("creds", driver.File, "", "A credentials file: a user's JWT and seed."),
		timeout("reconnectWait", "100ms", "Pause before the same server is tried again after the connection broke."),
		timeout(
			"pingInterval", "20s",
			"Pause between pings that find a dead connection; it counts as broken after two without an answer.",
		),
		timeout("writeTimeout", "30s", "How long the socket may refuse to take data before the connection counts as broken."),
		option("randomize", driver.Bool, "false", "Try the URL's servers in random order instead of the given one."),
	}...)
}

// coreOptions are the further options of the driver "nats".
func coreOptions() []driver.Option {
	return []driver.Option{
		{
			Name: "pendingMessages", Scope: driver.OnConsumer, Type: driver.Int, Default: "1048576", Min: 1,
			Doc: "How many messages may wait for Receive; those beyond it are dropped, counted, and reported as throttled.",
		},
		{
			Name: "pendingBytes", Scope: driver.OnConsumer, Type: driver.Size, Default: "256MiB", Min: 1,
			Doc: "How many bytes of payload may wait for Receive; what is beyond it is dropped, counted, and reported as throttled.",
		},
	}
}

// Values of the enumerated options.
const (
	storageFile   = "file"
	storageMemory = "memory"

	retainLimits    = "limits"
	retainWorkQueue = "workqueue"
	retainInterest  = "interest"
)

// streamOptions are the further options of the driver "nats-jetstream".
func streamOptions() []driver.Option {
	return []driver.Option{
		{
			Name: "domain", Scope: driver.OnConnect,
			Doc: "JetStream domain to use, where the server is a leaf node or a hub.",
		},
		{
			Name: "ackTimeout", Scope: driver.OnProducer, Type: driver.Duration, Default: "30s", Min: int64(time.Millisecond),
			Doc: "How long to wait for the broker's answer to a message before it fails as a timeout.",
		},
		{
			Name: "ackWait", Scope: driver.OnConsumer, Type: driver.Duration, Default: "30s", Min: int64(time.Millisecond),
			Doc: "After what time without settlement the server delivers a message again.",
		},
		{
			Name: "maxAckPending", Scope: driver.OnConsumer, Type: driver.Int, Default: "100000", Min: -1,
			Doc: "How many messages may be delivered and not settled in the whole group; -1 is no limit; each member is bounded by its prefetch.",
		},
		{
			Name: "maxDeliver", Scope: driver.OnConsumer, Type: driver.Int, Default: "-1", Min: -1,
			Doc: "How many times a message is delivered at most; -1 is no limit.",
		},
		{
			Name: "nakDelay", Scope: driver.OnConsumer, Type: driver.Duration, Default: "0s",
			Doc: "How long the server waits before it delivers a requeued message again.",
		},
		{
			Name: "inactiveThreshold", Scope: driver.OnConsumer, Type: driver.Duration, Default: "30s", Min: int64(time.Second),
			Doc: "After what time of absence the server forgets a consumer that has no group.",
		},
		{
			Name: "storage", Scope: driver.OnTopic, Type: driver.Enum, Default: storageFile,
			Allowed: []string{storageFile, storageMemory},
			Doc:     "Where the stream keeps its messages.",
		},
		{
			Name: "retention", Scope: driver.OnTopic, Type: driver.Enum, Default: retainLimits, Spends: "interest",
			Allowed: []string{retainLimits, retainWorkQueue, retainInterest},
			Doc:     "What the stream keeps: all within its limits, what no consumer acknowledged, or what not every consumer acknowledged.",
		},
		{
			Name: "maxAge", Scope: driver.OnTopic, Type: driver.Duration, Default: "0s",
			Doc: "How long the stream keeps a message; 0 is for ever.",
		},
		{
			Name: "maxBytes", Scope: driver.OnTopic, Type: driver.Size,
			Doc: "How many bytes the stream keeps; 0 is no limit.",
		},
		{
			Name: "maxMessages", Scope: driver.OnTopic, Type: driver.Int,
			Doc: "How many messages the stream keeps; 0 is no limit.",
		},
		{
			Name: "discard", Scope: driver.OnTopic, Type: driver.Enum, Default: "old", Allowed: []string{"old", "new"},
			Doc: "What gives way when a limit is reached: the oldest message, or the new one, whose sender then gets an error.",
		},
		{
			Name: "duplicates", Scope: driver.OnTopic, Type: driver.Duration, Default: "0s",
			ZeroIsDefault: true,
			Doc:           "How long the stream remembers the header Nats-Msg-Id in order to drop duplicates, whose sends fail as rejected; 0 is the server's default of 2 minutes, and takes a stream that exists as it is.",
		},
		{
			Name: "persist", Scope: driver.OnTopic, Type: driver.Enum, Default: "default", Allowed: []string{"default", "async"},
			Doc: "Whether the server writes a message before it confirms it (default), or may do so afterwards (async).",
		},
	}
}
