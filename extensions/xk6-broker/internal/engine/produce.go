package engine

import (
	"context"
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
	// Share is which of the messages this process sends. Schedule and Count are those of all processes.
	Share      schedule.Share
	Start      int64         // when the schedule begins, by [driver.Now]; 0 is now
	Duration   time.Duration // no message is due after it; 0 is no limit
	Count      uint64        // messages at most; 0 is no limit
	Payload    payload.Spec
	Batch      int // messages handed over in one call at most; 0 chooses by size
	LeastBatch int // if it is not 0, each call has a random number from it to Batch
}

// Produced is what a produce loop did.
type Produced struct {
	Due, Sent, Confirmed, Failed uint64
	Elapsed                      time.Duration // from the start to the last confirmation
}

// batchBytes bounds the bodies of one flight by default, and largestBatch their number.
const (
	batchBytes   = 16 << 10
	largestBatch = 64
)

// Run sends until the schedule, the duration, the count or ctx ends, and then waits for the fate of
// what is in flight. Each sender works in its own goroutine on its share of the schedule.
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
		l.wait()
		total.Due += l.next
		total.Sent += l.sent
		total.Failed += l.failed
		total.Confirmed += l.confirmed
	}
	total.Elapsed = time.Duration(driver.Now() - p.Start)
	return total, nil
}

// produceLoop is one sender's share of a produce loop.
type produceLoop struct {
	Produce
	sender   *Sender
	schedule schedule.Schedule // nil in a closed loop
	maker    *payload.Maker
	share    schedule.Share // of those that are sent here
	count    uint64
	next     uint64 // the arrival to send next, counted within the share
	calls    uint64
	ahead    arrival // the next one of the schedule
	sleep    machine.Sleeper
	free     int64 // when the window last had room again; 0 if it always had

	mu                      sync.Mutex
	idle                    []*flight
	flying                  int
	landed                  chan struct{}
	sent, confirmed, failed uint64
}

type arrival struct {
	due    int64
	ok     bool
	looked bool
}

func newProduceLoop(p Produce, s *Sender, share schedule.Share) *produceLoop {
	l := &produceLoop{
		Produce: p, sender: s, share: share, landed: make(chan struct{}, 1), sleep: machine.Sleeper{Sleep: s.pub.run.sleep},
	}
	l.maker = l.Payload.Maker(s.stamp.Front(), s.track.ID())
	if p.Schedule != nil {
		l.schedule = l.share.Of(p.Share.Of(p.Schedule()))
	}
	l.count = l.share.Count(p.Share.Count(p.Count))
	return l
}

func (l *produceLoop) run(ctx context.Context) {
	defer l.abandon()
	for ctx.Err() == nil {
		most, until := l.due()
		switch {
		case most == 0 && until == never:
			return
		case most == 0:
			if l.sleep.Until(ctx, until) != nil {
				return
			}
		default:
			if !l.send(ctx, most) {
				return
			}
		}
	}
}

const never = int64(1<<63 - 1)

// due returns how many messages are due now, up to a batch, or else when the next one is.
func (l *produceLoop) due() (most int, until int64) {
	now := driver.Now()
	switch {
	case l.Count > 0 && l.next >= l.count:
		return 0, never
	case l.schedule == nil && l.Duration > 0 && now-l.Start >= int64(l.Duration):
		return 0, never
	case l.schedule == nil:
		return l.most(), 0
	case !l.look():
		return 0, never
	case l.ahead.due > now:
		return 0, l.ahead.due
	}
	return l.most(), 0
}

// most returns how many messages the next call may have.
func (l *produceLoop) most() int {
	most := l.Batch
	if l.LeastBatch > 0 {
		most = l.Payload.Batch(l.number(l.calls), l.LeastBatch, l.Batch)
	}
	if l.Count > 0 {
		most = int(min(uint64(most), l.count-l.next)) //gosec:disable G115 -- a count
	}
	return most
}

// number returns the number among those of all processes of the n-th message of this loop.
func (l *produceLoop) number(n uint64) uint64 { return l.Share.Index(l.share.Index(n)) }

// look looks at the next arrival, and reports whether there is one.
func (l *produceLoop) look() bool {
	if !l.ahead.looked {
		at, ok := l.schedule.At(l.next)
		ok = ok && (l.Duration == 0 || at < l.Duration)
		l.ahead = arrival{due: l.Start + int64(at), ok: ok, looked: true}
	}
	return l.ahead.ok
}

// send hands over what is due, up to most messages. It returns false if ctx ended first.
func (l *produceLoop) send(ctx context.Context, most int) bool {
	w := l.sender.pub.window
	least := 1
	if l.schedule == nil { // nothing is late in a closed loop: wake once for many
		least = min(most, int(w.size)/2+1)
	}
	n, waited, err := l.sender.admit(ctx, int64(least), int64(most))
	if err != nil {
		return false
	}
	now := driver.Now()
	if waited {
		l.free = now
	}
	f := l.flight()
	f.free = l.free
	for int64(len(f.batch)) < n {
		if l.schedule != nil && (!l.look() || l.ahead.due > now) {
			break
		}
		l.fill(f, l.ahead.due)
		l.ahead.looked = false
		l.next++
	}
	if unused := n - int64(len(f.batch)); unused > 0 {
		w.release(unused)
	}
	l.calls++
	f.launch(ctx)
	return true
}

// fill adds one message to a flight. Its body is the one that this place in the flight had before.
func (l *produceLoop) fill(f *flight, due int64) {
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
	f.due = append(f.due, due)
}

// flight takes one that has landed, or makes one. There are never more than the window has places.
func (l *produceLoop) flight() *flight {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flying++
	n := len(l.idle)
	if n == 0 {
		f := newFlight(l.sender, l.Batch)
		f.closed = l.schedule == nil
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
	failed := uint64(f.failures.Swap(0)) //gosec:disable G115 -- a count
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

// abandon counts what the schedule has left as due if ctx ended before it was sent. Of random
// arrivals these are as many as there are on average.
func (l *produceLoop) abandon() {
	_, until := l.due()
	if l.schedule == nil || until == never {
		return
	}
	rest := l.total()
	rest = l.share.Count(rest) - min(l.next, l.share.Count(rest))
	l.next += rest
	l.sender.series.Load().add(recording.Due, int64(rest)) //gosec:disable G115 -- a count
}

// total returns how many messages the schedule has for this process; 0 without a schedule.
func (p Produce) total() uint64 {
	if p.Schedule == nil {
		return 0
	}
	s := p.Share.Of(schedule.Even(p.Schedule()))
	n, ends := schedule.Count(s)
	if p.Duration > 0 {
		n, ends = schedule.Until(s, p.Duration-1), true
	}
	if count := p.Share.Count(p.Count); p.Count > 0 && (!ends || count < n) {
		n = count
	}
	return n
}

// wait returns when nothing is in flight. The driver bounds that time.
func (l *produceLoop) wait() {
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
