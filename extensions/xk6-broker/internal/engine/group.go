//gosec:disable G115 -- counts, far below their limits
package engine

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
)

// GroupOf is the name by which the measurements of a consumer go: its group's or, for a subscriber, [Subscribers].
func GroupOf(f driver.Features, group string) string {
	if subscribes(f, group) {
		return account.Subscribers
	}
	return group
}

// subscribes tells whether a consumer gets every message by itself: the broker keeps nothing for it when it is not there.
func subscribes(f driver.Features, group string) bool { return f.Fanout && group == "" }

// keeps tells whether the broker keeps a group's messages while nobody of it is there.
func keeps(f driver.Features, group string) bool {
	return f.Deliver == driver.AtLeastOnce && !subscribes(f, group)
}

// group is the accounting of what one consumer group, or one subscriber of a fan-out, should receive.
type group struct {
	topic      *Topic
	name       string // as the broker knows it; "" for a subscriber
	account    string // the name of its accounting, unique within the topic
	subscriber bool
	kept       bool // the broker keeps messages for it while nobody is there
	shared     bool // it may have members in other processes
	earliest   bool // expects everything, whatever was sent before
	track      *account.Group

	opening sync.Once

	mu       sync.Mutex
	members  int
	most     int                   // members at a time
	conn     driver.Conn           // of the member that came last, with what it said of itself: to read on when all have gone
	conns    map[driver.Conn]int   // of the members that are there, how many of them there are on each
	config   driver.ConsumerConfig //
	settles  bool                  // the test has settled something
	receives bool                  // the test has received something
	cut      bool                  // one has left before everything that was on its way to it had come
	left     bool                  // the test has closed a consumer, and none has come since: nobody is to read on
	vacant   bool                  // of a subscriber: it has left, and what came to it is accounted for
	there    []account.Presence    // when it had members
	partings []account.Presence    // when members left while others stayed, where the broker keeps nothing
	requeued map[messageID]int64   // when the messages that were given back were given back

	queued    atomic.Int64            // one more than what the broker said last that it holds; 0 where it has not said
	backlog   atomic.Pointer[backlog] // at the end, once it was asked for
	leftovers int64                   // what the broker held for the group before anything of this test was in it
	strangers strangers
	// unanswered is how many settled messages the broker may have unsettled, because it has not confirmed it.
	unanswered atomic.Int64
}

// strangers counts the deliveries of messages that are none of the topic's own: which is a copy of which cannot be told.
type strangers struct {
	received atomic.Int64 // or drained
	again    atomic.Int64 // of these, those that the broker had delivered before
	settled  atomic.Int64
	doubted  atomic.Int64 // given back, or the broker may be done with them otherwise
}

// note counts one that was delivered.
func (s *strangers) note(m *driver.Message) {
	s.received.Add(1)
	if m.Attempt > 1 {
		s.again.Add(1)
	}
}

// distinct is how many different messages they are at least.
func (s *strangers) distinct() int64 {
	return max(0, s.received.Load()-max(s.again.Load(), s.doubted.Load()))
}

// held is how many of them the broker has at least and at most although they were received.
func (s *strangers) held() (least, most int64) {
	most = max(0, s.received.Load()-s.settled.Load())
	return max(0, most-s.again.Load()-s.doubted.Load()), most
}

// doubt notes that the broker may be done with all of them that it may have.
func (s *strangers) doubt() {
	_, most := s.held()
	s.doubted.Add(max(0, most-s.doubted.Load()))
}

type messageID struct{ producer, sequence uint64 }

// maxRequeued bounds what is remembered of messages given back and not seen again.
const maxRequeued = 1 << 20

// group finds or makes the group that a consumer joins. A subscriber takes the place of one that has left, so that there are as many
// accounts as there were subscribers at a time, however often they come and go: what it expects is none of what those before it expected.
// One that begins with the earliest expects that too, and has an account of its own.
func (t *Topic) group(c driver.ConsumerConfig) *group {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.Address.Driver.Features
	subscriber := subscribes(f, c.Group)
	if !subscriber {
		if g, ok := t.groups[c.Group]; ok {
			g.enter()
			return g
		}
	}
	places := 0
	for _, g := range t.order {
		if g.subscriber {
			if subscriber && c.Start != driver.StartEarliest && g.takeOver() {
				return g
			}
			places++
		}
	}
	since := account.New
	if c.Start == driver.StartEarliest {
		since = account.Earliest
	}
	g := &group{
		topic: t, name: c.Group, account: c.Group, subscriber: subscriber, kept: keeps(f, c.Group),
		shared: t.shared() && !subscriber, earliest: since == account.Earliest, members: 1, most: 1, requeued: map[messageID]int64{}, conns: map[driver.Conn]int{},
	}
	if subscriber {
		g.account = fmt.Sprintf("subscriber %d", places+1)
	} else {
		t.groups[c.Group] = g
	}
	g.track = t.track.Group(g.account, since)
	t.order = append(t.order, g)
	return g
}

