package engine

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
)

// Publisher is an open producer of a driver. Any number of senders share it.
type Publisher struct {
	run      *Run
	driver   *driver.Driver
	topic    *Topic
	conn     driver.Conn
	config   driver.ProducerConfig
	producer driver.Producer
	window   *window         // of messages
	reorders []driver.Option // properties of messages
	workers  *window         // of calls of Send; nil where they do not wait for the broker
	queued   atomic.Int64    // messages of a script that are due and wait for room in the window
	own      atomic.Int64    // how late the message handed over last was by the generator's own fault, in ns
}

// NewPublisher opens a producer on conn.
func (r *Run) NewPublisher(ctx context.Context, conn driver.Conn, t *Topic, c driver.ProducerConfig) (*Publisher, error) {
	p, err := conn.NewProducer(ctx, c)
	if err != nil {
		return nil, t.Address.Driver.Wrap("open producer on "+t.Name, t.explain(err))
	}
	pub := &Publisher{run: r, driver: t.Address.Driver, topic: t, conn: conn, config: c, producer: p, window: newWindow(c.Window)}
	if !pub.driver.Features.Async {
		pub.workers = newWindow(max(1, c.Workers))
	}
	pub.reorders = reorderings(pub.driver, driver.OnMessage)
	t.disorder(r, reorderings(pub.driver, driver.OnProducer), c.Options)
	t.connected(conn)
	r.mu.Lock()
	r.publishers = append(r.publishers, pub)
	r.mu.Unlock()
	pub.prove() // where createTopic ends meanwhile, one of the two asks again
	return pub, nil
}

// Sender is one sequence of messages through a publisher: it numbers them, stamps them and measures their fate.
type Sender struct {
	pub    *Publisher
	id     uint64
	track  *account.Producer
	course *account.Recorder
	series atomic.Pointer[Series]
	shard  uint32
	stamp  StampMode

	mu      sync.Mutex // the order of the numbers is the order of the hand-over
	callers []caller   // idle
}

// explain says in an error about a topic that is not there which it is, and what makes it. Where a driver only sends topics come into being by use, and
// what is not there is something else.
func (t *Topic) explain(err error) error {
	if d := t.Address.Driver; err == nil || d.KindOf(err) != driver.NotFound || d.Features.Start == 0 {
		return err
	}
	return fmt.Errorf("%w: is there a topic %q? createTopic in setup makes it", err, t.Name)
}

// NewSender makes a sender whose measurements go to series.
func (p *Publisher) NewSender(stamp StampMode, series *Series) *Sender {
	c := p.newCaller()
	s := &Sender{pub: p, id: c.id, track: c.track, course: c.course, shard: uint32(c.id), stamp: stamp} //gosec:disable G115 -- bits, no number
	s.series.Store(series)
	return s
}

func (p *Publisher) newCaller() caller {
	id := p.run.producerID(p.topic)
	return caller{id, p.topic.track.Producer(id), p.topic.courseOf(id)}
}

// expect lets the groups expect messages that are confirmed, which takes a stamp to know them by.
func (s *Sender) expect(series *Series, from *account.Producer, first uint64, n int) {
	if s.stamp == StampOff {
		series.add(recording.Unaccounted, int64(n))
		return
	}
	from.ExpectN(first, n)
}

// SetSeries sends further measurements to another series.
func (s *Sender) SetSeries(series *Series) { s.series.Store(series) }

// Series is where measurements go now.
func (s *Sender) Series() *Series { return s.series.Load() }

// Receipt is what became of one message.
type Receipt struct {
	Sequence  uint64
	Due       int64 // ns since the Unix epoch, as the others
	Sent      int64
	Confirmed int64        // when the outcome was known, also where it is an error
	Place     driver.Place // of what is confirmed, as far as Features.Receipts say that there is one
	Err       error
}

// Timing is when a send was due and since when it could be made; both in ns since the Unix epoch.
type Timing struct {
	Due int64 // 0 is now: a closed loop
	// Free is when whoever sends would have been free to, had the generator never been late itself. From Due to Free the system under
	// test kept it waiting, which excuses the generator; what comes after Free is the generator's own lag. 0 excuses nothing.
	Free int64
}

// After is the timing of a send that waited for so many ns for the system under test, as for its connection to open, before it could be made.
func (t Timing) After(ns int64) Timing {
	if ns > 0 {
		t.Free = max(t.Due, t.Free) + ns
	}
	return t
}

// Send sends some messages that were due at one time and calls finished once, from any goroutine, when the fate of all is known. It
// waits while the window is full, or all workers of a driver that waits for the broker are busy.
func (s *Sender) Send(ctx context.Context, batch driver.Batch, at Timing, finished func([]Receipt)) {
	f := newReceipted(s, batch)
	f.free = at.Free
	f.closed = at.Due == 0
	f.ends = teller(finished)
	tells := s.pub.driver.Features.Receipts
	for i := range batch {
		f.due = append(f.due, at.Due)
		if tells {
			batch[i].Place = &f.receipts[i].Place
		}
	}
	for taken := 0; taken < len(batch); {
		n, waited, err := s.admit(ctx, len(batch)-taken, !f.closed)
		if waited {
			f.roomAt(driver.Now())
		}
		if err != nil {
			s.pub.window.release(int64(taken))
			s.refuse(f, err)
			return
		}
		taken += n
		if taken < len(batch) && taken == int(s.pub.window.size) {
			s.pub.window.release(int64(taken))
			s.refuse(f, errBatchTooLarge)
			return
		}
	}
	waited, err := s.hire(ctx)
	if waited {
		f.roomAt(driver.Now())
	}
	if err != nil {
		s.pub.window.release(int64(len(batch)))
		s.refuse(f, err)
		return
	}
	f.launch(ctx)
}

// hire takes one of the workers, where there are any.
func (s *Sender) hire(ctx context.Context) (waited bool, err error) {
	w := s.pub.workers
	if w == nil || w.tryAcquire(1, 1) == 1 {
		return false, nil
	}
	s.series.Load().add(recording.Blocked, 1)
	_, err = w.acquire(ctx, 1, 1)
	return true, err
}

// admit takes up to most places in the window, and counts where the sender had to wait for it.
func (s *Sender) admit(ctx context.Context, most int, due bool) (n int, waited bool, err error) {
	w := s.pub.window
	if n := w.tryAcquire(1, int64(most)); n > 0 {
		return int(n), false, nil
	}
	s.series.Load().add(recording.Blocked, 1)
	if due {
		s.pub.queued.Add(int64(most))
		defer s.pub.queued.Add(-int64(most))
	}
	got, err := w.acquire(ctx, 1, int64(most))
	return int(got), true, err
}

// refuse fails a flight that was never handed over.
func (s *Sender) refuse(f *flight, err error) {
	now := driver.Now()
	err = s.pub.driver.Wrap("send", s.pub.topic.explain(err))
	series := s.series.Load()
	for i := range f.batch {
		due := f.due[i]
		if f.closed {
			due = now
		}
		series.fail("send", s.pub.driver.KindOf(err))
		series.record(s.shard, f.loop(), recording.FailedLatency, due, now-due)
		f.receipts[i] = Receipt{Due: due, Confirmed: now, Err: err}
	}
	f.ends.end(f)
}
