package kafka

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver/redial"
)

const (
	trackEvery  = 100 * time.Millisecond // between looks for messages that are due
	commitEvery = time.Second            // between commits of the markers
	// markerPause is how long no marker must arrive until this machine's clock is used. Before, the
	// time is the last marker's, so that end markers are read before their messages are due.
	markerPause = time.Second
)

// tracker reads the markers of its partitions and sends the messages again that are due.
type tracker struct {
	member
	queue   queue
	fail    func(error)
	stop    context.CancelFunc // ends the loop
	cut     context.CancelFunc // ends its requests too
	running sync.WaitGroup

	// Used by the loop only.
	partitions map[int32]*tracked
	committed  time.Time

	lostMu sync.Mutex
	lost   []int32 // by the client library
}

// tracked is a partition of the markers' topic.
type tracked struct {
	*inProgress
	lastRead time.Time // when the last marker was read
	end      int64     // of the partition when it was assigned; until it is read, end markers may be missing
	done     int64     // committed
}

// trackers is the group of a queue's trackers.
func (q *queue) trackers() string { return q.group + "__redelivery" }

func (c *kmqConn) newTracker(ctx context.Context, q queue, v driver.Values, fail func(error)) (_ *tracker, err error) {
	t := &tracker{
		member: newMember(c.conn, q.markers, q.trackers()), queue: q, fail: fail,
		partitions: map[int32]*tracked{},
	}
	if t.client, err = c.newClient(append(
		append(t.options(v), c.sendingAgain()...), kgo.DisableAutoCommit(), kgo.BrokerMaxReadBytes(1<<30),
		kgo.OnPartitionsAssigned(func(context.Context, *kgo.Client, map[string][]int32) { t.answer(nil) }),
		kgo.OnPartitionsRevoked(t.revoked), kgo.OnPartitionsLost(t.revoked),
	)...); err != nil {
		return nil, err
	}
	if err := t.await(ctx); err != nil {
		t.drop()
		return nil, err
	}
	life, cut := context.WithCancel(context.Background())
	running, stop := context.WithCancel(life)
	t.stop, t.cut = stop, cut
	t.running.Go(func() { t.run(running, life) })
	return t, nil
}

// close waits for the end markers of the copies on their way, or until ctx ends.
func (t *tracker) close(ctx context.Context) {
	t.stop()
	defer t.cut()
	defer context.AfterFunc(ctx, t.cut)()
	t.running.Wait()
	t.end(ctx)
}

func (t *tracker) revoked(_ context.Context, _ *kgo.Client, revoked map[string][]int32) {
	t.lostMu.Lock()
	t.lost = append(t.lost, revoked[t.topic]...)
	t.lostMu.Unlock()
}

func (t *tracker) run(ctx, life context.Context) {
	var records []*kgo.Record
	for ctx.Err() == nil {
		brief, cancel := context.WithTimeout(ctx, trackEvery)
		var err error
		records, err = t.poll(brief, 10_000, records[:0])
		cancel()
		t.forget()
		if err == nil || errors.Is(err, context.DeadlineExceeded) {
			err = t.read(ctx, records)
		}
		if err == nil {
			err = t.redeliver(life)
		}
		if err == nil {
			err = t.commit(ctx)
		}
		clear(records)
		if err != nil && ctx.Err() == nil {
			t.fail(err)
			redial.Sleep(ctx, 3)
		}
	}
	t.committed = time.Time{}
	_ = t.commit(life) // without it the next tracker reads more
}

// forget drops the revoked partitions.
func (t *tracker) forget() {
	t.lostMu.Lock()
	defer t.lostMu.Unlock()
	for _, partition := range t.lost {
		delete(t.partitions, partition)
	}
	t.lost = t.lost[:0]
}

func (t *tracker) read(ctx context.Context, records []*kgo.Record) error {
	now := time.Now()
	for _, r := range records {
		p := t.partitions[r.Partition]
		if p == nil {
			ends, err := t.conn.offsets(ctx, t.topic, driver.StartNew)
			if err != nil {
				return err
			}
			end, _ := ends.Lookup(t.topic, r.Partition)
			p = &tracked{inProgress: newInProgress(), end: end.At}
			t.partitions[r.Partition] = p
		}
		p.read(r)
		p.lastRead = now
	}
	return nil
}

