package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/engine/summary"
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
	proof    summary.Proof
	window   *window         // of messages
	workers  *window         // of calls of Send; nil if they do not wait for the broker
	effects  []driver.Option // properties of messages, see [effective]
}

// NewPublisher opens a producer on conn.
func (r *Run) NewPublisher(
	ctx context.Context, conn driver.Conn, t *Topic, c driver.ProducerConfig,
) (*Publisher, error) {
	d := t.Address.Driver
	p, err := conn.NewProducer(ctx, c)
	if err != nil {
		return nil, d.Wrap("open producer on "+t.Name, t.explain(err))
	}
	pub := &Publisher{
		run: r, driver: d, topic: t, conn: conn, config: c, producer: p, window: newWindow(c.Window),
		effects: effective(d, driver.OnMessage),
	}
	if !d.Features.Async {
		pub.workers = newWindow(max(1, c.Workers))
	}
	t.noteOptions(effective(d, driver.OnProducer), c.Options)
	t.connected(conn)
	pub.proof = pub.prove(ctx, "")
	r.mu.Lock()
	defer r.mu.Unlock()
	r.publishers = append(r.publishers, pub)
	return pub, nil
}

// Sender is one sequence of messages through a publisher: it numbers them, stamps them and measures
// their fate.
type Sender struct {
	pub    *Publisher
	track  *account.Producer
	series atomic.Pointer[Series]
	shard  uint32
	stamp  StampMode

	mu sync.Mutex // the order of the numbers is the order of the hand-over
}

// NewSender makes a sender whose measurements go to series.
func (p *Publisher) NewSender(stamp StampMode, series *Series) *Sender {
	id := p.run.producerID(p.topic)
	shard := uint32(id) //gosec:disable G115 -- bits, no number
	s := &Sender{pub: p, track: p.topic.track.Producer(id), shard: shard, stamp: stamp}
	s.series.Store(series)
	return s
}

// SetSeries sends further measurements to another series.
func (s *Sender) SetSeries(series *Series) { s.series.Store(series) }

// Series returns the series of further measurements.
func (s *Sender) Series() *Series { return s.series.Load() }

// expect makes the groups expect confirmed messages, if they carry a stamp.
func (s *Sender) expect(series *Series, first uint64, n int) {
	if s.stamp == StampOff {
		series.add(recording.Unaccounted, int64(n))
		return
	}
	s.track.ExpectN(first, n)
}

// wrap returns the error of an operation, with the driver's name; nil for nil.
func (s *Sender) wrap(op string, err error) error {
	return s.pub.driver.Wrap(op, s.pub.topic.explain(err))
}

// Receipt is the outcome of one message. Times are ns since the Unix epoch.
type Receipt struct {
	Sequence  uint64
	Due       int64
	Sent      int64
	Confirmed int64        // when the outcome arrived, also if it is an error
	Place     driver.Place // as far as Features.Receipts claims it
	Err       error
}

// Timing is when a send was due and since when it could be made, in ns since the Unix epoch.
type Timing struct {
	Due  int64 // 0 is now: a closed loop
	Free int64 // when the sender became free. Waiting until then is not the generator's lag.
}

// After returns the timing of a send that waited for ns, such as for its connection to open, before
// it could be made.
func (t Timing) After(ns int64) Timing {
	if ns > 0 {
		t.Free = max(t.Due, t.Free) + ns
	}
	return t
}

var errBatchTooLarge = errors.New("more messages in one send than the producer's window holds")

// Send sends some messages that were due at one time, and calls finished once, from any goroutine,
// when the fate of all is decided. It waits for room in the window and for a worker.
func (s *Sender) Send(ctx context.Context, batch driver.Batch, at Timing, finished func([]Receipt)) {
	f := newReceipted(s, batch, at)
	f.end = func(f *flight) { finished(f.receipts) }
	f.depart(ctx, ctx)
}

// admit waits for room for messages in the window, least to most, and for a worker. It returns the
// number of places it got, and whether it had to wait.
func (s *Sender) admit(ctx context.Context, least, most int64) (n int64, waited bool, err error) {
	n, waited, err = s.take(ctx, s.pub.window, least, most)
	if err != nil || s.pub.workers == nil {
		return n, waited, err
	}
	_, busy, err := s.take(ctx, s.pub.workers, 1, 1)
	if err != nil {
		s.pub.window.release(n)
	}
	return n, waited || busy, err
}

// take takes places of a window, and counts if it had to wait for them.
func (s *Sender) take(ctx context.Context, w *window, least, most int64) (n int64, waited bool, err error) {
	if n = w.tryAcquire(least, most); n > 0 {
		return n, false, nil
	}
	s.series.Load().add(recording.Blocked, 1)
	n, err = w.acquire(ctx, least, most)
	return n, true, err
}

// refuse fails a flight that was never handed over.
func (s *Sender) refuse(f *flight, err error) {
	series, at, kind := s.series.Load(), Timing{Due: f.due[0]}, s.pub.driver.KindOf(err)
	switch {
	case f.op == "send":
		series.Unsent("send", len(f.batch), at, kind)
	case f.loop == recording.Open: // [Sender.Request] counts the failure
		series.add(recording.Due, int64(len(f.batch)))
	}
	now := driver.Now()
	for i := range f.receipts {
		f.receipts[i] = Receipt{Due: cmp.Or(at.Due, now), Confirmed: now, Err: s.wrap(f.op, err)}
	}
	f.end(f)
}

// prove returns the meaning of a confirmation, when the producer opens and at the end. It asks each
// producer that is a prover itself, else once for all of the same options.
func (p *Publisher) prove(ctx context.Context, when string) summary.Proof {
	key := fmt.Sprint(when, p.config.Options)
	prover, ok := p.producer.(driver.Prover)
	if ok {
		key = fmt.Sprintf("%s%p", when, p)
	} else {
		prover, ok = p.conn.(driver.Prover)
	}
	t := p.topic
	t.mu.Lock()
	proof, found := t.proofs[key]
	created := t.created
	t.mu.Unlock()
	if found {
		return proof
	}
	proof.Confirm = p.driver.Features.Confirm.String()
	if ok {
		ctx, cancel := context.WithTimeout(ctx, backlogTimeout)
		defer cancel()
		answer := prover.Proof(ctx, p.config, created)
		proof = summary.Proof{Confirm: answer.Confirm.String(), How: answer.How}
		if answer.Routed {
			t.selected.Store(true)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.proofs[key] = proof
	return proof
}

// proveAgain asks once more at the end, because settings may have changed, unless the topic is
// gone.
func (p *Publisher) proveAgain(ctx context.Context) error {
	p.topic.mu.Lock()
	removed := len(p.topic.removed) > 0
	p.topic.mu.Unlock()
	if !removed {
		p.prove(ctx, "at the end: ")
	}
	return nil
}

// Proof returns the meaning of a confirmation.
func (s *Sender) Proof() summary.Proof { return s.pub.proof }
