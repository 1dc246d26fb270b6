//gosec:disable G115 -- counts, not negative
package engine

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

// Consumed is what a consume loop did.
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
// goroutine and finishes its message, unless ctx has ended. What it has received beyond that stays
// for its next loop or receive. A broker's errors are counted and do not end the loop.
func (c Consume) Run(ctx context.Context, consumers []*Consumer) (Consumed, error) {
	beginning, cancel := context.WithCancel(ctx)
	defer cancel()
	if c.Duration > 0 {
		var stop context.CancelFunc
		beginning, stop = context.WithTimeout(beginning, c.Duration)
		defer stop()
	}
	start := driver.Now()
	all := &consumeLoops{Consume: c, ctx: ctx, beginning: beginning, stop: cancel, last: start}
	var wg sync.WaitGroup
	for _, consumer := range consumers {
		wg.Go(func() { all.run(consumer) })
	}
	wg.Wait()
	if all.done == 0 {
		all.done = driver.Now()
	}
	all.total.Elapsed = time.Duration(all.done - start)
	return all.total, nil
}

// consumeLoops are the loops of the consumers of one Consume. No message is begun after beginning
// has ended, and none is worked on after ctx.
type consumeLoops struct {
	Consume
	ctx, beginning context.Context
	stop           context.CancelFunc

	mu    sync.Mutex
	last  int64  // when the last message came, or the loop began
	done  int64  // when the work on it ended
	begun uint64 // messages
	total Consumed
}

// begin reports whether n messages may be begun.
func (l *consumeLoops) begin(n int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.Count > 0 && l.begun >= l.Count {
		return false
	}
	l.begun += uint64(n)
	if l.Count > 0 && l.begun >= l.Count {
		l.stop()
	}
	return true
}

// add adds to what the loops did.
func (l *consumeLoops) add(c Consumed) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.total.Received += c.Received
	l.total.Settled += c.Settled
	l.total.Errors += c.Errors
}

func (l *consumeLoops) quietFor() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Duration(driver.Now() - l.last)
}

// errorPause keeps a loop from spinning while the broker is away.
const errorPause = 10 * time.Millisecond

func (l *consumeLoops) run(consumer *Consumer) {
	in := NewBuffer(l.Batch)
	for l.beginning.Err() == nil && !consumer.closed.Load() {
		n, err := l.receive(consumer, in)
		switch {
		case err != nil:
			l.add(Consumed{Errors: 1})
			if consumer.run.sleep(l.beginning, driver.Now()+int64(errorPause)) != nil {
				return
			}
		case n == 0 && l.Idle > 0 && l.quietFor() >= l.Idle:
			return
		case n > 0:
			l.handle(consumer, in, n)
		}
	}
}

func (l *consumeLoops) receive(consumer *Consumer, in *Buffer) (int, error) {
	ctx := l.beginning
	if l.Idle > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, max(l.Idle-l.quietFor(), time.Millisecond))
		defer cancel()
	}
	return consumer.Receive(ctx, in)
}

// handle works on what was received and settles it, also while the loop is ending. The message whose
// work was cut short is given back if the broker can take it.
func (l *consumeLoops) handle(consumer *Consumer, in *Buffer, n int) {
	worked, handed := 0, 0
	if l.Work == 0 && l.begin(n) {
		worked, handed = n, n
		consumer.HandOver(in, n)
		for i := 0; l.Ack == AckMessage && i < n; i++ {
			l.settle(consumer, in, i, i+1, driver.Ack)
		}
	}
	for l.Work > 0 && worked < n && l.beginning.Err() == nil && !consumer.closed.Load() && l.begin(1) {
		handed = worked + 1
		consumer.HandOver(in, handed)
		if consumer.run.sleep(l.ctx, driver.Now()+int64(l.Work)) != nil {
			break
		}
		worked++
		if l.Ack == AckMessage {
			l.settle(consumer, in, worked-1, worked, driver.Ack)
		}
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
		l.add(Consumed{Received: uint64(handed)})
		l.mu.Lock()
		defer l.mu.Unlock()
		l.last, l.done = max(l.last, in.HandedAt), max(l.done, driver.Now())
	}
}

// settleTimeout bounds a settlement that the broker confirms.
const settleTimeout = 30 * time.Second

func (l *consumeLoops) settle(consumer *Consumer, in *Buffer, from, to int, o driver.Outcome) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(l.ctx), settleTimeout)
	defer cancel()
	switch err := consumer.Settle(ctx, in, from, to, o); {
	case err != nil:
		l.add(Consumed{Errors: 1})
	case o == driver.Ack:
		l.add(Consumed{Settled: uint64(to - from)})
	}
}
