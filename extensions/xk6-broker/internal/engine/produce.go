package engine

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/machine"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/payload"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/schedule"
)

// Produce is a loop that sends generated messages.
type Produce struct {
	// Schedule makes the schedule of arrivals; nil sends as fast as the window lets: a closed loop. It is called once for
	// each sender, as a schedule serves one goroutine.
	Schedule func() schedule.Schedule
	// Share is which of the load's messages are sent here, where other processes send the others: schedule and count are of the whole, and message n
	// of the whole is the same wherever it is sent.
	Share schedule.Share
	// Start is when the schedule's time 0 is, by [driver.Now]; 0 is now.
	Start    int64
	Duration time.Duration // no message is due after it; 0 is no limit
	Count    uint64        // how many messages at most, of the whole; 0 is no limit
	Payload  payload.Spec
	// Batch is how many messages at most are handed over in one call, of those that are due; 0 chooses by size.
	Batch int
	// LeastBatch, where it is not 0, makes that a number from it to Batch, drawn for each call.
	LeastBatch int
}

// Produced is what a produce loop did.
type Produced struct {
	Due, Sent, Confirmed, Failed uint64
	Elapsed                      time.Duration // from the start to the last confirmation
}

// batchBytes bounds the bodies of one flight where the caller leaves the choice, and largestBatch their number: beyond
// that nothing is gained by handing over more at once.
const (
	batchBytes   = 16 << 10
	largestBatch = 64
)

// Run sends until the schedule, the duration, the count or ctx ends, and then waits for the fate of what is in flight.
// Each sender works in its own goroutine on its share of the schedule.
func (p Produce) Run(ctx context.Context, senders []*Sender) (Produced, error) {
	for _, s := range senders {
		if err := p.Payload.Check(s.stamp.Front()); err != nil {
			return Produced{}, err
		}
	}
	if p.Batch == 0 {
		p.Batch = min(largestBatch, max(1, batchBytes/max(1, int(p.Payload.Mean()))))
	}
	if p.Start == 0 {
		p.Start = driver.Now()
	}
	loops := make([]*produceLoop, len(senders))
	var sending sync.WaitGroup
	for i, s := range senders {
		loops[i] = newProduceLoop(p, s, uint64(i), uint64(len(senders)))
		end := func() {}
		if p.Schedule != nil {
			end = s.pub.topic.loops.begin(newAgenda(loops[i]))
		}
		sending.Go(func() {
			defer end()
			loops[i].run(ctx)
		})
	}
	sending.Wait()
	p.noteInterruption(ctx, loops)
	for _, l := range loops {
		l.settle()
	}
	var total Produced
	var errs []error
	for _, l := range loops {
		total.Due += l.next
		total.Sent += l.sent
		total.Failed += l.failed
		total.Confirmed += l.confirmed
		errs = append(errs, l.err)
	}
	total.Elapsed = time.Duration(driver.Now() - p.Start)
	return total, errors.Join(errs...)
}

// produceLoop is one sender's share of a produce loop.
type produceLoop struct {
	Produce
	sender   *Sender
	schedule schedule.Schedule // nil in a closed loop
	maker    *payload.Maker
	own      schedule.Share // of those that are sent here
	count    uint64
	next     uint64        // the arrival to send next, counted within the share
	taken    atomic.Uint64 // the same, for others to read
	calls    uint64
	ahead    arrival
	sleep    machine.Sleeper
	room     int64 // when the window last had room again; 0 where it always had
	err      error

	mu                      sync.Mutex
	idle                    []*flight
	flying                  int
	landed                  chan struct{}
	sent, confirmed, failed uint64
}

// arrival is the next one of the schedule.
type arrival struct {
	due   int64
	ok    bool
	known bool
}

func newProduceLoop(p Produce, s *Sender, share, shares uint64) *produceLoop {
	l := &produceLoop{
		Produce: p, sender: s, own: schedule.Shard(share, shares), landed: make(chan struct{}, 1), sleep: machine.Sleeper{Sleep: s.pub.run.sleep},
	}
	l.maker = l.Payload.Maker(s.stamp.Front(), s.id)
	if p.Schedule != nil {
		l.schedule = l.own.Of(p.Share.Of(p.Schedule()))
	}
	l.count = l.own.Count(p.Share.Count(p.Count))
	return l
}

func (l *produceLoop) run(ctx context.Context) {
	defer l.abandon()
	for ctx.Err() == nil {
		most, until := l.due()
		if most == 0 {
			if until == never {
				return
			}
			if l.sleep.Until(ctx, until) != nil {
				return
			}
			continue
		}
		if !l.send(ctx, most) {
			return
		}
	}
}

const never = int64(1<<63 - 1)

// due tells how many messages are due now, up to a batch, or else when the next one is.
func (l *produceLoop) due() (most int, until int64) {
	if l.Count > 0 && l.next >= l.count {
		return 0, never
	}
	now := driver.Now()
	if l.schedule == nil {
		if l.Duration > 0 && now-l.Start >= int64(l.Duration) {
			return 0, never
		}
		return l.bounded(l.most()), 0
	}
	if !l.peek() {
		return 0, never
	}
	if l.ahead.due > now {
		return 0, l.ahead.due
	}
	return l.bounded(l.most()), 0
}

