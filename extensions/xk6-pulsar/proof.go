package pulsar

import (
	"context"
	"fmt"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// Proof implements [driver.Prover]. A broker confirms when the bookies of the ack quorum have the
// message. No interface returns whether they sync their journals before (journalSyncData).
func (c *conn) Proof(ctx context.Context, p driver.ProducerConfig, _ *driver.TopicSpec) driver.Proof {
	unknown := driver.Proof{Confirm: driver.Accepted, How: "by an ack quorum that the admin API does not return"}
	t, err := c.topic(p.Topic)
	if err != nil {
		return unknown
	}
	if t.domain == nonPersistent {
		return driver.Proof{Confirm: driver.Accepted, How: "non-persistent topic: in the memory of one broker"}
	}
	q, err := c.admin.persistence(ctx, t)
	if err != nil || q.Ack < 1 {
		return unknown
	}
	proof := driver.Proof{
		Confirm: driver.Accepted,
		How: fmt.Sprintf("ack quorum %d of write quorum %d, ensemble %d; journalSyncData not known",
			q.Ack, q.Write, q.Ensemble),
	}
	if q.Ack > 1 {
		proof.Confirm = driver.Replicated
	}
	return proof
}
