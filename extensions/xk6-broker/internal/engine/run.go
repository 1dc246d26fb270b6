// Package engine sends and receives through drivers at the times of a schedule, and measures and
// accounts for every message. It depends neither on k6 nor on a broker.
package engine

import (
	"cmp"
	"context"
	"hash/fnv"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/machine"
)

// Run is the part that one process takes in a test.
type Run struct {
	*Meter
	ID      uint32 // the same in all processes of a test with one name
	Started int64  // ns since the Unix epoch

	instance  uint32
	named     bool
	shared    bool     // other processes take part
	processes int      // of the test; 0 if unknown
	index     int      // of this process; -1 if unknown
	siblings  sync.Map // instances of other processes whose messages were received
	senders   sync.Map // the topic of each producer, by its ID
	readers   sync.Map // the open consumers

	producers atomic.Uint32
	consumers atomic.Uint32
	inboxes   atomic.Uint32
	fresh     atomic.Int64 // messages handed over that were not handed over before
	sleep     func(ctx context.Context, until int64) error
	timeout   atomic.Int64 // ns; 0 is [defaultDrainTimeout]
	delay     atomic.Int64 // ns, the longest that a message was sent with
	stopped   atomic.Bool  // late messages are not waited for

	connections connections

	mu         sync.Mutex
	topics     []*Topic // in the order in which they were first used
	publishers []*Publisher
	replies    []*Replies
	finished   bool
}

// NewRun starts a run. Processes of one test have one name; processes is how many they are, 0 if
// unknown. Without a name the process is alone.
func NewRun(name string, processes int) *Run {
	id := rand.Uint32() //gosec:disable G404 -- an identifier, no secret
	if name != "" {
		id = runID(name)
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
		connections: connections{open: map[string]*connection{}},
	}
}

func runID(name string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name)) // a hash does not fail
	return h.Sum32()
}

// Call names a run of several processes, before anything is sent.
func (r *Run) Call(name string) { r.ID = runID(name) }

// Named reports whether the run has a name, with which other processes may take part in it.
func (r *Run) Named() bool { return r.named }

// Instance returns the identity of this process among all of its test.
func (r *Run) Instance() uint32 { return r.instance }

// Join sets how many processes the test has, unless that is known, and the index of this one.
func (r *Run) Join(processes, index int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.processes == 0 {
		r.processes = processes
	}
	r.index = index
}

// Processes returns how many processes the test has, 0 if unknown, and the index of this one from
// 0, -1 if unknown.
func (r *Run) Processes() (n, index int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.processes, r.index
}

// defaultDrainTimeout is how long late messages are waited for.
const defaultDrainTimeout = 10 * time.Second

// SetDrainTimeout sets how long late messages are waited for. The longest of all calls counts.
func (r *Run) SetDrainTimeout(d time.Duration) { raise(&r.timeout, int64(d)) }

// DrainTimeout returns how long late messages are waited for. The longest delay that a message was
// sent with is added.
func (r *Run) DrainTimeout() time.Duration {
	return cmp.Or(time.Duration(r.timeout.Load()), defaultDrainTimeout) + time.Duration(r.delay.Load())
}

func raise(to *atomic.Int64, n int64) {
	for was := to.Load(); n > was && !to.CompareAndSwap(was, n); was = to.Load() {
	}
}

// StopWaiting ends the waiting for late messages.
func (r *Run) StopWaiting() { r.stopped.Store(true) }

// brief returns a limit for an operation at the end of the run, which is short after StopWaiting.
func (r *Run) brief(limit time.Duration) time.Duration {
	if r.stopped.Load() {
		return time.Second
	}
	return limit
}

// Topic finds or makes the accounting of a topic.
func (r *Run) Topic(a *driver.Address, name string) *Topic {
	r.mu.Lock()
	defer r.mu.Unlock()
	broker := a.String()
	for _, t := range r.topics {
		if t.Name == name && t.broker == broker {
			return t
		}
	}
	t := newTopic(r, a, name)
	r.topics = append(r.topics, t)
	return t
}

// Topics lists the topics in the order in which they were first used.
func (r *Run) Topics() []*Topic {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.topics[:len(r.topics):len(r.topics)]
}

// groups lists the groups of all topics.
func (r *Run) groups() (all []*group) {
	for _, t := range r.Topics() {
		all = append(all, t.everyGroup()...)
	}
	return all
}

// producerID makes an ID that no other producer of the test has.
func (r *Run) producerID(t *Topic) uint64 {
	id := uint64(r.instance)<<32 | uint64(r.producers.Add(1))
	r.senders.Store(id, t)
	return id
}

// open lists the open consumers, of one topic or of all.
func (r *Run) open(t *Topic) (all []*Consumer) {
	r.readers.Range(func(key, _ any) bool {
		if c, ok := key.(*Consumer); ok && (t == nil || c.topic == t) {
			all = append(all, c)
		}
		return true
	})
	return all
}

// InFlight returns how many messages are handed over to drivers and not yet done.
func (r *Run) InFlight() (n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.publishers {
		n += p.window.inFlight()
	}
	return n
}
