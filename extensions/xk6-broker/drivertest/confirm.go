package drivertest

import (
	"context"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// settleFrozen settles at a frozen server and reports whether Settle was back, and with what, before it thawed.
func (k *kit) settleFrozen(t *testing.T, confirm bool) (back bool, err error) {
	t.Helper()
	url, freeze := k.freezer(t)
	c := k.open(t)
	topic := k.topic(t, c)
	config := k.config(t, topic, k.group(topic, "group"))
	config.ConfirmSettle = confirm
	r := k.consumerWith(t, k.openAt(t, url), config)
	k.producer(t, c, topic).send(t, messages("frozen", 1))
	b := r.take(t, 1)
	thaw := freeze()
	result := make(chan error, 1)
	ctx, cancel := context.WithTimeout(context.Background(), 2*k.Patience)
	defer cancel()
	go func() { result <- r.Settle(ctx, b, driver.Ack) }()
	wait := k.Quiet
	if !confirm {
		wait = k.Patience
	}
	select {
	case err = <-result:
		thaw()
		return true, err
	case <-time.After(wait):
		thaw()
	}
	k.within(t, "Settle, after the server thawed,", func() { err = <-result })
	return false, err
}

func settleConfirmed(t *testing.T, k *kit) {
	k.can(t, driver.Ack)
	claimed(t, k.f.SettleConfirmed != driver.Never, "settlements are confirmed")
	if k.SettleUnconfirmed {
		k.confirmRefused(t)
		return
	}
	back, err := k.settleFrozen(t, true)
	if back && err == nil {
		t.Error("a server that was frozen confirmed a settlement")
	}
	if err != nil {
		t.Errorf("Settle, while the server was frozen for a moment: %v", err)
	}
}

// confirmRefused is of a server that cannot confirm: a consumer that asks for it must not come to be, as if it had been granted.
func (k *kit) confirmRefused(t *testing.T) {
	t.Helper()
	c := k.open(t)
	topic := k.topic(t, c)
	config := k.config(t, topic, k.group(topic, "group"))
	config.ConfirmSettle = true
	consumer, err := k.tryConsumer(t, c, config)
	unsupported(t, "a settlement that is confirmed", err)
	if err == nil {
		k.close(t, "consumer", consumer)
	}
}

func settleUnconfirmed(t *testing.T, k *kit) {
	k.can(t, driver.Ack)
	claimed(t, k.f.SettleConfirmed != driver.Always, "settlements that are not confirmed")
	back, err := k.settleFrozen(t, false)
	if !back {
		t.Error("Settle waited for a server that was frozen, and was not asked to")
	}
	if err != nil {
		t.Errorf("Settle: %v", err)
	}
}