// most is how many messages the next call may have.
func (l *produceLoop) most() int {
	if l.LeastBatch == 0 {
		return l.Batch
	}
	return l.Payload.Batch(l.numberOf(l.calls), l.LeastBatch, l.Batch)
}

// numberOf is which of the whole load the n-th of this loop is.
func (l *produceLoop) numberOf(n uint64) uint64 { return l.Share.Index(l.own.Index(n)) }

func (l *produceLoop) bounded(most int) int {
	if l.Count > 0 {
		most = int(min(uint64(most), l.count-l.next)) //gosec:disable G115 -- a count, far below the limit
	}
	return most
}

// peek looks at the next arrival.
func (l *produceLoop) peek() bool {
	if !l.ahead.known {
		at, ok := l.schedule.At(l.next)
		ok = ok && (l.Duration == 0 || at < l.Duration)
		l.ahead = arrival{due: l.Start + int64(at), ok: ok, known: true}
	}
	return l.ahead.ok
}

// send hands over what is due, up to most messages. It is false where ctx ended first.
func (l *produceLoop) send(ctx context.Context, most int) bool {
	least := 1
	if l.schedule == nil { // nothing is late in a closed loop: wake once for many
		least = min(most, int(l.sender.pub.window.size)/2+1)
	}
	w := l.sender.pub.window
	n := int(w.tryAcquire(int64(least), int64(most)))
	if n == 0 {
		l.sender.series.Load().add(recording.Blocked, 1)
		got, err := w.acquire(ctx, int64(least), int64(most))
		if err != nil {
			return false
		}
		n = int(got)
		l.room = driver.Now()
	}
	waited, err := l.sender.hire(ctx)
	if err != nil {
		w.release(int64(n))
		return false
	}
	if waited {
		l.room = driver.Now()
	}
	f := l.flight()
	f.roomAt(l.room)
	f.batch, f.due = f.batch[:0], f.due[:0]
	now := driver.Now()
	for len(f.batch) < n {
		due := int64(0)
		if l.schedule != nil {
			if !l.peek() || l.ahead.due > now {
				break
			}
			due = l.ahead.due
			l.ahead.known = false
		}
		l.fill(f, due)
		l.next++
	}
	if unused := n - len(f.batch); unused > 0 {
		w.release(int64(unused))
	}
	l.calls++
	l.taken.Store(l.next)
	f.launch(ctx)
	return true
}

// fill adds one message to a flight; its body is the one that this place in the flight had before.
func (l *produceLoop) fill(f *flight, due int64) {
	i := len(f.batch)
	if i < cap(f.batch) {
		f.batch = f.batch[:i+1]
	} else {
		f.batch = append(f.batch, driver.Message{})
	}
	m := &f.batch[i]
	l.maker.Fill(m, l.numberOf(l.next))
	if m.Headers == nil && (l.Payload.Headers != nil || l.sender.stamp == StampInHeader) {
		m.Headers = slices.Clone(l.Payload.Headers)
		if l.sender.stamp == StampInHeader {
			attachStamp(m, StampInHeader)
		}
	}
	m.Properties = l.Payload.Properties
	f.due = append(f.due, due)
}

// flight takes one that has landed, or makes one. There are never more than the window has places.
func (l *produceLoop) flight() *flight {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flying++
	if n := len(l.idle); n > 0 {
		f := l.idle[n-1]
		l.idle = l.idle[:n-1]
		return f
	}
	f := newFlight(l.sender, l.Batch)
	f.closed = l.schedule == nil
	f.ends = l
	return f
}

// end takes a flight back when the fate of its messages is known.
func (l *produceLoop) end(f *flight) {
	failed := uint64(f.failures.Swap(0)) //gosec:disable G115 -- a count, far below the limit
	l.mu.Lock()
	n := uint64(len(f.batch))
	l.sent += n
	l.failed += failed
	l.confirmed += n - failed
	l.idle = append(l.idle, f)
	l.flying--
	l.mu.Unlock()
	select {
	case l.landed <- struct{}{}:
	default:
	}
}

// abandon counts, when ctx ended early, the arrivals whose time has come and that were never sent: the result shows them as
// due and not sent.
func (l *produceLoop) abandon() {
	if l.schedule == nil {
		return
	}
	var n int64
	for now := driver.Now(); l.bounded(1) > 0 && l.peek() && l.ahead.due <= now; l.next++ {
		l.ahead.known = false
		n++
	}
	l.taken.Store(l.next)
	l.sender.series.Load().add(recording.Due, n)
}

// settle waits until nothing is in flight. The driver bounds that time: it calls done, with an error at the latest.
func (l *produceLoop) settle() {
	for {
		l.mu.Lock()
		flying := l.flying
		l.mu.Unlock()
		if flying == 0 {
			return
		}
		<-l.landed
	}
}
