package nats

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

var (
	wordAck  = []byte("+ACK")
	wordTerm = []byte("+TERM")
)

// Settle implements [driver.Consumer]. Confirmed settlements of a batch are under way together.
func (k *streamConsumer) Settle(ctx context.Context, b driver.Batch, o driver.Outcome) error {
	var word []byte
	switch o {
	case driver.Ack:
		word = wordAck
	case driver.Requeue:
		word = k.nak
	case driver.Reject:
		word = wordTerm
	default:
		return errors.ErrUnsupported
	}
	replies, err := k.mark(b)
	if e := k.sendWord(ctx, replies, word); e != nil {
		err = e
	}
	if e := k.pull(); e != nil && err == nil {
		err = e
	}
	return err
}

// mark counts messages as settled, and returns the subjects for the server. If sending fails, the
// server delivers the messages again after ackWait.
func (k *streamConsumer) mark(b driver.Batch) (subjects []string, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return nil, driver.ErrClosed
	}
	subjects = make([]string, 0, len(b))
	for i := range b {
		msg, ok := b[i].Token.(*nats.Msg)
		if !ok {
			err = errForeign
			continue
		}
		if _, held := k.held[msg]; !held {
			err = jetstream.ErrMsgAlreadyAckd
			continue
		}
		delete(k.held, msg)
		k.taken--
		subjects = append(subjects, msg.Reply)
	}
	return subjects, err
}

// sendWord sends word to each subject, and waits for the answers if settlements are confirmed.
func (k *streamConsumer) sendWord(ctx context.Context, subjects []string, word []byte) error {
	nc := k.conn.nc
	if k.confirms == nil {
		for _, subject := range subjects {
			if err := nc.Publish(subject, word); err != nil {
				return err
			}
		}
		return nil
	}
	var (
		pending  atomic.Int64
		first    atomic.Pointer[error]
		finished = make(chan struct{})
	)
	pending.Store(int64(len(subjects)))
	done := func(_ int, err error) {
		if err != nil {
			first.CompareAndSwap(nil, &err)
		}
		if pending.Add(-1) == 0 {
			close(finished)
		}
	}
	now := driver.Now()
	for i, subject := range subjects {
		reply, ticket, err := k.confirms.expect(i, done, nil, now)
		if err != nil {
			done(i, err)
		} else if err := nc.PublishRequest(subject, reply, word); err != nil {
			k.confirms.resolve(ticket, err)
		}
	}
	if len(subjects) == 0 {
		return nil
	}
	select {
	case <-finished:
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := first.Load(); err != nil {
		return *err
	}
	return nil
}

// settled reads the answer to a settlement.
func settled(msg *nats.Msg, _ *driver.Place) error {
	if len(msg.Data) == 0 && msg.Header.Get("Status") == "503" {
		return nats.ErrNoResponders
	}
	return nil
}
