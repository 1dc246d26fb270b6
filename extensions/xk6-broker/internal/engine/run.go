// Package load is the engine: it sends and receives through drivers, at the times that a schedule says, and measures and
// accounts for every message. It knows nothing of k6 and nothing of any broker.
package engine

import (
	"context"
	"hash/fnv"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/machine"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// Run is one test, as far as one process takes part in it.
type Run struct {
	*Meter
	ID      uint32 // the same in all processes of a test that were given the same name
	Started int64  // ns since the Unix epoch

	instance    uint32
	named       bool     // it was given a name
	shared      bool     // other processes take part
	processes   int      // of the test, as somebody said; 0 where nobody did
	index       int      // of this process among them; -1 where that is not known
	siblings    sync.Map // of the other processes, those that messages came from, by instance
	producers   atomic.Uint32
	consumers   atomic.Uint32
	desks       atomic.Uint32 // where replies come, see [Replies]
	came        atomic.Int64  // messages that were handed over, by all consumers, whatever they were, but for those that recur
	sleep       func(ctx context.Context, until int64) error
	delay       atomic.Int64 // ns, the longest that a message was sent with
	patience    atomic.Int64 // ns; 0 is [defaultPatience]
	proving     sync.WaitGroup
	proved      int         // producers that were asked again what their confirmations prove
	hurries     atomic.Bool // nobody waits for what may be late any more
	interrupted atomic.Bool
	rested      atomic.Pointer[standing] // as [Run.Arrived] found it

	connections connections

	mu         sync.Mutex
	topics     map[topicKey]*Topic
	order      []*Topic
	publishers []*Publisher
	replies    []*Replies
	repliers   []*replier
	senders    map[uint64]*Topic // where each producer sends to
	readers    map[*Consumer]struct{}
	finished   bool
}

type topicKey struct{ address, name string }

// NewRun starts a run. Processes that shall measure one another's messages are given one name, and may be told how many they are, else 0.
// Without a name, or where there is but one, the run is this process's own.
func NewRun(name string, processes int) *Run {
	id := rand.Uint32() //gosec:disable G404 -- an identifier, no secret
	if name != "" {
		id = idOf(name)
	}
	return &Run{
		Meter:       newMeter(min(runtime.GOMAXPROCS(0), mostShards)),
		ID:          id,
		Started:     driver.Now(),
		instance:    rand.Uint32(), //gosec:disable G404 -- an identifier, no secret
		named:       name != "",
		shared:      name != "" && processes != 1,
		processes:   processes,
		index:       -1,
		sleep:       machine.Until,
		topics:      map[topicKey]*Topic{},
		senders:     map[uint64]*Topic{},
		readers:     map[*Consumer]struct{}{},
		connections: connections{open: map[string]*connection{}},
	}
}

func idOf(name string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name)) // a hash does not fail
	return h.Sum32()
}

// Call names a run of several processes, before anything is sent.
func (r *Run) Call(name string) { r.ID = idOf(name) }

// Instance tells this process from all others of its test.
func (r *Run) Instance() uint32 { return r.instance }

// Topic is one topic of one broker, with the accounting of its messages.
type Topic struct {
	Address *driver.Address
	Name    string

	track      *account.Topic
	declared   atomic.Bool          // there is a consumer for it, opened or not
	over       atomic.Pointer[over] // nil as long as its consumers have not been told that nothing more would come
	unordered  atomic.Bool          // the broker delivers messages out of their order, because of a priority, a delay or a requeue
	routed     atomic.Bool          // some of its messages go where their keys say, see [driver.Proof]
	failed     atomic.Int64         // sends that failed, whose messages the broker may have all the same
	unanswered atomic.Int64         // of failed, those without an answer when the test was interrupted: they are expected, and uncertain
	loops      loops
	mu         sync.Mutex
	groups     map[string]*group // those with a name that the broker knows
	order      []*group          // all, subscribers too
	conn       driver.Conn       // the one opened last, to ask for the backlog
	info       driver.Info
	courses    map[uint64]*account.Recorder // by producer
	spends     atomic.Bool                  // what consumers settle is not kept for groups that come later
	// announced are the groups that the test has consumers for, of a shared run, with what the broker said at the end of those that have
	// none in this process.
	announced map[string]backlog
	awaited   map[string]struct{} // the groups that the test has consumers for, and that expect everything from before one opens
	uses      result.Uses
	created   *driver.TopicSpec   // by this test
	proofs    map[string]*proving // what confirmations prove while the topic is as it is: by the producer's options, or of each one
	proven    []*proving          // what they proved while it was another one
	removed   []int64             // when this process deleted or emptied it, ns since the Unix epoch
	completed uint64              // one more than what was numbered when it was removed with a complete account; 0 if it was not
	readBack  account.Account     // of what the broker was asked for at the end, where the driver only sends

	interrupted map[result.Goal]result.Interruption
}

// Join says what is known of the processes of the test once it runs: how many they are, where nobody has said so before, and which of them this is, from 0.
func (r *Run) Join(processes, index int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.processes == 0 {
		r.processes = processes
	}
	r.index = index
}

// Processes is how many processes the test has, 0 where that is not known, and which of them this is, from 0; -1 where that is not known.
func (r *Run) Processes() (n, index int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.processes, r.index
}

// Topic finds or makes the accounting of a topic.
func (r *Run) Topic(a *driver.Address, name string) *Topic {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := topicKey{a.String(), name}
	t, ok := r.topics[key]
	if !ok {
		t = &Topic{
			Address: a, Name: name, track: account.NewTopic(), courses: map[uint64]*account.Recorder{},
			groups: map[string]*group{}, awaited: map[string]struct{}{}, uses: result.Uses{}, proofs: map[string]*proving{},
			interrupted: map[result.Goal]result.Interruption{},
		}
		if r.shared {
			t.announced = map[string]backlog{}
		}
		r.topics[key] = t
		r.order = append(r.order, t)
	}
	return t
}

// shared tells whether other processes of the test may use the topic.
func (t *Topic) shared() bool { return t.announced != nil }

// Declare says that the test has a consumer for the topic, in that group or none, that begins where start says: that nothing is received
// then speaks against the run. In a test of several processes the consumer may be another one's.
func (t *Topic) Declare(group string, start driver.Start) {
	t.declared.Store(true)
	if !keeps(t.Address.Driver.Features, group) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch _, announced := t.announced[group]; {
	case t.shared() && !announced: // the script is read once more when the test is over
		t.announced[group] = backlog{}
	case !t.shared() && start == driver.StartEarliest: // else others may have received them
		t.awaited[group] = struct{}{}
	}
}

// known finds the accounting of a topic, nil where nothing has opened it.
func (r *Run) known(key topicKey) *Topic {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.topics[key]
}

// Topics lists the topics in the order they were first used.
func (r *Run) Topics() []*Topic {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.order[:len(r.order):len(r.order)]
}

// producerID gives every producer of every process its own number.
func (r *Run) producerID(t *Topic) uint64 {
	id := uint64(r.instance)<<32 | uint64(r.producers.Add(1))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.senders[id] = t
	return id
}

// opened lists the publishers.
func (r *Run) opened() []*Publisher {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.publishers[:len(r.publishers):len(r.publishers)]
}

// InFlight is how many messages are handed over and not yet done.
func (r *Run) InFlight() (n int64) {
	for _, p := range r.opened() {
		n += p.window.inFlight()
	}
	return n
}
