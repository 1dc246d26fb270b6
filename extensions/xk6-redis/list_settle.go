package redis

import (
	"cmp"
	"context"
	"errors"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

const errTaken replyError = "the message is no longer with this consumer: its lease was over and another one has it"

// Settle removes messages from the consumer's list, to the head of the topic's or for good.
func (s *listConsumer) Settle(ctx context.Context, b driver.Batch, o driver.Outcome) error {
	if o != driver.Ack && o != driver.Requeue && o != driver.Reject {
		return errors.ErrUnsupported
	}
	all, twice := s.release(b)
	if len(all) == 0 {
		return twice
	}
	var err error
	if o == driver.Requeue {
		err = s.requeue(ctx, all)
	} else {
		err = s.remove(ctx, all)
	}
	held := err
	if errors.Is(err, errTaken) {
		held = nil // nothing of it is here any more
	}
	s.settled(all, held)
	s.more()
	return cmp.Or(err, twice)
}

func (s *listConsumer) remove(ctx context.Context, all []*delivery) error {
	var b []byte
	fixed := appendArray(nil, 4)
	for _, a := range []string{"LREM", s.processing(), "1"} {
		fixed = appendBulk(fixed, a)
	}
	for _, d := range all {
		b = appendBulk(append(b, fixed...), d.raw)
	}
	return s.out.do(ctx, b, len(all), func(r reader, _ int) error {
		n, err := r.integer()
		if err == nil && n == 0 {
			err = errTaken
		}
		return err
	})
}

func (s *listConsumer) requeue(ctx context.Context, all []*delivery) error {
	args := []string{"EVAL", scriptRequeue, "3", s.keys.list, s.keys.members, s.processing()}
	for i := range all {
		args = append(args, string(all[len(all)-1-i].raw))
	}
	return s.out.do(ctx, appendCommand(nil, args...), 1, func(r reader, _ int) error {
		n, err := r.integer()
		if err == nil && n < int64(len(all)) {
			err = errTaken
		}
		return err
	})
}
