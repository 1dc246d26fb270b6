package engine

import (
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/machine"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/payload"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/schedule"
)

// Produce is a loop that sends generated messages.
type Produce struct {
	// Schedule makes the schedule of arrivals, one for each goroutine; nil is a closed loop, which
	// sends as fast as the window lets it.
	Schedule func() schedule.Schedule
	// Share is the part of the messages that this process sends. Schedule and Count are of all
	// processes.
	Share    schedule.Share
	Start    int64         // when the schedule begins, by [driver.Now]; 0 is now
	Duration time.Duration // no message is due after it; 0 is no limit
	Count    uint64        // messages at most; 0 is no limit
	Payload  payload.Spec
	Batch    int // messages handed over in one call at most; 0 chooses by size
}

// Produced counts the messages of a produce loop.
type Produced struct {
	Due, Sent, Confirmed, Failed uint64
	Elapsed                      time.Duration // from the start to the last confirmation
}

// batchBytes bounds the bodies of one flight by default, and largestBatch their number.
const (
	batchBytes   = 16 << 10
	largestBatch = 64
)

// never is the due time of a message that does not exist.
const never = int64(math.MaxInt64)

// Run sends until the schedule, the duration, the count or ctx ends, and then waits for the fate of
// the messages in flight. Each sender works in its own goroutine on its share of the schedule.
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
		loops[i] = newProduceLoop(p, s, schedule.Shard(uint64(i), uint64(len(senders))))
		sending.Go(func() { loops[i].run(ctx) })
	}
	sending.Wait()
	var total Produced
	for _, l := range loops {
		l.flying.Wait() // the driver bounds the time
		total.Due += l.next
		total.Sent += l.sent
		total.Failed += l.failed
	}
	total.Confirmed = total.Sent - total.Failed
	total.Elapsed = time.Duration(driver.Now() - p.Start)
	return total, nil
}

// produceLoop is one sender's share of a produce loop.
type produceLoop struct {
	Produce
	sender   *Sender
	schedule schedule.Schedule // nil in a closed loop
	maker    *payload.Maker
	share    schedule.Share // of the messages that are sent here
	count    uint64         // messages of the share, if Count is set
	next     uint64         // the message to send next, counted within the share
	due      int64          // when it is due, or never; 0 in a closed loop
	sleep    machine.Sleeper
	free     int64 // when the window last had room again; 0 if it always had
	flying   sync.WaitGroup

	mu           sync.Mutex
	idle         []*flight
	sent, failed uint64
}

func newProduceLoop(p Produce, s *Sender, share schedule.Share) *produceLoop {
	l := &produceLoop{
		Produce: p, sender: s, share: share, count: share.Count(p.Share.Count(p.Count)),
		maker: p.Payload.Maker(s.stamp.Front(), s.track.ID()), sleep: machine.Sleeper{Sleep: s.pub.run.sleep},
	}
	if p.Schedule != nil {
		l.schedule = share.Of(p.Share.Of(p.Schedule()))
	}
	l.look()
	return l
}

func (l *produceLoop) run(ctx context.Context) {
	defer l.abandon()
	for ctx.Err() == nil {
		now := driver.Now()
		switch {
		case l.due == never, l.schedule == nil && l.Duration > 0 && now-l.Start >= int64(l.Duration):
			return
		case l.due > now:
			if l.sleep.Until(ctx, l.due) != nil {
				return
			}
		default:
			if l.send(ctx) != nil {
				return
			}
		}
	}
}

// look finds when the next message is due.
func (l *produceLoop) look() {
	if l.Count > 0 && l.next >= l.count {
		l.due = never
		return
	}
	if l.schedule == nil {
		return
	}
	at, ok := l.schedule.At(l.next)
	if !ok || l.Duration > 0 && at >= l.Duration {
		l.due = never
		return
	}
	l.due = l.Start + int64(at)
}

// number returns the number, among the messages of all processes, of the n-th message of this loop.
func (l *produceLoop) number(n uint64) uint64 { return l.Share.Index(l.share.Index(n)) }

// send hands over the messages that are due, up to a batch. It returns the error of ctx.
func (l *produceLoop) send(ctx context.Context) error {
	most := l.Batch
	w := l.sender.pub.window
	least := 1
	if l.schedule == nil { // nothing is late in a closed loop: wake once for many
		least = min(most, int(w.size)/2+1)
	}
	n, waited, err := l.sender.admit(ctx, int64(least), int64(most))
	if err != nil {
		return err
	}
	now := driver.Now()
	if waited {
		l.free = now
	}
	f := l.flight()
	f.free = l.free
	for int64(len(f.batch)) < n && l.due <= now {
		l.fill(f)
		l.next++
		l.look()
	}
	if unused := n - int64(len(f.batch)); unused > 0 {
		w.release(unused)
	}
	f.launch(ctx)
	return nil
}

// fill adds the next message to a flight. Its body is the one that this place in the flight had
// before.
func (l *produceLoop) fill(f *flight) {
	i := len(f.batch)
	if i < cap(f.batch) {
		f.batch = f.batch[:i+1]
	} else {
		f.batch = append(f.batch, driver.Message{})
	}
	m := &f.batch[i]
	l.maker.Fill(m, l.number(l.next))
	if m.Headers == nil && (l.Payload.Headers != nil || l.sender.stamp == StampInHeader) {
		m.Headers = slices.Clone(l.Payload.Headers)
		if l.sender.stamp == StampInHeader {
			attachStamp(m, StampInHeader)
		}
	}
	m.Properties = l.Payload.Properties
	f.due = append(f.due, l.due)
}

// flight takes an idle flight or makes one. There are never more than the window has places.
func (l *produceLoop) flight() *flight {
	l.flying.Add(1)
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.idle)
	if n == 0 {
		f := newFlight(l.sender, l.Batch)
		if l.schedule == nil {
			f.loop = recording.Closed
		}
		f.end = l.land
		return f
	}
	f := l.idle[n-1]
	l.idle = l.idle[:n-1]
	f.batch, f.due = f.batch[:0], f.due[:0]
	return f
}

// land takes a flight back when the fate of its messages is decided.
func (l *produceLoop) land(f *flight) {
	l.mu.Lock()
	l.sent += uint64(len(f.batch))
	l.failed += uint64(f.failures.Swap(0)) //gosec:disable G115 -- a count
	l.idle = append(l.idle, f)
	l.mu.Unlock()
	l.flying.Done()
}

// abandon counts the rest of the schedule as due if ctx ended before it was sent.
func (l *produceLoop) abandon() {
	if l.schedule == nil || l.due == never {
		return
	}
	all := max(l.next, l.share.Count(l.all()))
	l.sender.series.Load().add(recording.Due, int64(all-l.next)) //gosec:disable G115 -- a count
	l.next = all
}

// all returns the number of messages of the schedule that are this process's. Random arrivals have
// their average number.
func (p Produce) all() uint64 {
	even := p.Share.Of(schedule.Even(p.Schedule()))
	n, ends := schedule.Count(even)
	if p.Duration > 0 {
		n, ends = schedule.Until(even, p.Duration-1), true
	}
	if count := p.Share.Count(p.Count); p.Count > 0 && (!ends || count < n) {
		n = count
	}
	return n
}

// Unsent counts the whole schedule as due, because no sender could be opened.
func (p Produce) Unsent(series *Series) {
	if p.Schedule != nil {
		series.add(recording.Due, int64(p.all())) //gosec:disable G115 -- a count
	}
}
