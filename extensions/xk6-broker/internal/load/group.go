//gosec:disable G115 -- counts, far below their limits
package load

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/track"
)

// GroupOf is the name by which the measurements of a consumer go: its group's or, for a subscriber, [Subscribers].
func GroupOf(f driver.Features, group string) string {
	if subscribes(f, group) {
		return result.Subscribers
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
	track      *track.Group

	opening sync.Once

	mu       sync.Mutex
	members  int
	most     int                   // members at a time
	conn     driver.Conn           // of the member that came last, with what it said of itself: to read on when all have gone
	conns    map[driver.Conn]int   // of the members that are there, how many of them there are on each
	config   driver.ConsumerConfig //
	settles  bool                  // the test has settled something
	receives bool                  // the test has received something
	stuck    bool                  // one has left that may not have been given what it should have received, for what it held
	left     bool                  // the test has closed a consumer, and none has come since: nobody is to read on
	vacant   bool                  // of a subscriber: it has left, and what came to it is accounted for
	there    []result.Presence     // for the ledger: when it had members
	requeued map[messageID]int64   // when the messages that were given back were given back

	queued    atomic.Int64            // one more than what the broker said last that it holds; 0 where it has not said
	backlog   atomic.Pointer[backlog] // at the end, once it was asked for
	leftovers int64                   // what the broker held for the group before anything of this test was in it
	looked    int64                   // when it had said so, ns since the Unix epoch
	strangers strangers
	// unanswered is how many settled messages the broker may have unsettled, because it has not confirmed it.
	unanswered atomic.Int64
	unheld     atomic.Bool // the broker may be done with any message that is not settled
	again      atomic.Bool // and delivers it again all the same
	passages   passages    // of messages of other topics
	removal    result.Removal
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
// One that begins with the earliest expects that too, and has an account of its own, unless the topic keeps less than that for those who come later.
func (t *Topic) group(c driver.ConsumerConfig, kept driver.Keeping) *group {
	t.mu.Lock()
	defer t.mu.Unlock()
	// What its own consumers settle does not matter to the first group; of those in other processes nothing is known.
	fewer := t.keeping != driver.KeepsAll || kept == driver.KeepsWanted || kept == driver.KeepsUnsettled && t.shared()
	t.keeping = max(t.keeping, kept)
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
	since := track.New
	if c.Start == driver.StartEarliest && !fewer {
		since = track.Earliest
	}
	g := &group{
		topic: t, name: c.Group, account: c.Group, subscriber: subscriber, kept: keeps(f, c.Group),
		shared: t.shared() && !subscriber, earliest: since == track.Earliest, members: 1, most: 1, requeued: map[messageID]int64{}, conns: map[driver.Conn]int{},
		passages: passages{of: map[*Topic]*passage{}},
	}
	if subscriber {
		g.account = fmt.Sprintf("subscriber %d", places+1)
	} else {
		t.groups[c.Group] = g
	}
	g.track = t.track.Group(g.account, since)
	g.inherit(t.doubted)
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
	g.track.Succeed()
	g.passages.succeed()
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
			g.leftovers, g.looked = g.foundThere(ctx, conn), driver.Now()
		}
	})
	g.track.Ready()
	g.passages.ready()
	if !g.topic.Address.Driver.Features.Attempts { // what another member held may come again, and nothing tells that it does
		g.strangers.doubt()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.conn, g.config, g.left = conn, c, false
	g.conns[conn]++
	if last := len(g.there) - 1; g.topic.courses != nil && (last < 0 || g.there[last].Until != math.MaxInt64) {
		g.there = append(g.there, result.Presence{From: now, Until: math.MaxInt64})
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

// doubt notes that the broker may be done with some messages of a buffer although they are not settled.
func (g *group) doubt(reader *track.Reader, in *Buffer, from, to int) {
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

func (g *group) accounting() result.Account {
	a := result.Account{Group: g.account, Tally: g.track.Tally(), Ranges: g.track.MissingRanges(result.ShownRanges)}
	if a.Unordered = g.topic.unordered.Load(); a.Unordered {
		a.Reordered = 0
	}
	a.Lost, a.Undelivered, a.Uncertain = g.divide(a.Missing)
	g.mu.Lock()
	a.DivideRemoved(g.removal)
	g.mu.Unlock()
	// The broker is done with what lay in the client of one who has left; and what it routed elsewhere was not meant for the group.
	if g.kept && g.unheld.Load() || g.topic.routed.Load() {
		a.Lost, a.Uncertain = 0, a.Uncertain+a.Lost
	}
	if g.shared { // only all processes together know
		a.Lost, a.Elsewhere = 0, a.Lost
	} else if n := min(g.namesakes(), a.Lost); n > 0 {
		a.Lost, a.Elsewhere = a.Lost-n, n
	}
	return a
}

// namesakes is how many of the missing messages members of a group of the same name got at other topics. Some servers know groups by their names: for
// NATS those on a subject and on a wildcard over it are one, which shares out what is sent to the subject.
func (g *group) namesakes() uint64 {
	var others []*track.Group
	for _, p := range g.topic.everyPassage() {
		if !g.kept && g.name != "" && p.to.name == g.name && p.to.topic.Address.String() == g.topic.Address.String() {
			others = append(others, p.track)
		}
	}
	if len(others) == 0 {
		return 0
	}
	missing := g.track.Outstanding()
	return missing - min(missing, g.track.MissingFromAll(others...))
}

// divide divides what is missing by what the broker said that it holds. What the group has received and not settled is in that number
// too, and is not missing, unless the broker has settled or given it up by itself; what was there before the test, and what failed to be
// sent and may have arrived all the same, may be.
func (g *group) divide(missing uint64) (lost, undelivered, uncertain uint64) {
	last := g.backlog.Load()
	sure := missing - min(missing, uint64(g.topic.unanswered.Load()))
	switch {
	case !g.kept && !g.isStuck():
		return sure, 0, missing - sure
	case !g.kept:
		return 0, 0, missing
	case last == nil || !last.exact():
		return 0, 0, missing
	}
	return result.Divide(missing, sure, missing, g.waiting(last))
}

// waiting is what the broker has for the group, by what it said.
func (g *group) waiting(said *backlog) result.Waiting {
	strange := max(0, g.leftovers-g.strangers.distinct()-int64(g.track.Siblings())) + g.topic.failed.Load()
	held := g.held()
	held.Most = max(0, held.Most-said.Dropped) // all who received are in this process
	return result.Waiting{Backlog: said.told(), Held: held, Strange: strange}
}

func (g *group) isStuck() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.stuck
}

// held is what the group has received and not settled.
func (g *group) held() result.Held {
	own := g.track.Held()
	least, most := g.strangers.held()
	h := result.Held{Least: int64(own.Sure) + least, Most: int64(own.All) + most + max(0, g.unanswered.Load())}
	if g.unheld.Load() {
		h.Least = 0
	}
	return h
}

// accounts gives the accounting of every group of the topic; subscribers have one together.
func (t *Topic) accounts() []result.Account {
	t.mu.Lock()
	groups, readBack := t.order[:len(t.order):len(t.order)], t.readBack
	t.mu.Unlock()
	all := []result.Account{}
	if readBack.Expected > 0 {
		all = append(all, readBack)
	}
	subscribers := -1
	for _, g := range groups {
		a := g.accounting()
		switch {
		case !g.subscriber:
			all = append(all, a)
		case subscribers < 0:
			a.Group, a.Subscribers = result.Subscribers, 1
			subscribers = len(all)
			all = append(all, a)
		default:
			all[subscribers].Join(a)
		}
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
			all[result.Subscribers] += g.most
		} else {
			all[g.account] = g.most
		}
		g.mu.Unlock()
	}
	return all
}

// label is what a result calls the group.
func (g *group) label() string {
	if g.subscriber {
		return result.Subscribers
	}
	return g.account
}

// strangers is how many messages each account's consumers received that are none of the topic's own.
func (t *Topic) strangers() map[string]int64 {
	all := map[string]int64{}
	for _, g := range t.everyGroup() {
		all[g.label()] += g.strangers.received.Load()
	}
	return all
}

// keepsReceived tells whether what the group has received and not settled comes again.
func (g *group) keepsReceived() bool { return g.kept && (!g.unheld.Load() || g.again.Load()) }
