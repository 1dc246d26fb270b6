package load

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// AckMode is how a consume loop acknowledges.
type AckMode string

// Ack modes.
const (
	AckBatch   AckMode = "batch"   // all that one receive brought, in one call
	AckMessage AckMode = "message" // each message by itself
	AckNone    AckMode = "none"    // never; the only one where the broker knows no acks
)

// Consume is a loop that receives, works and acknowledges.
type Consume struct {
	Batch    int           // messages per receive, at most; 0 is 100
	Ack      AckMode       // "" is batch where the broker knows acks
	Work     time.Duration // how long each message is worked on
	Duration time.Duration // after which no message is begun; 0 is no limit
	Count    uint64        // messages over all consumers; 0 is no limit
	Idle     time.Duration // ends when nothing came for so long; 0 is never
}

// Consumed is what a consume loop did.
type Consumed struct {
	Received, Settled uint64
	Errors            uint64
	Elapsed           time.Duration // from the start to the last message, or to the end where none came
}

const defaultReceiveBatch = 100

// Resolve fills in the defaults for a driver and checks the rest.
func (c Consume) Resolve(f driver.Features) (Consume, error) {
	if c.Batch == 0 {
		c.Batch = defaultReceiveBatch
	}
	if c.Batch < 0 {
		return c, fmt.Errorf(`option "batch": %d is not positive`, c.Batch)
	}
	switch c.Ack {
	case "":
		c.Ack = AckNone
		if f.Settle.Has(driver.Ack) {
			c.Ack = AckBatch
		}
	case AckBatch, AckMessage:
		if !f.Settle.Has(driver.Ack) {
			return c, fmt.Errorf(`option "ack": this broker has no acknowledgements: choose none`)
		}
	case AckNone:
	default:
		return c, fmt.Errorf(`option "ack": %q is not one of batch, message, none`, string(c.Ack))
	}
	if c.Work < 0 || c.Duration < 0 || c.Idle < 0 {
		return c, errors.New(`options "work", "duration" and "idle" must not be negative`)
	}
	return c, nil
}

// Run receives until the duration, the count, idleness or ctx ends. Each consumer works in its own goroutine, and goes on to the end of the
// message that it is at work on, unless ctx has ended. What it has received beyond that it keeps for its next loop or receive. A broker's
// errors are counted and do not end the loop.
func (c Consume) Run(ctx context.Context, consumers []*Consumer) (Consumed, error) {
	beginning, cancel := context.WithCancel(ctx)
	defer cancel()
	start := driver.Now()
	if c.Duration > 0 {
		var stop context.CancelFunc
		beginning, stop = context.WithTimeout(beginning, c.Duration)
		defer stop()
	}
	shared := &consumeState{start: start, last: start, cancel: cancel, limit: c.Count}
	var wg sync.WaitGroup
	for _, consumer := range consumers {
		wg.Go(func() { c.loop(ctx, beginning, consumer, shared) })
	}
	wg.Wait()
	shared.total.Elapsed = time.Duration(shared.last - start)
	if shared.total.Received == 0 {
		shared.total.Elapsed = time.Duration(driver.Now() - start)
	}
	return shared.total, nil
}

// consumeState is what the consumers of one loop share.
type consumeState struct {
	mu     sync.Mutex
	start  int64
	last   int64 // when the last message came
	limit  uint64
	total  Consumed
	cancel context.CancelFunc
}

func (s *consumeState) received(n int, at int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total.Received += uint64(n)
	s.last = max(s.last, at)
	if s.limit > 0 && s.total.Received >= s.limit {
		s.cancel()
	}
}

func (s *consumeState) settled(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total.Settled += uint64(n)
}

func (s *consumeState) failed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total.Errors++
}

func (s *consumeState) quietSince() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// errorPause keeps a loop from spinning while the broker is away.
const errorPause = 10 * time.Millisecond

// loop begins nothing more when beginning has ended, and works until ctx does.
func (c Consume) loop(ctx, beginning context.Context, consumer *Consumer, shared *consumeState) {
	in := NewInbox(c.Batch)
	for beginning.Err() == nil {
		n, err := c.receive(beginning, consumer, in, shared)
		switch {
		case err != nil:
			shared.failed()
			if consumer.run.sleep(beginning, driver.Now()+int64(errorPause)) != nil {
				return
			}
		case n == 0 && c.Idle > 0 && driver.Now()-shared.quietSince() >= int64(c.Idle):
			return
		case n > 0:
			c.handle(ctx, beginning, consumer, in, n, shared)
		}
	}
}

func (c Consume) receive(ctx context.Context, consumer *Consumer, in *Inbox, shared *consumeState) (int, error) {
	if c.Idle == 0 {
		return consumer.Receive(ctx, in)
	}
	left := c.Idle - time.Duration(driver.Now()-shared.quietSince())
	ctx, cancel := context.WithTimeout(ctx, max(left, time.Millisecond))
	defer cancel()
	return consumer.Receive(ctx, in)
}

// handle works on what was received and settles it, also when the loop is ending. The message whose work was cut short is given back, where
// the broker can take it.
func (c Consume) handle(ctx, beginning context.Context, consumer *Consumer, in *Inbox, n int, shared *consumeState) {
	settle := context.WithoutCancel(ctx)
	worked, handed := 0, 0
	if c.Work == 0 { // then it is the turn of all of them
		handed = n
		consumer.HandOver(in, n)
	}
	for worked < n {
		if c.Work > 0 {
			if beginning.Err() != nil {
				break
			}
			handed = worked + 1
			consumer.HandOver(in, handed)
			if consumer.run.sleep(ctx, driver.Now()+int64(c.Work)) != nil {
				break
			}
		}
		worked++
		if c.Ack == AckMessage {
			c.settle(settle, consumer, in, worked-1, worked, driver.Ack, shared)
		}
	}
	if c.Ack == AckBatch {
		c.settle(settle, consumer, in, 0, worked, driver.Ack, shared)
	}
	if c.Ack != AckNone && consumer.driver.Features.Settle.Has(driver.Requeue) {
		c.settle(settle, consumer, in, worked, handed, driver.Requeue, shared)
	}
	if handed < n {
		consumer.leaveAhead(in)
	}
	shared.received(handed, in.HandedAt)
}

// settleTimeout bounds a settlement that the broker confirms.
const settleTimeout = 30 * time.Second

func (c Consume) settle(ctx context.Context, consumer *Consumer, in *Inbox, from, to int, o driver.Outcome, shared *consumeState) {
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	if err := consumer.Settle(ctx, in, from, to, o); err != nil {
		shared.failed()
		return
	}
	if o == driver.Ack {
		shared.settled(to - from)
	}
}
