package account_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
)

// world is a broker with one topic and one group, the processes of a test, and what became of each message in truth. Nothing in it infers anything.
type world struct {
	choose   func(n int) int // 0 to n-1
	now      int64
	kept     bool // the broker keeps messages while no member is there
	earliest bool
	existed  bool // the group has had a member
	procs    []*process
	queue    []*stored
	fates    map[message]*fate
	sent     []message
	doubts   bool // something was given back or came again, or a send failed
	removals bool
}

type fate struct{ expected, received, drained, routed, removed, settled bool }

// stored is a message that the broker has for the group.
type stored struct {
	message
	attempt int32
	lent    *process
}

type process struct {
	id            uint32
	orders, dead  *account.Topic
	producer      *account.Producer
	group, others *account.Group
	reader, other *account.Reader
	there, left   []account.Presence
	doubtful      bool
	removed       []int64
	failed        int64
	asked         int64
	backlog       account.Backlog
	ended         int64
}

func newWorld(choose func(n int) int) *world {
	w := &world{choose: choose, now: int64(time.Hour), kept: choose(3) > 0, earliest: choose(2) > 0, fates: map[message]*fate{}}
	w.earliest = w.earliest && w.kept
	for i := range uint32(1 + choose(3)) { //gosec:disable G115 -- a small count
		p := &process{id: i + 1, orders: account.NewTopic(), dead: account.NewTopic()}
		p.producer = p.orders.Producer(uint64(p.id) << 32)
		p.group, p.others = p.orders.Group("g", w.earliest), p.dead.Group("d", true)
		p.reader, p.other = p.group.Reader(), p.others.Reader()
		w.procs = append(w.procs, p)
	}
	return w
}

func (p *process) present() bool {
	return len(p.there) > 0 && p.there[len(p.there)-1].Until == math.MaxInt64
}

func (w *world) any() *process { return w.procs[w.choose(len(w.procs))] }

// member is a process that has a member; nil if there is none.
func (w *world) member() *process {
	first := w.choose(len(w.procs))
	for i := range w.procs {
		if p := w.procs[(first+i)%len(w.procs)]; p.present() {
			return p
		}
	}
	return nil
}

// step does one thing at random.
func (w *world) step() {
	w.now += 1 + int64(w.choose(400))*int64(time.Millisecond)
	switch w.choose(16) {
	case 0:
		w.comeOrGo(w.any())
	case 1, 2, 3, 4, 5, 6, 7:
		w.send(w.any())
	case 8, 9, 10:
		w.deliver()
	case 11, 12:
		w.settle()
	case 13:
		w.giveBack()
	case 14:
		if w.choose(8) == 0 {
			w.remove(w.any())
		}
	case 15: // somebody deletes a message that the test has not received
		if w.choose(4) == 0 && len(w.queue) > 0 {
			if i := w.choose(len(w.queue)); w.queue[i].attempt == 0 {
				w.queue = append(w.queue[:i:i], w.queue[i+1:]...)
			}
		}
	}
}

func (w *world) comeOrGo(p *process) {
	if p.present() {
		w.leave(p)
		return
	}
	p.there = append(p.there, account.Presence{From: w.now, Until: math.MaxInt64})
	p.group.Ready()
	w.existed = true
}

func (w *world) leave(p *process) {
	p.there[len(p.there)-1].Until = w.now
	if !w.kept {
		p.group.Close()
		p.left = append(p.left, account.Presence{From: w.now, Until: w.now})
	}
	for _, s := range w.queue {
		if s.lent == p {
			s.lent = nil
		}
	}
}

func (w *world) send(p *process) {
	first := p.producer.Next()
	p.producer.Sent(w.now, first)
	m, f := message{p.producer.ID(), first}, &fate{}
	w.fates[m] = f
	w.sent = append(w.sent, m)
	failed := w.choose(40) == 0
	if failed {
		p.failed++
		w.doubts = true
	} else {
		p.producer.Expect(first)
	}
	there := w.member()
	f.expected = !failed && (w.earliest || w.kept && w.existed || there != nil)
	switch end := w.choose(20); {
	case failed && w.choose(2) == 0: // it never came to the broker
	case end == 0: // the broker loses it
	case end == 1: // it is forwarded to a consumer of the test on the other topic
		w.any().other.Received(m.id, m.seq, 0, 1)
		f.routed = true
	case w.kept && (w.earliest || w.existed):
		w.queue = append(w.queue, &stored{message: m})
	case !w.kept && there != nil:
		there.reader.Received(m.id, m.seq, 0, 1)
		f.received = true
	}
}

func (w *world) deliver() {
	p := w.member()
	if p == nil || len(w.queue) == 0 {
		return
	}
	if s := w.queue[w.choose(len(w.queue))]; s.lent == nil {
		s.attempt++
		s.lent = p
		w.doubts = w.doubts || s.attempt > 1 // whether the broker has it still
		p.reader.Received(s.id, s.seq, 0, s.attempt)
		w.fates[s.message].received = true
	}
}

func (w *world) settle() {
	for i, s := range w.queue {
		if s.lent != nil && w.choose(2) == 0 {
			s.lent.reader.Settled(s.id, s.seq)
			w.fates[s.message].settled = true
			w.queue = append(w.queue[:i:i], w.queue[i+1:]...)
			return
		}
	}
}

func (w *world) giveBack() {
	for _, s := range w.queue {
		if s.lent != nil && w.choose(2) == 0 {
			s.lent.doubtful = true
			s.lent, w.doubts = nil, true
			return
		}
	}
}

func (w *world) remove(p *process) {
	for _, s := range w.queue {
		w.fates[s.message].removed = true
	}
	w.queue, w.removals = nil, true
	p.removed = append(p.removed, w.now)
	p.orders.Remove(w.now)
}