func (g *group) enter() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.members++
	g.most = max(g.most, g.members)
}

// takeOver makes a subscriber's place the caller's if nobody has it.
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

// vacate gives a subscriber's place up.
func (g *group) vacate() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.vacant = g.subscriber
}

// joined notes that a member would see the next message.
func (g *group) joined(ctx context.Context, conn driver.Conn, c driver.ConsumerConfig) {
	now := driver.Now()
	g.opening.Do(func() {
		if g.kept {
			g.leftovers = g.foundThere(ctx, conn)
		}
	})
	g.track.Ready()
	if !g.topic.Address.Driver.Features.Attempts { // what another member held may come again, and nothing tells that it does
		g.strangers.doubt()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.conn, g.config, g.left = conn, c, false
	g.conns[conn]++
	if last := len(g.there) - 1; last < 0 || g.there[last].Until != math.MaxInt64 {
		g.there = append(g.there, account.Presence{From: now, Until: math.MaxInt64})
	}
}

// foundThere asks what the broker holds for the group that is not of this test.
func (g *group) foundThere(ctx context.Context, conn driver.Conn) int64 {
	b, ok := conn.(driver.Backlogger)
	if !ok {
		return 0
	}
	ctx, cancel := context.WithTimeout(ctx, backlogTimeout)
	defer cancel()
	said, err := b.Backlog(ctx, g.topic.Name, g.name)
	if err != nil {
		return 0
	}
	return max(0, said.Messages-int64(g.track.Outstanding()))
}

// forgets tells whether there is a group that the broker keeps nothing for while nobody of it is there.
func (t *Topic) forgets() bool {
	return slices.ContainsFunc(t.everyGroup(), func(g *group) bool { return !g.kept })
}

// dismiss notes that the test closes a consumer.
func (g *group) dismiss() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.left = g.members == 1
}

// leave takes a member off, and tells whether it was the last.
func (g *group) leave(conn driver.Conn) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.conns[conn]--; g.conns[conn] == 0 {
		delete(g.conns, conn)
	}
	g.members--
	if g.members > 0 {
		return false
	}
	if last := len(g.there) - 1; last >= 0 {
		g.there[last].Until = driver.Now()
	}
	return true
}

// parted notes that a member has left while others stayed, from when it left until it was gone. Partings that follow closely are one.
func (g *group) parted(from, until int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if last := len(g.partings) - 1; last >= 0 && from-g.partings[last].Until < int64(restTimeout) {
		g.partings[last].Until = max(g.partings[last].Until, until)
		return
	}
	g.partings = append(g.partings, account.Presence{From: from, Until: until})
}

// doubt notes that the broker may be done with some messages of a buffer although they are not settled.
func (g *group) doubt(reader *account.Reader, in *Buffer, from, to int) {
	for i := from; i < to; i++ {
		if !in.Stamped[i] || !reader.Doubted(in.Stamps[i].Producer, in.Stamps[i].Sequence) {
			g.strangers.doubted.Add(1)
		}
	}
}

func (g *group) noteRequeued(id messageID, at int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.requeued) < maxRequeued {
		g.requeued[id] = at
	}
}

func (g *group) takeRequeued(id messageID) (int64, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	at, ok := g.requeued[id]
	delete(g.requeued, id)
	return at, ok
}

// counts gives the counts of every group of the topic so far, without the fates of what is missing; subscribers have them together.
func (t *Topic) counts() map[string]account.Account {
	all := map[string]account.Account{}
	for _, g := range t.everyGroup() {
		sum := all[g.label()]
		sum.Tally.Add(g.track.Tally())
		sum.Unordered = t.unordered.Load()
		all[g.label()] = sum
	}
	return all
}

// members is how many consumers each account had at most at a time.
func (t *Topic) members() map[string]int {
	t.mu.Lock()
	groups := t.order[:len(t.order):len(t.order)]
	t.mu.Unlock()
	all := map[string]int{}
	for _, g := range groups {
		g.mu.Lock()
		if g.subscriber {
			all[account.Subscribers] += g.most
		} else {
			all[g.account] = g.most
		}
		g.mu.Unlock()
	}
	return all
}

// keepsUnsettled says whether what the group has received and not settled comes again. It need not if the broker's count of it is an estimate, as where
// a message is settled with those before it.
func (g *group) keepsUnsettled() bool {
	last := g.backlog.Load()
	return g.kept && (last == nil || !last.Estimate)
}

// label is what a result calls the group.
func (g *group) label() string {
	if g.subscriber {
		return account.Subscribers
	}
	return g.account
}

// strangers is how many messages each account's consumers received that are none of the topic's own.
func (t *Topic) strangers() map[string]int64 {
	all := map[string]int64{}
	for _, g := range t.everyGroup() {
		all[g.label()] += g.strangers.received.Load()
		if !t.shared() { // else those of other processes may be of this topic
			all[g.label()] += int64(g.track.Siblings())
		}
	}
	return all
}
