package redis

import (
	"context"
	"fmt"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// Proof implements [driver.Prover], for what is appended to a stream or a list.
func (c *conn) Proof(ctx context.Context, p driver.ProducerConfig, _ *driver.TopicSpec) driver.Proof {
	b, err := c.newBarrier(ctx, p)
	proof := driver.Proof{Confirm: driver.Accepted, How: "one server"}
	if err != nil || b == nil {
		return proof
	}
	if b.fsync {
		proof.How += ", on disk (WAITAOF)"
	}
	if b.replicas > 0 {
		proof.Confirm = driver.Replicated
		proof.How += fmt.Sprintf(" and %d of its replicas (WAIT)", b.replicas)
	}
	return proof
}
