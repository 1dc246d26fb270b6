package rocketmq

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// Proof implements [driver.Prover]. It reads the brokers' settings for flushing and copies, and
// returns the least of all brokers of the topic.
func (c *conn) Proof(ctx context.Context, p driver.ProducerConfig, _ *driver.TopicSpec) driver.Proof {
	unknown := driver.Proof{Confirm: driver.Accepted, How: "by a broker whose settings cannot be asked for"}
	parts, err := c.admin.parts(ctx, p.Topic)
	if err != nil {
		return unknown
	}
	least := driver.Proof{Confirm: driver.Replicated}
	for _, part := range parts {
		settings, err := c.admin.settings(ctx, part.set)
		if err != nil {
			return unknown
		}
		if one := proofOf(settings, len(part.Addresses)); least.How == "" || one.Confirm < least.Confirm {
			least = one
		}
	}
	return least
}

// proofOf returns the proof of a broker. Only a synchronous master waits for copies.
func proofOf(settings map[string]string, copies int) driver.Proof {
	role, flush := settings["brokerRole"], settings["flushDiskType"]
	waits, err := strconv.Atoi(settings["inSyncReplicas"])
	if err != nil {
		waits = 1
	}
	proof := driver.Proof{Confirm: driver.Accepted, How: fmt.Sprintf("brokerRole=%s, flushDiskType=%s", role, flush)}
	if role == "SYNC_MASTER" && copies > 1 && waits > 1 {
		proof.Confirm = driver.Replicated
		proof.How += fmt.Sprintf(", inSyncReplicas=%d of %d", waits, copies)
	}
	return proof
}

// settings are a broker's, as the lines of its configuration.
func (a *admin) settings(ctx context.Context, s set) (map[string]string, error) {
	_, body, err := a.broker.Call(ctx, s.master(), getConfig, nil, nil)
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	for line := range strings.Lines(string(body)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			all[name] = value
		}
	}
	return all, nil
}
