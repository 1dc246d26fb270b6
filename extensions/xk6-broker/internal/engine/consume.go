//gosec:disable G115 -- counts, not negative
package engine

import (
	"cmp"
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
	Called   int64         // when it was called, after which those of its consumers that were not there were opened, by [driver.Now]; 0 is when Run is
}

// Consumed is what a consume loop did.
type Consumed struct {
	Received, Settled uint64
	Errors            uint64
	// Prefetched is how many of the received had come before the loop was called, to consumers that were open: what brought them is not in Elapsed.
	Prefetched uint64
	// Elapsed is how long it took, to the end of the work on the last message, or to the loop's end where none came. It begins with the loop, or when the
	// first message came where that was before, while further consumers were being opened, but never before the loop was called.
	Elapsed time.Duration
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
			return c, fmt.Errorf(`option "ack": this broker has no acknowledgements: leave it out, or write none`)
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
	c.Called = cmp.Or(c.Called, start)
	if c.Duration > 0 {
		var stop context.CancelFunc
		beginning, stop = context.WithTimeout(beginning, c.Duration)
		defer stop()
	}
	shared := &consumeState{first: start, last: start, done: start, cancel: cancel, limit: c.Count}
	var wg sync.WaitGroup
	for _, consumer := range consumers {
		wg.Go(func() { c.loop(ctx, beginning, consumer, shared) })
	}
	wg.Wait()
	shared.total.Elapsed = time.Duration(shared.done - max(shared.first, c.Called))
	if shared.total.Received == 0 {
		shared.total.Elapsed = time.Duration(driver.Now() - start)
	}
	return shared.total, nil
}

// consumeState is what the consumers of one loop share.
type consumeState struct {
	mu     sync.Mutex
	first  int64 // when the loop began, or the first message came where that was before
	last   int64 // when the last message came
	done   int64 // when the work on it ended
	limit  uint64
	begun  uint64 // messages whose turn has come
	total  Consumed
	cancel context.CancelFunc
}

// begin tells whether n messages may have their turn. The last ones that may end the beginning of any more.
func (s *consumeState) begin(n int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.limit > 0 && s.begun >= s.limit {
		return false
	}
	s.begun += uint64(n)
	if s.limit > 0 && s.begun >= s.limit {
		s.cancel()
	}
	return true
}

// received notes n messages, one at least: how many of them had come before the loop was called, when the first had come, when the last had its turn, and
// when the work on it ended.
func (s *consumeState) received(n, prefetched int, came, at, done int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total.Received += uint64(n)
	s.total.Prefetched += uint64(prefetched)
	s.first, s.last, s.done = min(s.first, came), max(s.last, at), max(s.done, done)
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

// loop begins nothing more when beginning has ended, and works until ctx does, which ends before what is made of it.
func (c Consume) loop(ctx, beginning context.Context, consumer *Consumer, shared *consumeState) {
	in := NewBuffer(c.Batch)
	for ctx.Err() == nil && beginning.Err() == nil && !consumer.closed.Load() {
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

func (c Consume) receive(ctx context.Context, consumer *Consumer, in *Buffer, shared *consumeState) (int, error) {
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
func (c Consume) handle(ctx, beginning context.Context, consumer *Consumer, in *Buffer, n int, shared *consumeState) {
	settle := context.WithoutCancel(ctx)
	worked, handed, turns := 0, 0, n
	switch {
	case c.Work > 0: // one after the other
	case shared.begin(n):
		handed = n
		consumer.HandOver(in, n)
	default:
		turns = 0
	}
	for worked < turns {
		if c.Work > 0 {
			if ctx.Err() != nil || beginning.Err() != nil || consumer.closed.Load() || !shared.begin(1) {
				break
			}
			handed = worked + 1
			consumer.HandOver(in, handed)
			if err := consumer.run.sleep(ctx, driver.Now()+int64(c.Work)); err != nil {
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
	if handed > 0 {
		prefetched := 0
		for prefetched < handed && in.Messages[prefetched].Received < c.Called { // they are in the order in which they came
			prefetched++
		}
		shared.received(handed, prefetched, in.Messages[0].Received, in.HandedAt, driver.Now())
	}
}

// settleTimeout bounds a settlement that the broker confirms.
const settleTimeout = 30 * time.Second

func (c Consume) settle(ctx context.Context, consumer *Consumer, in *Buffer, from, to int, o driver.Outcome, shared *consumeState) {
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
