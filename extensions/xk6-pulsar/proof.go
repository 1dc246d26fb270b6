package pulsar

import (
	"context"
	"fmt"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// Proof implements [driver.Prover]. A broker confirms when as many bookies as the ack quorum says have the message. Whether they write their
// journals to disk before they say so (journalSyncData) no interface tells.
func (c *conn) Proof(ctx context.Context, p driver.ProducerConfig, _ *driver.TopicSpec) driver.Proof {
	unknown := driver.Proof{Confirm: driver.Accepted, How: "by an ack quorum that the admin API does not tell"}
	t, err := c.topic(p.Topic)
	if err != nil {
		return unknown
	}
	if t.domain == nonPersistent {
		return driver.Proof{Confirm: driver.Accepted, How: "non-persistent topic: in the memory of one broker, which drops what no consumer takes at once"}
	}
	q, err := c.admin.persistence(ctx, t)
	if err != nil || q.Ack < 1 {
		return unknown
	}
	proof := driver.Proof{
		Confirm: driver.Accepted,
		How:     fmt.Sprintf("ack quorum %d of write quorum %d, ensemble %d; journalSyncData not known", q.Ack, q.Write, q.Ensemble),
	}
	if q.Ack > 1 {
		proof.Confirm = driver.Replicated
	}
	return proof
}
