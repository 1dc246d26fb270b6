package kafka

import (
	"context"
	"errors"
	"math"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver/inbox"
)

// groupConsumer is a member of a consumer group that commits the settled messages.
type groupConsumer struct {
	member
	confirm bool
	room    *inbox.Room

	// Guarded by mu.
	commits *commits
	used    int   // room of the unsettled messages in commits
	failed  error // of a commit without a waiting Settle
	report  func(o driver.Outcome, n int, err error)
	closed  bool

	records []*kgo.Record
}

func (c *conn) newGroupConsumer(ctx context.Context, cfg driver.ConsumerConfig) (driver.Consumer, error) {
	if cfg.Group == "" {
		return c.newDirectConsumer(ctx, cfg)
	}
	g := &groupConsumer{
		member: newMember(c, cfg.Topic, cfg.Group), confirm: cfg.ConfirmSettle,
		room: inbox.NewRoom(cfg.Prefetch), commits: newCommits(),
	}
	options, err := g.prepare(ctx, cfg)
	if err != nil {
		return nil, err
	}
	options = append(
		options, kgo.AutoCommitMarks(), kgo.AutoCommitInterval(cfg.Options.Duration("commitInterval")),
		kgo.AutoCommitCallback(g.committed), kgo.OnPartitionsAssigned(g.assigned), kgo.OnPartitionsRevoked(g.revoked),
		kgo.OnPartitionsLost(g.lost),
	)
	if g.client, err = c.newClient(options...); err != nil {
		return nil, err
	}
	if err := g.await(ctx); err != nil {
		g.drop()
		return nil, err
	}
	c.consumers.add(g, cfg.Topic, cfg.Group)
	return g, nil
}

func (g *groupConsumer) assigned(_ context.Context, _ *kgo.Client, added map[string][]int32) {
	g.mu.Lock()
	g.commits.own(added[g.topic])
	g.mu.Unlock()
	g.answer(nil)
}

// revoked commits the settled messages of revoked partitions and forgets these. Nothing can be
// settled there meanwhile, so the commit cannot overwrite the next owner's.
func (g *groupConsumer) revoked(ctx context.Context, client *kgo.Client, revoked map[string][]int32) {
	marked := g.forget(revoked)
	err := client.CommitMarkedOffsets(ctx)
	if noTopic(err) {
		return
	}
	g.answered(marked, err)
}

// lost forgets partitions that another member owns already. Their uncommitted settlements are void.
func (g *groupConsumer) lost(_ context.Context, _ *kgo.Client, lost map[string][]int32) {
	if marked := g.forget(lost); marked > 0 {
		g.answered(marked, errRevoked)
	}
}

// forget returns how many messages of partitions were marked for a commit and are not confirmed.
func (g *groupConsumer) forget(partitions map[string][]int32) (marked int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, partition := range partitions[g.topic] {
		marked += g.commits.commit(partition, math.MaxInt64)
		delete(g.anchors, partition)
	}
	g.commits.disown(partitions[g.topic])
	g.level()
	return marked
}

// OnSettled implements [driver.SettleReporter].
func (g *groupConsumer) OnSettled(report func(o driver.Outcome, n int, err error)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.report = report
}

// answered reports the answer for n messages without a waiting Settle. Without a report the next
// Settle returns the error.
func (g *groupConsumer) answered(n int, err error) {
	g.mu.Lock()
	report := g.report
	if report == nil && err != nil {
		g.failed = err
	}
	g.mu.Unlock()
	if report != nil && (n > 0 || err != nil) {
		report(driver.Ack, n, err)
	}
}

// committed is the library's hook after a periodic commit. The next commit includes what failed.
// The end of the group (revoked commits once more) and of the topic are no errors.
func (g *groupConsumer) committed(
	_ *kgo.Client, asked *kmsg.OffsetCommitRequest, answer *kmsg.OffsetCommitResponse, err error,
) {
	err = errors.Join(err, commitError(answer))
	switch {
	case err == nil && asked != nil:
		g.confirmed(offsetsOf(asked))
	case errors.Is(err, context.Canceled), noTopic(err):
	default:
		g.answered(0, err)
	}
}