// clock returns the time by which messages are due, in ms since the Unix epoch; 0 while end markers
// may be missing.
func (p *tracked) clock(now time.Time) int64 {
	switch {
	case p.next < p.end:
		return 0
	case now.Sub(p.lastRead) < markerPause:
		return p.last
	}
	return now.UnixMilli()
}

// redeliver sends again the messages that are due, and waits for the broker's answers.
func (t *tracker) redeliver(ctx context.Context) error {
	now := time.Now()
	due := map[int32][]*begun{}
	for partition, p := range t.partitions {
		if all := p.due(p.clock(now)); len(all) > 0 {
			due[partition] = all
		}
	}
	if len(due) == 0 {
		return nil
	}
	err := t.sendAgain(ctx, due)
	if err != nil { // some may have been sent: they are received twice
		for partition, all := range due {
			for _, b := range all {
				t.partitions[partition].putBack(b, now.Add(markerPause).UnixMilli())
			}
		}
	}
	return err
}

func (t *tracker) sendAgain(ctx context.Context, due map[int32][]*begun) error {
	found, err := t.originals(ctx, due)
	if err != nil {
		return err
	}
	var messages, copies []*kgo.Record
	for partition, all := range due {
		for _, b := range all {
			r := found[partition][b.offset]
			if r == nil { // the broker has dropped it
				messages = append(messages, &kgo.Record{Partition: partition, Offset: b.offset})
				copies = append(copies, nil)
				continue
			}
			messages = append(messages, r)
			copies = append(copies, t.queue.again(r, attempt(r)))
		}
	}
	a := newAnswers(len(messages))
	t.queue.move(t.client, messages, copies, a.done)
	return a.wait(ctx)
}

// originals reads the messages that are due from the topic itself.
func (t *tracker) originals(ctx context.Context, due map[int32][]*begun) (map[int32]map[int64]*kgo.Record, error) {
	starts, err := t.conn.offsets(ctx, t.queue.topic, driver.StartEarliest)
	if err != nil {
		return nil, err
	}
	ends, err := t.conn.offsets(ctx, t.queue.topic, driver.StartNew)
	if err != nil {
		return nil, err
	}
	spans, found := map[int32]span{}, map[int32]map[int64]*kgo.Record{}
	for partition, all := range due {
		wanted := map[int64]*kgo.Record{}
		for _, b := range all {
			wanted[b.offset] = nil
		}
		found[partition] = wanted
		first := slices.MinFunc(all, byOffset)
		last := slices.MaxFunc(all, byOffset)
		start, _ := starts.Lookup(t.queue.topic, partition)
		end, _ := ends.Lookup(t.queue.topic, partition)
		spans[partition] = span{max(first.offset, start.At), min(last.offset+1, end.At)}
	}
	err = t.conn.readSpans(ctx, t.queue.topic, spans, func(r *kgo.Record) {
		if _, wanted := found[r.Partition][r.Offset]; wanted {
			found[r.Partition][r.Offset] = r
		}
	})
	return found, err
}

func byOffset(a, b *begun) int { return int(a.offset - b.offset) }

// commit commits the offsets from which the next tracker must read.
func (t *tracker) commit(ctx context.Context) error {
	if time.Since(t.committed) < commitEvery {
		return nil
	}
	t.committed = time.Now()
	var done []*kgo.Record
	for partition, p := range t.partitions {
		if begin := p.begin(); begin > p.done {
			p.done = begin
			done = append(done, &kgo.Record{
				Topic: t.topic, Partition: partition, Offset: begin - 1, LeaderEpoch: -1,
			})
		}
	}
	if len(done) == 0 {
		return nil
	}
	if err := t.CommitRecords(ctx, done...); err != nil && !lostMembership(err) {
		return err
	}
	return nil
}
