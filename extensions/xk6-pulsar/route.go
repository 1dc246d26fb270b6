package pulsar

import (
	"sync"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsar/backoff"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver/redial"
)

// router tells the client where a message goes. It is asked in the course of SendAsync.
type router struct {
	otherwise func(*pulsar.ProducerMessage, uint32) int

	mu     sync.Mutex // held while a message is handed over, so that its choice is not another's
	chosen int32
}

func newRouter(v driver.Values) *router {
	return &router{otherwise: pulsar.NewDefaultRouter(javaHash, uint(v.Int("batchMessages")), uint(v.Int("batchBytes")), //gosec:disable G115 -- the option has limits
		v.Duration("batchDelay"), v.String("batching") == "none")}
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

// javaHash is what Pulsar's own client makes of a key: Java's hash of a string, without its sign.
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
		MaxPendingMessages:              cfg.Window + 1, // the engine keeps to its window: the client never has to wait
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

// discovery is how often the client looks for further partitions, its own interval.
const discovery = time.Minute

// pauses are those between attempts to connect again, where the client's own grow to a minute.
type pauses struct{ n int }

func newBackoff() backoff.Policy { return &pauses{} }

func (p *pauses) Next() time.Duration {
	p.n++
	return redial.Pause(p.n)
}

func (p *pauses) IsMaxBackoffReached() bool { return false }
func (p *pauses) Reset()                    { p.n = 0 }