// end has the processes end one after the other: what is left is drained, perhaps, and the broker is asked.
func (w *world) end() {
	drains := w.kept && w.choose(2) == 0
	for _, p := range w.procs {
		w.now += 1 + int64(w.choose(1500))*int64(time.Millisecond)
		if p.present() {
			w.leave(p)
		}
		if drains && len(p.there) > 0 {
			w.drain(p)
		}
		if w.kept && w.choose(10) > 0 {
			p.asked, p.backlog = w.now, account.Backlog{Messages: int64(len(w.queue))}
		}
		p.ended = w.now
	}
}

func (w *world) drain(p *process) {
	var left []*stored
	for _, s := range w.queue {
		if s.lent != nil {
			left = append(left, s)
			continue
		}
		p.reader.Drained(s.id, s.seq, true)
		f := w.fates[s.message]
		f.drained = !f.received
	}
	w.queue = left
}

func (p *process) ledger(kept, earliest bool) *account.Ledger {
	orders, dead := p.orders.Snapshot(), p.dead.Snapshot()
	return &account.Ledger{Instance: p.id, Clock: "one", Ended: p.ended, Topics: []account.TopicLedger{
		{
			Driver: "d", Topic: "orders", Failed: p.failed, Removed: p.removed, Producers: orders.Producers,
			Groups: []account.GroupLedger{{
				GroupSnapshot: orders.Groups[0], Kept: kept, Earliest: earliest, There: p.there, Left: p.left, Asked: p.asked, Backlog: p.backlog, Doubtful: p.doubtful,
			}},
		},
		{Driver: "d", Topic: "dead", Groups: []account.GroupLedger{{GroupSnapshot: dead.Groups[0], Kept: true, There: []account.Presence{{0, math.MaxInt64}}}}},
	}}
}

// truth counts what became of the messages.
type truth struct{ expected, received, drained, routed, atBroker, lost, settled uint64 }

func (w *world) truth() (t truth) {
	waiting := map[message]bool{}
	for _, s := range w.queue {
		waiting[s.message] = true
	}
	add := func(to *uint64, is bool) {
		if is {
			*to++
		}
	}
	for m, f := range w.fates {
		missing := f.expected && !f.received && !f.drained
		add(&t.expected, f.expected)
		add(&t.received, f.received)
		add(&t.drained, f.drained)
		add(&t.settled, f.settled)
		add(&t.routed, missing && f.routed)
		add(&t.atBroker, missing && waiting[m])
		add(&t.lost, missing && !f.routed && !f.removed && !waiting[m])
	}
	return t
}

// check holds the account against the truth.
func (w *world) check(t *testing.T) {
	t.Helper()
	ledgers := make([]*account.Ledger, len(w.procs))
	joined := false
	for i, p := range w.procs {
		ledgers[i] = p.ledger(w.kept, w.earliest)
		joined = joined || len(p.there) > 0
	}
	whole := account.Compute(ledgers, account.Options{Complete: true})
	if groups := whole.Topics[0].Groups; !joined {
		if len(groups) > 0 {
			t.Fatalf("nobody joined: %+v", groups)
		}
		return
	}
	a, want := whole.Topics[0].Groups[0], w.truth()
	fail := func(what string) {
		t.Helper()
		t.Errorf("%s: kept %v, earliest %v, %d processes, removals %v\n got %+v\ntrue %+v", what, w.kept, w.earliest, len(w.procs), w.removals, a, want)
	}
	var doubted uint64
	for _, n := range a.Why {
		doubted += n
	}
	switch {
	case a.Missing != a.Lost+a.Undelivered+a.Uncertain+a.Routed || a.Uncertain != doubted:
		fail("does not add up")
	case a.Expected+a.Unexpected != a.Received+a.Drained+a.Missing:
		fail("expected and unexpected do not add up")
	case a.Received != want.received || a.Settled != want.settled:
		fail("received or settled")
	case a.Lost > want.lost:
		fail("more lost than there are")
	case a.Undelivered > want.atBroker:
		fail("more at the broker than there are")
	}
	if p := w.procs[0]; len(w.procs) > 1 || w.removals || w.doubts || w.kept && p.asked == 0 {
		return
	}
	leaving := a.Why[account.Leaving]
	switch {
	case a.Expected != want.expected || a.Drained != want.drained || a.Routed != want.routed:
		fail("one process: counts")
	case a.Uncertain != leaving || w.kept && leaving > 0:
		fail("one process: uncertain")
	case a.Lost+leaving != want.lost || a.Undelivered != want.atBroker:
		fail("one process: lost or at the broker")
	}
}

func history(t *testing.T, choose func(n int) int, steps int) {
	t.Helper()
	w := newWorld(choose)
	for range steps {
		w.step()
	}
	w.end()
	w.check(t)
}

// Random histories of send, confirm, receive, settle, redeliver, remove and leave: the account never says more than is true, and of one process
// whose broker tells what it has it says everything.
func TestCompute_RandomHistories_AgreeWithTheTruth(t *testing.T) {
	for seed := range uint64(3000) {
		random := rand.New(rand.NewPCG(seed, 0)) //gosec:disable G404 -- the same histories each time
		t.Run(fmt.Sprint(seed), func(t *testing.T) { history(t, random.IntN, 20+random.IntN(120)) })
		if t.Failed() {
			return
		}
	}
}

func FuzzCompute(f *testing.F) {
	f.Add([]byte("a history"))
	f.Fuzz(func(t *testing.T, text []byte) {
		next := 0
		history(t, func(n int) int {
			if next >= len(text) {
				return 0
			}
			next++
			return int(text[next-1]) % n
		}, min(len(text), 200))
	})
}
