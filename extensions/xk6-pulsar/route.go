package pulsar

import (
	"sync"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsar/backoff"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver/redial"
)

// router chooses a message's partition for the client, which calls it within SendAsync.
type router struct {
	otherwise func(*pulsar.ProducerMessage, uint32) int

	mu     sync.Mutex // held during SendAsync
	chosen int32
}

func newRouter(v driver.Values) *router {
	messages, size := uint(v.Int("batchMessages")), uint(v.Int("batchBytes")) //gosec:disable G115 -- limited
	one := v.String("batching") == "none"
	return &router{otherwise: pulsar.NewDefaultRouter(javaHash, messages, size, v.Duration("batchDelay"), one)}
}

func (r *router) choose(partition int32, hand func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.chosen = partition
	hand()
}

func (r *router) route(m *pulsar.ProducerMessage, topic pulsar.TopicMetadata) int {
	if r.chosen >= 0 {
		return int(r.chosen)
	}
	return r.otherwise(m, topic.NumPartitions())
}

// javaHash is Pulsar's own hash of a key: Java's hash of a string, without its sign.
func javaHash(key string) (h uint32) {
	for i := range len(key) {
		h = 31*h + uint32(key[i])
	}
	return h & (1<<31 - 1)
}

var codecs = map[string]pulsar.CompressionType{
	"none": pulsar.NoCompression, "lz4": pulsar.LZ4, "zlib": pulsar.ZLib, "zstd": pulsar.ZSTD, "snappy": pulsar.SNAPPY,
}

func producerOptions(t topicName, cfg driver.ProducerConfig, r *router) pulsar.ProducerOptions {
	v := cfg.Options
	o := pulsar.ProducerOptions{
		Topic:                           t.String(),
		SendTimeout:                     v.Duration("sendTimeout"),
		MaxPendingMessages:              cfg.Window + 1, // more than the engine's window: SendAsync does not block
		DisableBlockIfQueueFull:         true,
		MessageRouter:                   r.route,
		CompressionType:                 codecs[v.String("compression")],
		DisableBatching:                 v.String("batching") == "none",
		BatchingMaxPublishDelay:         v.Duration("batchDelay"),
		BatchingMaxMessages:             uint(v.Int("batchMessages")), //gosec:disable G115 -- the option has limits
		BatchingMaxSize:                 uint(v.Int("batchBytes")),    //gosec:disable G115 -- the option has limits
		BackOffPolicyFunc:               newBackoff,
		PartitionsAutoDiscoveryInterval: discovery,
	}
	if v.String("batching") == "key" {
		o.BatcherBuilderType = pulsar.KeyBasedBatchBuilder
	}
	return o
}

// discovery is the interval of looking for further partitions, the client's default.
const discovery = time.Minute

// pauses are the pauses before reconnections. The client's own grow to a minute.
type pauses struct{ n int }

func newBackoff() backoff.Policy { return &pauses{} }

func (p *pauses) Next() time.Duration {
	p.n++
	return redial.Pause(p.n)
}

func (p *pauses) IsMaxBackoffReached() bool { return false }
func (p *pauses) Reset()                    { p.n = 0 }
