//gosec:disable G115 -- counts, not negative
package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// AckMode is the way in which a consume loop acknowledges.
type AckMode string

// Ack modes.
const (
	AckBatch   AckMode = "batch"   // the messages of one receive in one call
	AckMessage AckMode = "message" // each message by itself
	AckNone    AckMode = "none"    // never; the only one if the broker has no acknowledgements
)

// Consume is a loop that receives, works and acknowledges.
type Consume struct {
	Batch    int           // messages per receive, at most; 0 is 100
	Ack      AckMode       // "" is batch, or none if the broker has no acknowledgements
	Work     time.Duration // how long each message is worked on
	Duration time.Duration // no message is begun after it; 0 is no limit
	Count    uint64        // messages of all consumers; 0 is no limit
	Idle     time.Duration // the loop ends when nothing came for so long; 0 is never
}

// Consumed counts the messages of a consume loop.
type Consumed struct {
	Received, Settled uint64
	Errors            uint64
	Elapsed           time.Duration // to the end of the work on the last message, or of the loop if none came
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

// Run receives until the duration, the count, idleness or ctx ends. Each consumer works in its own
// goroutine and finishes its message, unless ctx has ended. Its further messages stay for its next
// loop or receive. A broker's errors are counted and do not end the loop.
func (c Consume) Run(ctx context.Context, consumers []*Consumer) (Consumed, error) {
	beginning, cancel := context.WithCancel(ctx)
	defer cancel()
	if c.Duration > 0 {
		var stop context.CancelFunc
		beginning, stop = context.WithTimeout(beginning, c.Duration)
		defer stop()
	}
	start := driver.Now()
	all := &consumeLoops{Consume: c, ctx: ctx, beginning: beginning, stop: cancel}
	all.last.Store(start)
	var wg sync.WaitGroup
	for _, consumer := range consumers {
		wg.Go(func() { all.run(consumer) })
	}
	wg.Wait()
	done := cmp.Or(all.done.Load(), driver.Now())
	return Consumed{
		Received: all.received.Load(), Settled: all.settled.Load(), Errors: all.errors.Load(),
		Elapsed: time.Duration(done - start),
	}, nil
}

// consumeLoops are the loops of the consumers of one Consume. No message is begun after beginning
// has ended, and none is worked on after ctx.
type consumeLoops struct {
	Consume
	ctx, beginning            context.Context
	stop                      context.CancelFunc
	last                      atomic.Int64 // when the last message came, or the loop began
	done                      atomic.Int64 // when the work on it ended; 0 before
	begun                     atomic.Uint64
	received, settled, errors atomic.Uint64
}

// begin reports whether n messages may be begun.
func (l *consumeLoops) begin(n uint64) bool {
	if l.Count == 0 {
		return true
	}
	begun := l.begun.Add(n)
	if begun >= l.Count {
		l.stop()
	}
	return begun-n < l.Count
}

// errorPause keeps a loop from spinning while the broker is away.
const errorPause = 10 * time.Millisecond

func (l *consumeLoops) run(consumer *Consumer) {
	in := NewBuffer(l.Batch)
	for l.beginning.Err() == nil && !consumer.closed.Load() {
		n, err := l.receive(consumer, in)
		quiet := time.Duration(driver.Now() - l.last.Load())
		switch {
		case err != nil:
			l.errors.Add(1)
			_ = consumer.run.sleep(l.beginning, driver.Now()+int64(errorPause)) // the loop sees that it ended
		case n == 0 && l.Idle > 0 && quiet >= l.Idle:
			return
		case n > 0:
			l.handle(consumer, in, n)
		}
	}
}

func (l *consumeLoops) receive(consumer *Consumer, in *Buffer) (int, error) {
	if l.Idle == 0 {
		return consumer.Receive(l.beginning, in)
	}
	quiet := time.Duration(driver.Now() - l.last.Load())
	ctx, cancel := context.WithTimeout(l.beginning, max(l.Idle-quiet, time.Millisecond))
	defer cancel()
	return consumer.Receive(ctx, in)
}

// handle works on received messages and settles them, also while the loop is ending. A message
// whose work was cut short is requeued if the broker can do that.
func (l *consumeLoops) handle(consumer *Consumer, in *Buffer, n int) {
	worked, handed := n, n
	switch {
	case l.Work > 0:
		worked, handed = l.work(consumer, in, n)
	case l.begin(uint64(n)):
		consumer.HandOver(in, n)
		for i := 0; l.Ack == AckMessage && i < n; i++ {
			l.settle(consumer, in, i, i+1, driver.Ack)
		}
	default:
		worked, handed = 0, 0
	}
	if l.Ack == AckBatch {
		l.settle(consumer, in, 0, worked, driver.Ack)
	}
	if l.Ack != AckNone && consumer.driver.Features.Settle.Has(driver.Requeue) {
		l.settle(consumer, in, worked, handed, driver.Requeue)
	}
	if handed < n {
		consumer.leaveAhead(in)
	}
	if handed > 0 {
		l.received.Add(uint64(handed))
		raise(&l.last, in.HandedAt)
		raise(&l.done, driver.Now())
	}
}

// work works on one message after the other. It returns the number of messages whose work is done,
// and the number that was handed over.
func (l *consumeLoops) work(consumer *Consumer, in *Buffer, n int) (worked, handed int) {
	for worked < n && l.beginning.Err() == nil && !consumer.closed.Load() && l.begin(1) {
		handed = worked + 1
		consumer.HandOver(in, handed)
		if consumer.run.sleep(l.ctx, driver.Now()+int64(l.Work)) != nil {
			return worked, handed
		}
		if l.Ack == AckMessage {
			l.settle(consumer, in, worked, handed, driver.Ack)
		}
		worked = handed
	}
	return worked, handed
}

// settleTimeout bounds a settlement that the broker confirms.
const settleTimeout = 30 * time.Second

func (l *consumeLoops) settle(consumer *Consumer, in *Buffer, from, to int, o driver.Outcome) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(l.ctx), settleTimeout)
	defer cancel()
	switch err := consumer.Settle(ctx, in, from, to, o); {
	case err != nil:
		l.errors.Add(1)
	case o == driver.Ack:
		l.settled.Add(uint64(to - from))
	}
}
