package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// Settle writes end markers: at once, or after the copies for Requeue and for dead letters. With
// confirmation it waits for the broker. Otherwise the next Settle or Close returns the error, and
// the message is sent again.
func (k *kmqConsumer) Settle(ctx context.Context, b driver.Batch, o driver.Outcome) error {
	if o != driver.Ack && o != driver.Requeue && o != driver.Reject {
		return errors.ErrUnsupported
	}
	deliveries, err := k.takeUnsettled(b)
	if err != nil {
		return err
	}
	if len(deliveries) == 0 {
		return k.failure.take()
	}
	messages := recordsOf(deliveries)
	done, wait := func(_ int, err error) { k.answered(o, err) }, func(context.Context) error { return k.failure.take() }
	if k.confirm {
		a := newAnswers(len(messages))
		done, wait = func(i int, err error) {
			if err == nil {
				k.answered(o, nil)
			}
			a.done(i, err)
		}, a.wait
	}
	copies := make([]*kgo.Record, len(messages))
	for i, d := range deliveries {
		switch o {
		case driver.Requeue:
			copies[i] = k.queue.again(d.record, d.attempt)
		case driver.Reject:
			copies[i] = k.queue.letter(d.record)
		}
	}
	k.queue.move(k.client, messages, copies, done)
	return wait(ctx)
}

// takeUnsettled marks messages as settled, gives back their room, and returns the messages that
// were not settled before.
func (k *kmqConsumer) takeUnsettled(b driver.Batch) (all []*delivery, err error) {
	k.state.Lock()
	defer k.state.Unlock()
	if k.closed {
		return nil, driver.ErrClosed
	}
	for i := range b {
		d, ok := b[i].Token.(*delivery)
		if !ok || d.settled {
			continue
		}
		d.settled = true
		d.batch.unsettled--
		if d.batch.unsettled == 0 {
			delete(k.begun, d.batch)
		}
		all = append(all, d)
	}
	k.room.Give(len(all))
	return all, nil
}

func recordsOf(deliveries []*delivery) []*kgo.Record {
	all := make([]*kgo.Record, len(deliveries))
	for i, d := range deliveries {
		all[i] = d.record
	}
	return all
}

// OnSettled implements [driver.SettleReporter].
func (k *kmqConsumer) OnSettled(report func(o driver.Outcome, n int, err error)) { k.report = report }

// answered reports the answer for one message. Without a report the next Settle returns the error.
func (k *kmqConsumer) answered(o driver.Outcome, err error) {
	switch {
	case k.report != nil:
		k.report(o, 1, err)
	case err != nil:
		k.failure.set(err)
	}
}

// Close sends the unsettled messages again and leaves. Messages that it cannot send before ctx ends
// are sent by another consumer's tracker when they are due.
func (k *kmqConsumer) Close(ctx context.Context) error {
	if !k.Inbox.Close() {
		return nil
	}
	k.room.Close()
	defer context.AfterFunc(ctx, func() { k.abort(); k.tracker.abort() })()
	k.polling.Wait()
	k.AllowRebalance()
	k.conn.consumers.remove(k)
	err := errors.Join(k.giveBack(ctx), k.Flush(ctx), k.failure.take())
	k.tracker.close(ctx)
	k.end(ctx)
	return err
}

// giveBack sends the unsettled messages again. Trackers send the due ones.
func (k *kmqConsumer) giveBack(ctx context.Context) error {
	k.Waiting() // when it returns, Receive hands nothing over
	var messages, copies []*kgo.Record
	now := time.Now()
	k.state.Lock()
	k.closed = true
	for b := range k.begun {
		if now.After(b.until) {
			continue
		}
		for i := range b.deliveries {
			if d := &b.deliveries[i]; !d.settled {
				delivered := d.attempt
				if !d.received {
					delivered--
				}
				messages = append(messages, d.record)
				copies = append(copies, k.queue.again(d.record, delivered))
			}
		}
	}
	clear(k.begun)
	k.state.Unlock()
	a := newAnswers(len(messages))
	k.queue.move(k.client, messages, copies, a.done)
	if err := a.wait(ctx); err != nil {
		return fmt.Errorf("giving back %d messages: %w", len(messages), err)
	}
	return nil
}
