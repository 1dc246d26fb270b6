package engine

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
)

// GroupLabel returns the label of a consumer's measurements: its group's name, or
// [account.Subscribers].
func GroupLabel(f driver.Features, group string) string {
	if subscribes(f, group) {
		return account.Subscribers
	}
	return group
}

// subscribes reports whether a consumer gets every message by itself, in no group.
func subscribes(f driver.Features, group string) bool { return f.Fanout && group == "" }

// group is the accounting of one consumer group, or of one subscriber.
type group struct {
	topic      *Topic
	name       string // at the broker; "" for a subscriber
	account    string // the name of its accounting, unique within the topic
	subscriber bool
	kept       bool // the broker keeps messages for it while no member is there
	shared     bool // it may have members in other processes
	earliest   bool // it expects all messages of the topic
	track      *account.Group

	opening    sync.Once
	leftovers  int64                   // messages at the broker before the first member came, without the test's own
	strangers  atomic.Int64            // messages received that are in no account
	unanswered atomic.Int64            // settled without the broker's answer
	doubtful   atomic.Bool             // the backlog need not have exactly the messages that were received and not settled
	unread     atomic.Bool             // the drain could not settle: the backlog is not exact
	settles    atomic.Bool             // the test has settled something
	receives   atomic.Bool             // the test has received something
	backlog    atomic.Pointer[backlog] // the last answer
	final      atomic.Pointer[backlog] // the answer at the end

	mu       sync.Mutex
	members  int
	most     int         // members at a time
	conn     driver.Conn // of the last member that came, with its configuration
	config   driver.ConsumerConfig
	cut      bool                // a member left before everything on its way to it had arrived
	left     bool                // the test has closed the last consumer: the rest is not drained
	vacant   bool                // of a subscriber: it has left, and its messages are accounted for
	there    []account.Presence  // when it had members
	leavings []account.Presence  // when members left, if the broker keeps nothing
	requeued map[messageID]int64 // when messages were requeued
}

type messageID struct{ producer, sequence uint64 }

// maxRequeued bounds the number of requeued messages that are remembered until they come again.
const maxRequeued = 1 << 20

// group finds or makes the group that a consumer joins. A subscriber takes the place of one that
// has left, so that there are as many accounts as there were subscribers at a time.
func (t *Topic) group(c driver.ConsumerConfig) *group {
	t.mu.Lock()
	defer t.mu.Unlock()
	subscriber := subscribes(t.Address.Driver.Features, c.Group)
	places := 0
	for _, g := range t.order {
		switch {
		case !subscriber && g.name == c.Group && !g.subscriber:
			g.enter()
			return g
		case subscriber && g.subscriber:
			if c.Start != driver.StartEarliest && g.takeOver() {
				return g
			}
			places++
		}
	}
	g := t.newGroup(c, subscriber)
	if subscriber {
		g.account = fmt.Sprintf("subscriber %d", places+1)
	}
	g.track = t.track.Group(g.account, g.earliest)
	t.order = append(t.order, g)
	return g
}

func (t *Topic) newGroup(c driver.ConsumerConfig, subscriber bool) *group {
	return &group{
		topic: t, name: c.Group, account: c.Group, subscriber: subscriber, members: 1, most: 1,
		kept:   t.Address.Driver.Features.Deliver == driver.AtLeastOnce && !subscriber,
		shared: t.run.shared && !subscriber, earliest: c.Start == driver.StartEarliest,
		requeued: map[messageID]int64{},
	}
}

func (g *group) enter() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.members++
	g.most = max(g.most, g.members)
}

// takeOver takes a subscriber's place if it is vacant.
func (g *group) takeOver() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.vacant {
		return false
	}
	g.members, g.vacant = 1, false
	clear(g.requeued)
	return true
}

// joined records that a member would receive the next message.
func (g *group) joined(ctx context.Context, conn driver.Conn, c driver.ConsumerConfig) {
	now := driver.Now()
	g.opening.Do(func() {
		if g.kept {
			g.leftovers = g.findLeftovers(ctx, conn)
		}
	})
	g.track.Ready()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.conn, g.config, g.left = conn, c, false
	if last := len(g.there) - 1; last < 0 || g.there[last].Until != math.MaxInt64 {
		g.there = append(g.there, account.Presence{From: now, Until: math.MaxInt64})
	}
}

