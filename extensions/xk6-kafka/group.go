package kafka

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver/inbox"
)

// member is what any consumer in a group of Kafka's has.
type member struct {
	reader
	group  string
	joined chan error // has room for the first news of the group

	mu      sync.Mutex
	anchors map[int32]int64 // where this member has begun in partitions without a commit; nil where the group need not be anchored
}

func newMember(c *conn, topic, group string) member {
	return member{reader: reader{conn: c, topic: topic}, group: group, joined: make(chan error, 1)}
}

// await returns when the group has let this member in.
func (g *member) await(ctx context.Context) error {
	select {
	case err := <-g.joined:
		return err
	case <-ctx.Done():
		return fmt.Errorf("joining group %s: %w", g.group, ctx.Err())
	}
}

// groupConsumer is a member of a consumer group that commits what it has settled.
type groupConsumer struct {
	member
	instance string // of static membership
	leave    bool
	confirm  bool
	room     *inbox.Room

	commits *commits // this and what follows under mu
	used    int      // of room, by what commits have unsettled
	failed  error    // of a commit that nobody waited for
	report  func(o driver.Outcome, n int, err error)
	closed  bool

	records []*kgo.Record
}

func (c *conn) newGroupConsumer(ctx context.Context, cfg driver.ConsumerConfig) (driver.Consumer, error) {
	if cfg.Group == "" {
		return c.newDirectConsumer(ctx, cfg)
	}
	if err := checkProtocol(cfg.Options); err != nil {
		return nil, err
	}
	partitions, err := c.partitions(ctx, cfg.Topic)
	if err != nil {
		return nil, err
	}
	var ends kadm.Offsets
	if cfg.Start == driver.StartNew {
		if ends, err = c.offsets(ctx, cfg.Topic, driver.StartNew); err == nil {
			err = c.anchor(ctx, cfg.Group, ends)
		}
		if err != nil {
			return nil, err
		}
	}
	v := cfg.Options
	g := &groupConsumer{
		member: newMember(c, cfg.Topic, cfg.Group), leave: v.Bool("leaveOnClose"), confirm: cfg.ConfirmSettle,
		room: inbox.NewRoom(cfg.Prefetch), commits: newCommits(cfg.Topic),
	}
	if ends != nil {
		g.anchors = map[int32]int64{}
	}
	options := append(fetchOptionsOf(v),
		kgo.WithHooks(newStamp(partitions), g),
		kgo.ConsumeTopics(cfg.Topic),
		// Where nothing is committed: either the user wants the beginning, or the partition is younger than the anchors.
		kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()),
		kgo.ConsumerGroup(cfg.Group),
		kgo.AdjustFetchOffsetsFn(g.begin),
		kgo.AutoCommitMarks(),
		kgo.AutoCommitInterval(v.Duration("commitInterval")),
		kgo.AutoCommitCallback(g.committed),
		kgo.OnPartitionsAssigned(g.assigned),
		kgo.OnPartitionsRevoked(g.revoked),
		kgo.OnPartitionsLost(g.lost),
	)
	options = append(options, membershipOf(v)...)
	if id := v.String("instanceId"); id != "" {
		g.instance = instances.take(cfg.Group, id)
		options = append(options, kgo.InstanceID(g.instance))
	}
	if g.client, err = c.newClient(options...); err != nil {
		instances.giveBack(cfg.Group, g.instance)
		return nil, err
	}
	err = g.await(ctx)
	if err == nil && ends != nil {
		err = g.anchored(ctx, ends)
	}
	if err != nil {
		g.drop()
		instances.giveBack(cfg.Group, g.instance)
		return nil, err
	}
	c.mu.Lock()
	c.members[g] = struct{}{}
	c.mu.Unlock()
	return g, nil
}

// membershipOf are the options of being a member.
func membershipOf(v driver.Values) []kgo.Opt {
	options := []kgo.Opt{kgo.SessionTimeout(v.Duration("sessionTimeout")), kgo.HeartbeatInterval(v.Duration("heartbeatInterval"))}
	if v.String("groupProtocol") == "consumer" {
		options = append(options, kgo.ServerSideBalancer(), kgo.Balancers(kgo.StickyBalancer()))
	}
	return options
}

func (g *member) news(err error) {
	select {
	case g.joined <- err:
	default:
	}
}

// OnGroupManageError is the library's hook for a member that cannot be one. It goes on trying; so do we where only the
// connection is at fault.
func (g *member) OnGroupManageError(err error) {
	if kind := classify(err); kind != driver.Disconnected && kind != driver.Timeout {
		g.news(err)
	}
}

func (g *groupConsumer) assigned(_ context.Context, _ *kgo.Client, added map[string][]int32) {
	g.mu.Lock()
	g.commits.own(added[g.topic])
	g.mu.Unlock()
	g.news(nil)
}

// revoked commits what is settled of the partitions that go, and forgets them. Nothing can be settled in them in
// between, or it would be committed over the new owner's head.
func (g *groupConsumer) revoked(ctx context.Context, client *kgo.Client, gone map[string][]int32) {
	marked := g.forget(gone)
	err := client.CommitMarkedOffsets(ctx)
	if noTopic(err) {
		return
	}
	g.answered(marked, err)
}

