package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// Settle ends a message by its end marker: at once, after it was sent again, or after it was sent to the topic of dead letters. Where confirmation was
// asked for it returns when the broker has all of it. Otherwise an error comes out of the next Settle, or of Close: the message will be sent again.
func (k *kmqConsumer) Settle(ctx context.Context, b driver.Batch, o driver.Outcome) error {
	if o != driver.Ack && o != driver.Requeue && o != driver.Reject {
		return errors.ErrUnsupported
	}
	deliveries, err := k.settled(b)
	if err != nil {
		return err
	}
	if len(deliveries) == 0 {
		return k.trouble()
	}
	messages := recordsOf(deliveries)
	done, wait := func(_ int, err error) { k.answered(o, err) }, k.troubled
	if k.confirm {
		a := newAnswers(len(messages))
		done, wait = func(i int, err error) {
			if err == nil {
				k.answered(o, nil)
			}
			a.done(i, err)
		}, a.wait
	}
	if o == driver.Requeue && k.queue.requeueDelay > 0 {
		for i, marker := range startMarkers(k.queue.markers, messages, k.queue.requeueDelay) { // the tracker does the rest
			k.Produce(context.Background(), marker, func(_ *kgo.Record, err error) { done(i, err) })
		}
		return wait(ctx)
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

// settled takes what has not been settled before, and makes room for more.
func (k *kmqConsumer) settled(b driver.Batch) (all []*delivery, err error) {
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
		if d.batch.open--; d.batch.open == 0 {
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

// answered reports the answer for one message. Without a report an error is kept for the next Settle.
func (k *kmqConsumer) answered(o driver.Outcome, err error) {
	if k.report != nil {
		k.report(o, 1, err)
		return
	}
	if err == nil {
		return
	}
	k.state.Lock()
	k.failed = err
	k.state.Unlock()
}

// trouble is what has failed since it was last asked for.
func (k *kmqConsumer) trouble() error {
	k.state.Lock()
	defer k.state.Unlock()
	err := k.failed
	k.failed = nil
	return err
}

func (k *kmqConsumer) troubled(context.Context) error { return k.trouble() }

// Close sends again what is not settled, and leaves. What it cannot send again before ctx ends, another consumer's tracker will, when its time has come.
func (k *kmqConsumer) Close(ctx context.Context) error {
	if !k.Inbox.Close() {
		return nil
	}
	k.room.Close()
	defer context.AfterFunc(ctx, func() { k.abort(); k.tracker.abort() })()
	k.polling.Wait()
	k.AllowRebalance()
	k.owner.mu.Lock()
	delete(k.owner.consumers, k)
	k.owner.mu.Unlock()
	err := errors.Join(k.giveBack(ctx), k.Flush(ctx), k.trouble())
	k.tracker.close(ctx)
	k.end(ctx)
	return err
}

// giveBack sends again what is not settled, unless its time is over: then a tracker does so, or has done so.
func (k *kmqConsumer) giveBack(ctx context.Context) error {
	k.Waiting() // when it returns, nothing is being received
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
				messages, copies = append(messages, d.record), append(copies, k.queue.again(d.record, delivered))
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
