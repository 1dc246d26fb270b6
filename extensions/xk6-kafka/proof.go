package kafka

import (
	"context"
	"fmt"
	"strconv"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// Proof implements [driver.Prover]. With acks=all the leader waits for the replicas in sync, which
// may be as few as min.insync.replicas. The record is in their memory.
func (c *conn) Proof(ctx context.Context, p driver.ProducerConfig, _ *driver.TopicSpec) driver.Proof {
	acks := p.Options.String("acks")
	switch acks {
	case "none":
		return driver.Proof{Confirm: driver.Unconfirmed, How: "acks=none"}
	case "leader":
		return driver.Proof{Confirm: driver.Accepted, How: "acks=leader"}
	}
	topic, err := c.DescribeTopic(ctx, p.Topic)
	if err != nil {
		return driver.Proof{Confirm: driver.Accepted, How: "acks=all, the number of replicas is not known"}
	}
	if topic.Replicas == 1 {
		return driver.Proof{Confirm: driver.Accepted, How: "acks=all, 1 replica"}
	}
	configs, _ := c.configs(ctx, p.Topic)
	least, err := strconv.Atoi(configs["min.insync.replicas"])
	how := fmt.Sprintf("acks=all, %d replicas, min.insync.replicas ", topic.Replicas)
	if err != nil {
		return driver.Proof{Confirm: driver.Accepted, How: how + "is not known"}
	}
	proof := driver.Proof{Confirm: driver.Accepted, How: how + strconv.Itoa(least)}
	if min(least, topic.Replicas) > 1 {
		proof.Confirm = driver.Replicated
	}
	return proof
}
