package redis

import (
	"context"
	"fmt"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// Proof implements [driver.Prover]. The producer asks for the same proof after each reconnect.
func (p *producer) Proof(context.Context, driver.ProducerConfig, *driver.TopicSpec) driver.Proof {
	proof := driver.Proof{Confirm: driver.Accepted, How: "one server"}
	b := p.link.barrier
	if b == nil {
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