// findLeftovers returns the number of messages at the broker for the group that are not of this
// test.
func (g *group) findLeftovers(ctx context.Context, conn driver.Conn) int64 {
	ctx, cancel := context.WithTimeout(ctx, backlogTimeout)
	defer cancel()
	b, err := g.topic.ask(ctx, g.name, []driver.Conn{conn})
	if err != nil {
		return 0
	}
	return max(0, b.Messages-int64(g.track.Outstanding())) //gosec:disable G115 -- a count
}

// leave takes a member off, and reports whether it was the last.
func (g *group) leave(forGood bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.members--
	if g.members > 0 {
		return false
	}
	g.left = forGood
	if last := len(g.there) - 1; last >= 0 {
		g.there[last].Until = driver.Now()
	}
	return true
}

// gone records that a member has left since an instant. Leavings that follow closely are one.
func (g *group) gone(since int64, last bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.vacant = last && g.subscriber // from now on: the next one must get no copy of its messages
	if g.kept {
		return
	}
	now, n := driver.Now(), len(g.leavings)
	if n > 0 && since-g.leavings[n-1].Until < int64(time.Second) {
		g.leavings[n-1].Until = now
		return
	}
	g.leavings = append(g.leavings, account.Presence{From: since, Until: now})
}

// attended reports whether members are there, or may come back to messages that the broker keeps.
func (g *group) attended() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.members > 0 || g.left && g.kept
}

// strange counts a delivered message that is in no account. The group may hold it at the broker.
func (g *group) strange() {
	g.strangers.Add(1)
	g.doubtful.Store(true)
}

// requeue remembers when messages were requeued.
func (g *group) requeue(in *Buffer, from, to int, at int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := from; i < to; i++ {
		if in.Stamped[i] && len(g.requeued) < maxRequeued {
			g.requeued[in.id(i)] = at
		}
	}
}

// takeRequeued returns when a message was requeued, and forgets it.
func (g *group) takeRequeued(id messageID) (int64, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	at, ok := g.requeued[id]
	delete(g.requeued, id)
	return at, ok
}

// connections lists the connections of the present members, or that of the last member.
func (g *group) connections() (all []driver.Conn) {
	for _, c := range g.topic.run.open(g.topic) {
		if c.group == g && !slices.Contains(all, c.conn) {
			all = append(all, c.conn)
		}
	}
	if len(all) > 0 {
		return all
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return []driver.Conn{g.conn}
}

// key names the group in measurements.
func (g *group) key() GroupKey {
	label := g.account
	if g.subscriber {
		label = account.Subscribers
	}
	return GroupKey{g.topic.broker, g.topic.Address.Driver.Name, g.topic.Name, label}
}

// forget records that the topic was deleted. If no member is there, the group's place at the broker
// is gone too: it expects nothing until a member comes.
func (g *group) forget() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.members == 0 && !g.earliest && !g.shared {
		g.track.Close()
	}
}

// ledger returns the group's part in the ledger.
func (g *group) ledger(s account.GroupSnapshot) account.GroupLedger {
	l := account.GroupLedger{
		GroupSnapshot: s, Subscriber: g.subscriber, Kept: g.kept, Earliest: g.earliest, Leftovers: g.leftovers,
		Held: g.strangers.Load() + max(0, g.unanswered.Load()), Doubtful: g.doubtful.Load() || g.unanswered.Load() > 0,
	}
	if b := g.final.Load(); b != nil && !b.Estimate && !g.unread.Load() {
		l.Asked = b.at
		l.Backlog = account.Backlog{Messages: b.Messages, Undelivered: b.Undelivered, Dropped: b.Dropped}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	l.There, l.Left, l.Cut = slices.Clone(g.there), slices.Clone(g.leavings), g.cut
	return l
}