// lost forgets partitions that are another member's already. What was settled of them and not committed stays unsettled.
func (g *groupConsumer) lost(_ context.Context, _ *kgo.Client, gone map[string][]int32) {
	if marked := g.forget(gone); marked > 0 {
		g.answered(marked, errRevoked)
	}
}

// forget returns how many messages of partitions were marked for a commit and are not confirmed.
func (g *groupConsumer) forget(gone map[string][]int32) (marked int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, partition := range gone[g.topic] {
		marked += g.commits.commit(partition, math.MaxInt64)
	}
	g.reach()
	g.commits.disown(gone[g.topic])
	for _, partition := range gone[g.topic] {
		delete(g.anchors, partition)
	}
	g.level()
	return marked
}

// reach notes what this member has received. The lock is held.
func (g *groupConsumer) reach() {
	for partition, s := range g.commits.received() {
		reached.note(reachKey{g.conn.hosts, g.topic, g.group}, partition, s)
	}
}

// OnSettled implements [driver.SettleReporter].
func (g *groupConsumer) OnSettled(report func(o driver.Outcome, n int, err error)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.report = report
}

// answered reports the answer for n messages that no Settle waits for. Without a report the next Settle returns the error.
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

// committed hears how a commit fared that was made because its time had come. What it did not commit, the next commit does.
func (g *groupConsumer) committed(_ *kgo.Client, asked *kmsg.OffsetCommitRequest, answer *kmsg.OffsetCommitResponse, err error) {
	err = errors.Join(err, commitError(answer))
	switch {
	case err == nil && asked != nil:
		g.confirmed(offsetsOf(asked))
	case errors.Is(err, context.Canceled), noTopic(err): // the group's own end (revoked commits once more), or the topic's
	default:
		g.answered(0, err)
	}
}

// confirmed reports what a commit of these offsets has confirmed.
func (g *groupConsumer) confirmed(offsets map[int32]int64) {
	n := 0
	g.mu.Lock()
	for partition, offset := range offsets {
		n += g.commits.commit(partition, offset)
	}
	g.mu.Unlock()
	g.answered(n, nil)
}

// commit commits what is settled at once.
func (g *groupConsumer) commit(ctx context.Context) error {
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

// commitError is what the broker had against the parts of a commit.
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

// level gives the room what commits have unsettled. The lock is held.
func (g *groupConsumer) level() {
	g.room.Give(g.used - g.commits.unsettled)
	g.used = g.commits.unsettled
}

// Receive has no queue of its own: the client library's is polled for as much as there is room for.
func (g *groupConsumer) Receive(ctx context.Context, b driver.Batch) (int, error) {
	for {
		room, err := g.room.Reserve(ctx, 1, len(b))
		if err != nil {
			return 0, err
		}
		g.records, err = g.poll(ctx, room, g.records[:0])
		n := g.deliver(b)
		g.room.Give(room) // level has taken what the messages need
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

// Settle marks messages as done with, for the next commit. Where confirmation was asked for it commits, and returns
// when the broker has answered; what is settled out of order is then confirmed by the commit that closes the gap.
func (g *groupConsumer) Settle(ctx context.Context, b driver.Batch, o driver.Outcome) error {
	if o != driver.Ack {
		return errors.ErrUnsupported
	}
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return driver.ErrClosed
	}
	var err error
	if !g.confirm { // else the commit below has the last word
		err = g.failed
	}
	g.failed = nil
	var last *kgo.Record // the newest record of the current run that may be committed
	for i := range b {
		r, ok := b[i].Token.(*kgo.Record)
		if !ok {
			continue
		}
		commit, known := g.commits.settle(r)
		if !known && !errors.Is(err, errRevoked) {
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
	g.mu.Unlock()
	if err == nil && g.confirm {
		err = g.commit(ctx)
	}
	return err
}

// mark has the next commit speak for a message and all before it. The lock is held.
func (g *groupConsumer) mark(r *kgo.Record) {
	g.MarkCommitRecords(r)
	if g.report != nil {
		g.commits.mark(r)
	}
}

// Close commits what is settled and leaves the group. It fails where the last commit did.
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
	g.conn.mu.Lock()
	delete(g.conn.members, g)
	g.conn.mu.Unlock()
	g.mu.Lock()
	failed := g.failed
	g.mu.Unlock()
	if g.instance == "" {
		return failed
	}
	defer instances.giveBack(g.group, g.instance)
	if !g.leave {
		return failed
	}
	left, err := g.conn.admin.LeaveGroup(ctx, kadm.LeaveGroup(g.group).InstanceIDs(g.instance).Reason("closed"))
	if err != nil {
		return err
	}
	for _, member := range left {
		if member.Err != nil && !errors.Is(member.Err, kerr.UnknownMemberID) {
			return fmt.Errorf("leaving group %s as %s: %w", g.group, g.instance, member.Err)
		}
	}
	return failed
}