// confirmed reports the messages that a commit of these offsets has confirmed.
func (g *groupConsumer) confirmed(offsets map[int32]int64) {
	n := 0
	g.mu.Lock()
	for partition, offset := range offsets {
		n += g.commits.commit(partition, offset)
	}
	g.mu.Unlock()
	g.answered(n, nil)
}

// flush commits the settled messages at once.
func (g *groupConsumer) flush(ctx context.Context) error {
	g.mu.Lock()
	marked := g.commits.marked()
	g.mu.Unlock()
	err := g.CommitMarkedOffsets(ctx)
	if err == nil {
		g.confirmed(marked)
	}
	return err
}

func offsetsOf(request *kmsg.OffsetCommitRequest) map[int32]int64 {
	all := map[int32]int64{}
	for _, t := range request.Topics {
		for _, p := range t.Partitions {
			all[p.Partition] = p.Offset
		}
	}
	return all
}

// commitError joins the errors of the parts of a commit.
func commitError(answer *kmsg.OffsetCommitResponse) (err error) {
	if answer == nil {
		return nil
	}
	for _, t := range answer.Topics {
		for _, p := range t.Partitions {
			err = errors.Join(err, kerr.ErrorForCode(p.ErrorCode))
		}
	}
	return err
}

// level takes room for the unsettled messages of commits. The lock is held.
func (g *groupConsumer) level() {
	g.room.Give(g.used - g.commits.unsettled)
	g.used = g.commits.unsettled
}

// Receive polls the client library's queue for as many messages as there is room for.
func (g *groupConsumer) Receive(ctx context.Context, b driver.Batch) (int, error) {
	for {
		room, err := g.room.Reserve(ctx, 1, len(b))
		if err != nil {
			return 0, err
		}
		g.records, err = g.poll(ctx, room, g.records[:0])
		n := g.deliver(b)
		g.room.Give(room) // level has taken the room of the messages
		if n > 0 || err != nil {
			return n, err
		}
	}
}

func (g *groupConsumer) deliver(b driver.Batch) (n int) {
	headers := make([]driver.Header, 0, g.headers)
	g.mu.Lock()
	for _, r := range g.records {
		if g.commits.deliver(r) {
			headers = message(&b[n], r, headers)
			n++
		}
	}
	g.level()
	g.mu.Unlock()
	clear(g.records)
	return n
}

// Settle marks messages for the next commit. With confirmation it commits and returns the broker's
// answer. The commit that closes a gap confirms the messages settled behind it.
func (g *groupConsumer) Settle(ctx context.Context, b driver.Batch, o driver.Outcome) error {
	if o != driver.Ack {
		return errors.ErrUnsupported
	}
	err := g.settle(b)
	if err == nil && g.confirm {
		err = g.flush(ctx)
	}
	return err
}

func (g *groupConsumer) settle(b driver.Batch) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return driver.ErrClosed
	}
	var err error
	if !g.confirm { // else the commit decides
		err = g.failed
	}
	g.failed = nil
	var last *kgo.Record // the newest of this run of one partition that may be committed
	for i := range b {
		r, ok := b[i].Token.(*kgo.Record)
		if !ok {
			continue
		}
		commit, owned := g.commits.settle(r)
		if !owned && !errors.Is(err, errRevoked) {
			err = errors.Join(err, errRevoked)
		}
		if last != nil && commit != nil && commit.Partition != last.Partition {
			g.mark(last)
		}
		if commit != nil {
			last = commit
		}
	}
	if last != nil {
		g.mark(last)
	}
	g.level()
	return err
}

// mark includes a message, and all before it, in the next commit. The lock is held.
func (g *groupConsumer) mark(r *kgo.Record) {
	g.MarkCommitRecords(r)
	if g.report != nil {
		g.commits.mark(r)
	}
}

// Close commits the settled messages and leaves the group. It returns the error of the last commit.
func (g *groupConsumer) Close(ctx context.Context) error {
	g.mu.Lock()
	already := g.closed
	g.closed = true
	g.mu.Unlock()
	if already {
		return nil
	}
	g.room.Close()
	g.end(ctx)
	g.conn.consumers.remove(g)
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.failed
}
