package redis

import (
	"cmp"
	"context"
	"errors"
	"strconv"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// Settle implements [driver.Consumer]. Without a group there is nothing to confirm.
func (s *streamConsumer) Settle(ctx context.Context, b driver.Batch, o driver.Outcome) error {
	if o != driver.Ack && o != driver.Requeue && o != driver.Reject {
		return errors.ErrUnsupported
	}
	if !s.grouped() {
		if o == driver.Requeue {
			for i := range b {
				if d, ok := b[i].Token.(*delivery); ok {
					s.put(again(d))
				}
			}
		}
		return nil
	}
	all, twice := s.release(b)
	if len(all) == 0 {
		return twice
	}
	var err error
	if o == driver.Requeue {
		err = s.requeue(ctx, all)
	} else {
		err = s.acknowledge(ctx, all)
	}
	s.settled(all, err)
	s.more()
	return cmp.Or(err, twice)
}

// again is a delivery of the same message that comes now.
func again(d *delivery) *delivery {
	next := &delivery{id: d.id, raw: d.raw, message: d.message}
	next.message.Attempt++
	next.message.Received = driver.Now()
	return next
}

func (s *streamConsumer) acknowledge(ctx context.Context, all []*delivery) error {
	commands := appendIDs(nil, all, "XACK", s.config.Topic, s.config.Group)
	replies := 1
	if s.config.Options.Bool("deleteSettled") {
		commands = appendIDs(commands, all, "XDEL", s.config.Topic)
		replies++
	}
	return s.out.do(ctx, commands, replies, ignore)
}

// appendIDs appends a command that ends with the ids of entries.
func appendIDs(b []byte, all []*delivery, args ...string) []byte {
	b = appendArray(b, len(args)+len(all))
	for _, a := range args {
		b = appendBulk(b, a)
	}
	for _, d := range all {
		b = appendBulk(b, d.id)
	}
	return b
}

// requeue delivers again, to this consumer and at once; if it closes before, the others get it.
func (s *streamConsumer) requeue(ctx context.Context, all []*delivery) error {
	var commands []byte
	byAttempt := map[int32][]*delivery{}
	for _, d := range all {
		byAttempt[d.message.Attempt] = append(byAttempt[d.message.Attempt], d)
	}
	for attempt, some := range byAttempt {
		next := strconv.Itoa(int(attempt) + 1)
		commands = appendClaim(commands, s.config, s.me, some, "RETRYCOUNT", next, "JUSTID")
	}
	there := map[string]bool{}
	err := s.out.do(ctx, commands, len(byAttempt), func(r reader, _ int) error {
		n, err := r.array()
		for range max(n, 0) {
			id, err := r.text()
			if err != nil {
				return err
			}
			there[id] = true
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, d := range all {
		if there[d.id] { // else it was deleted or trimmed
			s.put(again(d))
		}
	}
	return nil
}

// appendClaim appends an XCLAIM of entries in any state.
func appendClaim(b []byte, c driver.ConsumerConfig, consumer string, all []*delivery, options ...string) []byte {
	b = appendArray(b, 5+len(all)+len(options))
	for _, a := range []string{"XCLAIM", c.Topic, c.Group, consumer, "0"} {
		b = appendBulk(b, a)
	}
	for _, d := range all {
		b = appendBulk(b, d.id)
	}
	for _, o := range options {
		b = appendBulk(b, o)
	}
	return b
}
