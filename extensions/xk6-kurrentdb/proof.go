package kurrentdb

import (
	"context"
	"fmt"

	"github.com/kurrent-io/KurrentDB-Client-Go/protos/kurrentdb/protocols/v1/gossip"
	"github.com/kurrent-io/KurrentDB-Client-Go/protos/kurrentdb/protocols/v1/shared"
	"google.golang.org/grpc"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// members is how many servers share what is written, as they tell one another. A read-only replica does not count: no append waits for it.
func (c *conn) members(ctx context.Context) (count int, err error) {
	err = c.call(ctx, func(ctx context.Context, n *node, o ...grpc.CallOption) error {
		known, err := n.gossip.Read(ctx, &shared.Empty{}, o...)
		if err != nil {
			return err
		}
		for _, m := range known.GetMembers() {
			switch m.GetState() {
			case gossip.MemberInfo_Manager, gossip.MemberInfo_ReadOnlyLeaderless, gossip.MemberInfo_PreReadOnlyReplica, gossip.MemberInfo_ReadOnlyReplica:
			default:
				count++
			}
		}
		return nil
	})
	return count, err
}

// Proof implements [driver.Prover]. How many members are a quorum is the cluster's setting, which nobody is told.
func (c *conn) Proof(ctx context.Context, _ driver.ProducerConfig, _ *driver.TopicSpec) driver.Proof {
	members, err := c.members(ctx)
	switch {
	case err != nil:
		return driver.Proof{Confirm: driver.Accepted, How: "one server has it in its log; whether it has others it does not tell"}
	case members > 1:
		return driver.Proof{Confirm: driver.Replicated, How: fmt.Sprintf("a quorum of the cluster has it, which has %d members by its gossip", members)}
	default:
		return driver.Proof{Confirm: driver.Accepted, How: "one server has it in its log"}
	}
}
