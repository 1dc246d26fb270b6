package memory

import (
	"cmp"
	"context"
	"errors"
	"hash/crc32"
	"slices"
	"sync"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// Config says how a broker behaves. The zero value is a broker that can do everything, at once.
type Config struct {
	// Name is the driver's name and its URL scheme; "memory" where empty.
	Name string
	// Features are what the broker does and the driver claims; [Full] where they are zero.
	Features driver.Features
	// Bare leaves out the optional verbs of connections. Topics then come into being by use.
	Bare bool
	// Coarse keeps the broker from telling what it has never delivered from what was given back.
	Coarse bool
	// Cumulative settles, with a message, all that its consumer received before it.
	Cumulative bool
	// Untold says that it delivers again what is not settled, and its backlog does not tell of it.
	Untold bool
	// Apart has the broker pretend not to be in the process of its clients.
	Apart bool
	// Deliveries is how often a message that is given back is delivered before the broker drops it; 0 is without end.
	Deliveries int32
	// Service is how long a server of the broker's works on message n, counted from 0 in the order of their arrival over
	// all producers; messages that find no server idle wait. Nil takes no time.
	Service func(n int64) time.Duration
	// Servers is how many there are; 0 is one.
	Servers int
	// Transit is how much later than it is confirmed message n can be received. Nil takes no time.
	Transit func(n int64) time.Duration
}

// Full is all that a driver can claim.
func Full() driver.Features {
	return driver.Features{
		Order: driver.PerTopic, Confirm: driver.Accepted, Deliver: driver.AtLeastOnce,
		Settle: driver.Ack | driver.Requeue | driver.Reject, SettleConfirmed: driver.OnRequest,
		Start: driver.StartNew | driver.StartEarliest,
		Async: true, Replay: true, Groups: true, Fanout: true, Key: true, Headers: true, Attempts: true, Requests: true,
		Position: driver.Offset, Timestamps: true, Receipts: true, MaxMessageBytes: 1 << 20,
	}
}

// Log is the features of a partitioned log.
func Log() driver.Features {
	f := Full()
	f.Order, f.Confirm, f.Settle, f.SettleConfirmed = driver.PerPartition, driver.Replicated, driver.Ack, driver.Always
	f.Attempts, f.Requests, f.Tombstones, f.Partitions = false, false, true, true
	return f
}

// Queue is the features of a plain work queue: one flow that all consumers share.
func Queue() driver.Features {
	f := Full()
	f.Start, f.SettleConfirmed = driver.StartEarliest, driver.Never
	f.Replay, f.Groups, f.Fanout, f.Attempts = false, false, false, false
	f.Position, f.Timestamps, f.Receipts = driver.Identifier, false, false
	return f
}

// Store is the features of what only takes messages, such as the interface of a metric store.
func Store() driver.Features {
	return driver.Features{Confirm: driver.Accepted, Key: true, Headers: true, MaxMessageBytes: 1 << 20}
}

// Subject is the features of plain publish and subscribe: who is not there misses it.
func Subject() driver.Features {
	return driver.Features{Order: driver.PerTopic, Start: driver.StartNew, Fanout: true}
}

// Errors that a client of the broker sees.
var (
	errRefused      = errors.New("connection refused")
	errBroken       = errors.New("connection reset")
	errNoTopic      = errors.New("no such topic")
	errTooLarge     = errors.New("message too large")
	errNoPartition  = errors.New("no such partition")
	errNoReplyTo    = errors.New("the message asks for no reply")
	errStranger     = errors.New("another server")
	errNotUnsettled = errors.New("not unsettled at this consumer")
)

// host is where the broker pretends to listen.
const host = "127.0.0.1:7"

// Broker is a message broker in memory. Make it inside the synctest bubble that shall use it.
type Broker struct {
	config Config

	mu      sync.Mutex
	changed chan struct{} // closed, and made anew, whenever something may be of interest to those who wait
	frozen  bool
	topics  map[string]*topic
	conns   map[*conn]struct{}
	arrived int64   // how many messages the server has taken on
	free    []int64 // when each server is through with them, by driver.Now
}

// New makes a broker.
func New(c Config) *Broker {
	c.Name = cmp.Or(c.Name, "memory")
	if c.Features == (driver.Features{}) {
		c.Features = Full()
	}
	return &Broker{config: c, free: make([]int64, max(1, c.Servers)), changed: make(chan struct{}), topics: map[string]*topic{}, conns: map[*conn]struct{}{}}
}

// URL is where the driver finds the broker, once it is registered.
func (b *Broker) URL() string { return b.config.Name + "://" + host }

// Driver is the driver of this broker, to be registered or opened as it is.
func (b *Broker) Driver() driver.Driver {
	d := driver.Driver{
		Name: b.config.Name, Schemes: []string{b.config.Name}, Doc: "A broker in memory, for tests.",
		Features: b.config.Features, Open: b.open, Classify: classify,
		Options: []driver.Option{
			{Name: "token", Scope: driver.OnConnect, Secret: true, Doc: "Ignored; here to be kept secret."},
			{Name: "connectTimeout", Scope: driver.OnConnect, Type: driver.Duration, Default: "10s", Doc: "How long a server elsewhere may take to answer."},
		},
	}
	if b.config.Features.Position != driver.NoPosition {
		d.Place = b.place
	}
	if b.config.Features.Partitions {
		d.Options = append(d.Options, driver.Option{Name: "partition", Scope: driver.OnMessage, Type: driver.Int, Doc: "The partition to send to."})
	}
	return d
}

// place implements [driver.Driver]'s Place.
func (b *Broker) place(m *driver.Message) driver.Place {
	d, ok := m.Token.(*delivery)
	if !ok { // the reply to a request is kept nowhere
		return driver.Place{}
	}
	place := d.place(b.config.Features.Position)
	if b.config.Features.Timestamps {
		place.Timestamp = d.stored
	}
	return place
}

// Stored are the messages of a topic, in the order of their arrival.
func (b *Broker) Stored(topic string) driver.Batch {
	b.mu.Lock()
	defer b.mu.Unlock()
	t, ok := b.topics[topic]
	if !ok {
		return nil
	}
	all := make(driver.Batch, len(t.log))
	for i, r := range t.log {
		all[i] = copied(r.message)
	}
	return all
}

func classify(err error) driver.Kind {
	switch {
	case errors.Is(err, errRefused), errors.Is(err, errBroken):
		return driver.Disconnected
	case errors.Is(err, errNoTopic):
		return driver.NotFound
	case errors.Is(err, errTooLarge), errors.Is(err, errNoPartition), errors.Is(err, errNoReplyTo), errors.Is(err, errNotUnsettled):
		return driver.Rejected
	}
	return driver.Unknown
}

// Freeze stops the broker: it takes nothing in and gives nothing out until thaw is called.
func (b *Broker) Freeze() (thaw func()) {
	b.freeze(true)
	return func() { b.freeze(false) }
}

func (b *Broker) freeze(frozen bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.frozen = frozen
	b.change()
}

// Cut breaks every connection. What was on its way in fails, what was unsettled goes back, and the clients are connected
// again at once.
func (b *Broker) Cut() {
	b.mu.Lock()
	var failed []*outgoing
	for c := range b.conns {
		for p := range c.producers {
			failed = append(failed, p.queue...)
			p.queue = nil
		}
		for r := range c.consumers {
			r.giveBack()
			r.broken = true
		}
	}
	b.change()
	b.mu.Unlock()
	for _, o := range failed {
		o.finish(errBroken)
	}
}

// change wakes everybody who waits. The lock is held.
func (b *Broker) change() {
	close(b.changed)
	b.changed = make(chan struct{})
}

// wait unlocks until something changes, the time comes (0 is never) or ctx ends, and locks again.
func (b *Broker) wait(ctx context.Context, until int64) error {
	changed := b.changed
	b.mu.Unlock()
	defer b.mu.Lock()
	var due <-chan time.Time
	if until != 0 {
		timer := time.NewTimer(time.Duration(until - driver.Now()))
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-changed:
	case <-due:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// answer locks, and waits while the broker is frozen. Where it fails the lock is not held.
func (b *Broker) answer(ctx context.Context) error {
	b.mu.Lock()
	for b.frozen {
		if err := b.wait(ctx, 0); err != nil {
			b.mu.Unlock()
			return err
		}
	}
	return nil
}

// place is where the broker has a message, in the form that its positions have. Each half of a number is one number of an identifier.
func (r *record) place(form driver.Form) driver.Place {
	n := uint64(r.offset) //gosec:disable G115 -- a number of a test, and small
	p := driver.Place{Partition: r.message.Partition, Position: driver.Position{Form: form, Number: n}}
	if form == driver.Identifier {
		p.Position.Number, p.Position.Sub = n/2, n%2
	}
	return p
}

// topic is a log that is kept, and the groups that read it.
type topic struct {
	name       string
	partitions int
	log        []*record
	added      int64 // how many messages there were, purged ones included
	groups     map[string]*group
}

// partition is where a message belongs: where it asks to, by its key, and else in turn.
func (t *topic) partition(o *outgoing) (int32, error) {
	n := o.n
	if chosen, ok := o.properties["partition"].(int64); ok {
		if chosen >= int64(t.partitions) {
			return 0, errNoPartition
		}
		n = chosen
	} else if o.message.Key != nil {
		n = int64(crc32.ChecksumIEEE(o.message.Key))
	}
	return int32(n % int64(t.partitions)), nil //gosec:disable G115 -- a number of a test, and small
}

type record struct {
	n       int64 // the broker's number for it
	message driver.Message
	offset  int64 // in the topic
	stored  int64 // when it came, by driver.Now
	visible int64
	reply   chan driver.Message // nil where none is asked for
}

// group is one flow of a topic's messages. Groups of one consumer, which have no name, go with it.
type group struct {
	topic     *topic
	ready     []*delivery
	unsettled map[*delivery]*consumer
}

// delivery is a message on its way through one group; it is what Message.Token holds.
type delivery struct {
	*record
	attempt int32
}

// add appends a message and gives it to every group. The lock is held.
func (t *topic) add(r *record) {
	r.offset = t.added
	t.added++
	t.log = append(t.log, r)
	for _, g := range t.groups {
		g.ready = append(g.ready, &delivery{record: r})
	}
}

// join finds the group of a name, or begins a new one. The lock is held.
func (t *topic) join(name string, start driver.Start) *group {
	g, ok := t.groups[name]
	if !ok {
		g = &group{topic: t, unsettled: map[*delivery]*consumer{}}
		if start == driver.StartEarliest {
			for _, r := range t.log {
				g.ready = append(g.ready, &delivery{record: r})
			}
		}
		t.groups[name] = g
	}
	return g
}

// requeue puts a delivery back at the place that it had, unless it has been delivered too often. The lock is held.
func (g *group) requeue(d *delivery, limit int32) {
	if limit > 0 && d.attempt >= limit {
		return
	}
	i, _ := slices.BinarySearchFunc(g.ready, d, func(a, b *delivery) int { return cmp.Compare(a.n, b.n) })
	g.ready = slices.Insert(g.ready, i, d)
}

// find gives a topic, which a bare broker makes where it is absent. The lock is held.
func (b *Broker) find(name string) (*topic, error) {
	t, ok := b.topics[name]
	switch {
	case ok:
		return t, nil
	case !b.config.Bare:
		return nil, errNoTopic
	}
	return b.create(name, 1), nil
}

func (b *Broker) create(name string, partitions int) *topic {
	if !b.config.Features.Partitions {
		partitions = 1
	}
	t := &topic{name: name, partitions: partitions, groups: map[string]*group{}}
	if b.shared() {
		t.join("", driver.StartEarliest) // the one flow is there from the start
	}
	b.topics[name] = t
	return t
}

// shared reports whether consumers without a group share one flow.
func (b *Broker) shared() bool { return !b.config.Features.Fanout }
