package amqp1

import (
	"context"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// Proof implements [driver.Prover]. The outcome "accepted" says that the broker is responsible for the message from then on, and AMQP has no word for how
// many copies of it there are, or whether it is on a disk.
func (c *conn) Proof(_ context.Context, p driver.ProducerConfig, _ *driver.TopicSpec) driver.Proof {
	if !p.Options.Bool("persistent") {
		return driver.Proof{Confirm: driver.Accepted, How: "the broker accepted it, and may forget it when it restarts (persistent=false)"}
	}
	return driver.Proof{Confirm: driver.Accepted, How: "the broker accepted it, as a durable message"}
}
