package nats

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// Proof implements [driver.Prover]: a PubAck arrives when a majority of the replicas has the
// message.
func (c streamConn) Proof(ctx context.Context, p driver.ProducerConfig, _ *driver.TopicSpec) driver.Proof {
	s, err := c.stream(ctx, p.Topic)
	if err != nil {
		return driver.Proof{Confirm: driver.Accepted, How: "a stream that the server does not tell of"}
	}
	config := s.CachedInfo().Config
	where := "on file"
	switch {
	case config.Storage == jetstream.MemoryStorage:
		where = "in memory"
	case config.PersistMode == jetstream.AsyncPersistMode:
		where = "on file afterwards"
	}
	if config.Replicas <= 1 {
		return driver.Proof{Confirm: driver.Accepted, How: "1 replica, " + where}
	}
	return driver.Proof{
		Confirm: driver.Replicated,
		How:     fmt.Sprintf("a majority of %d replicas, %s", config.Replicas, where),
	}
}
