// Package memory is a message broker in memory with its driver: the smallest complete driver, to
// read before writing another, and a broker with chosen delays for tests, also in virtual time
// (testing/synctest).
package memory

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"hash/crc32"
	"slices"
	"sync"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// Config describes a broker. The zero value is a broker with all features and no delays.
type Config struct {
	// Name is the driver's name and its URL scheme; "memory" if empty.
	Name string
	// Features are the features of broker and driver; [Full] if zero.
	Features driver.Features
	// Bare leaves out the optional verbs of connections. Topics are created by use then.
	Bare bool
	// Coarse leaves the undelivered messages out of the backlog.
	Coarse bool
	// Cumulative settles, with a message, all that its consumer received before it.
	Cumulative bool
	// Untold leaves unsettled messages out of the backlog.
	Untold bool
	// Apart makes the broker pretend to be outside the process of its clients.
	Apart bool
	// Deliveries is how often a requeued message is delivered before it is dropped; 0 is no limit.
	Deliveries int32
	// Service is how long a server of the broker works on message n, counted from 0 over all
	// producers. Messages wait for an idle server. Nil takes no time.
	Service func(n int64) time.Duration
	// Servers is the number of servers; 0 is one.
	Servers int
	// Transit is how long after its confirmation message n can be received. Nil takes no time.
	Transit func(n int64) time.Duration
}

// Full returns all features.
func Full() driver.Features {
	return driver.Features{
		Order: driver.PerTopic, Confirm: driver.Accepted, Deliver: driver.AtLeastOnce,
		Settle: driver.Ack | driver.Requeue | driver.Reject, SettleConfirmed: driver.OnRequest,
		Start: driver.StartNew | driver.StartEarliest,
		Async: true, Replay: true, Groups: true, Fanout: true, Key: true, Headers: true, Attempts: true,
		Requests: true, Position: driver.Offset, Timestamps: true, Receipts: true, MaxMessageBytes: 1 << 20,
	}
}

// Log returns the features of a partitioned log.
func Log() driver.Features {
	f := Full()
	f.Order, f.Confirm = driver.PerPartition, driver.Replicated
	f.Settle, f.SettleConfirmed = driver.Ack, driver.Always
	f.Attempts, f.Requests, f.Tombstones, f.Partitions = false, false, true, true
	return f
}

// Queue returns the features of a work queue: all consumers share one flow.
func Queue() driver.Features {
	f := Full()
	f.Start, f.SettleConfirmed = driver.StartEarliest, driver.Never
	f.Replay, f.Groups, f.Fanout, f.Attempts = false, false, false, false
	f.Position, f.Timestamps, f.Receipts = driver.Identifier, false, false
	return f
}

// Store returns the features of a store that only takes messages, such as a metric store.
func Store() driver.Features {
	return driver.Features{Confirm: driver.Accepted, Key: true, Headers: true, MaxMessageBytes: 1 << 20}
}

// Subject returns the features of plain publish and subscribe: absent consumers miss messages.
func Subject() driver.Features {
	return driver.Features{Order: driver.PerTopic, Start: driver.StartNew, Fanout: true}
}

// failure is an error that a client of the broker gets.
type failure struct {
	kind driver.Kind
	text string
}

func (f *failure) Error() string { return f.text }

var (
	errRefused      = &failure{driver.Disconnected, "connection refused"}
	errBroken       = &failure{driver.Disconnected, "connection reset"}
	errNoTopic      = &failure{driver.NotFound, "no such topic"}
	errTooLarge     = &failure{driver.Rejected, "message too large"}
	errNoPartition  = &failure{driver.Rejected, "no such partition"}
	errNoReplyTo    = &failure{driver.Rejected, "the message asks for no reply"}
	errNotUnsettled = &failure{driver.Rejected, "not unsettled at this consumer"}
)

func classify(err error) driver.Kind {
	var f *failure
	if errors.As(err, &f) {
		return f.kind
	}
	return driver.Unknown
}

// host is the address that the broker pretends to listen at.
const host = "127.0.0.1:7"

// Broker is a message broker in memory. Make it inside the synctest bubble that uses it.
type Broker struct {
	config Config

	mu      sync.Mutex
	changed chan struct{} // closed and replaced at each change that a call may wait for
	frozen  bool
	topics  map[string]*topic
	cuts    int
	arrived int64   // messages so far
	free    []int64 // when each server is idle, by driver.Now
}

// New makes a broker.
func New(c Config) *Broker {
	c.Name = cmp.Or(c.Name, "memory")
	if c.Features == (driver.Features{}) {
		c.Features = Full()
	}
	b := &Broker{config: c, changed: make(chan struct{}), topics: map[string]*topic{}}
	b.free = make([]int64, max(1, c.Servers))
	return b
}

// URL returns the URL of the broker, for its registered driver.
func (b *Broker) URL() string { return b.config.Name + "://" + host }

// Driver returns the driver of this broker, to register or to open.
func (b *Broker) Driver() driver.Driver {
	d := driver.Driver{
		Name: b.config.Name, Schemes: []string{b.config.Name}, Doc: "A broker in memory, for tests.",
		Features: b.config.Features, Open: b.open, Classify: classify,
		Options: []driver.Option{
			{Name: "token", Scope: driver.OnConnect, Secret: true, Doc: "Ignored; here to be kept secret."},
			{
				Name: "connectTimeout", Scope: driver.OnConnect, Type: driver.Duration, Default: "10s",
				Doc: "How long a server elsewhere may take to answer.",
			},
		},
	}
	if b.config.Features.Position != driver.NoPosition {
		d.Place = b.place
	}
	if b.config.Features.Partitions {
		d.Options = append(d.Options, driver.Option{
			Name: "partition", Scope: driver.OnMessage, Type: driver.Int, Doc: "The partition to send to.",
		})
	}
	return d
}

// place implements [driver.Driver]'s Place. The reply to a request has no place.
func (b *Broker) place(m *driver.Message) driver.Place {
	d, ok := m.Token.(*delivery)
	if !ok {
		return driver.Place{}
	}
	place := d.place(b.config.Features.Position)
	if b.config.Features.Timestamps {
		place.Timestamp = d.stored
	}
	return place
}

// Stored returns the messages of a topic in the order of their arrival.
func (b *Broker) Stored(topic string) (all driver.Batch) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if t, ok := b.topics[topic]; ok {
		for _, r := range t.log {
			all = append(all, copied(r.message))
		}
	}
	return all
}

// Freeze stops the broker: it takes and gives no messages until thaw is called.
func (b *Broker) Freeze() (thaw func()) {
	set := func(frozen bool) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.frozen = frozen
		b.change()
	}
	set(true)
	return func() { set(false) }
}

// Cut breaks every connection: messages in flight fail, and a consumer requeues its unsettled
// messages at its next call. The clients are connected again at once.
func (b *Broker) Cut() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cuts++
	b.change()
}

// change wakes the waiting calls. The lock is held.
func (b *Broker) change() {
	close(b.changed)
	b.changed = make(chan struct{})
}

// wait unlocks until a change, an instant (0 is never) or the end of ctx, and locks again.
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

// lock locks, after the broker has thawed. If it fails the lock is not held.
func (b *Broker) lock(ctx context.Context) error {
	b.mu.Lock()
	for b.frozen {
		if err := b.wait(ctx, 0); err != nil {
			b.mu.Unlock()
			return err
		}
	}
	return nil
}

// topic is a log that is kept, and the groups that read it. The broker's lock guards it.
type topic struct {
	name       string
	partitions int
	log        []*record
	added      int64 // messages so far, purged ones included
	groups     map[string]*group
}

// record is a message of a topic.
type record struct {
	n       int64 // the broker's number of the message
	message driver.Message
	offset  int64 // in the topic
	stored  int64 // when it came, by driver.Now
	visible int64
	reply   chan driver.Message // nil if the message asks for no reply
}

// group is one flow of a topic's messages. A consumer without a group has its own.
type group struct {
	topic     *topic
	ready     []*delivery
	unsettled map[*delivery]*consumer
}

// delivery is a message on its way through one group. Message.Token holds it.
type delivery struct {
	*record
	attempt int32
}

// place returns the place of a message. An identifier has two numbers, the halves of the offset.
func (r *record) place(form driver.Form) driver.Place {
	n := uint64(r.offset) //gosec:disable G115 -- a small number of a test
	p := driver.Place{Partition: r.message.Partition, Position: driver.Position{Form: form, Number: n}}
	if form == driver.Identifier {
		p.Position.Number, p.Position.Sub = n/2, n%2
	}
	return p
}

// partition chooses a message's partition: by its property, by its key, or in turn.
func (t *topic) partition(key []byte, properties driver.Values, n int64) (int32, error) {
	if chosen, ok := properties["partition"].(int64); ok {
		if chosen >= int64(t.partitions) {
			return 0, errNoPartition
		}
		n = chosen
	} else if key != nil {
		n = int64(crc32.ChecksumIEEE(key))
	}
	return int32(n % int64(t.partitions)), nil //gosec:disable G115 -- a small number of a test
}

// add appends a message and gives it to every group.
func (t *topic) add(r *record) {
	r.offset = t.added
	t.added++
	t.log = append(t.log, r)
	for _, g := range t.groups {
		g.ready = append(g.ready, &delivery{record: r})
	}
}

// join returns the group of a name, or makes it.
func (t *topic) join(name string, start driver.Start) *group {
	g, ok := t.groups[name]
	if ok {
		return g
	}
	g = &group{topic: t, unsettled: map[*delivery]*consumer{}}
	if start == driver.StartEarliest {
		for _, r := range t.log {
			g.ready = append(g.ready, &delivery{record: r})
		}
	}
	t.groups[name] = g
	return g
}

// requeue puts a delivery back in its place, if it was not delivered too often.
func (g *group) requeue(d *delivery, limit int32) {
	if limit > 0 && d.attempt >= limit {
		return
	}
	i, _ := slices.BinarySearchFunc(g.ready, d, func(a, b *delivery) int { return cmp.Compare(a.n, b.n) })
	g.ready = slices.Insert(g.ready, i, d)
}

// create makes a topic. If consumers without a group share one flow, it exists from the start.
func (b *Broker) create(name string, partitions int) *topic {
	if !b.config.Features.Partitions {
		partitions = 1
	}
	t := &topic{name: name, partitions: partitions, groups: map[string]*group{}}
	if b.shared() {
		t.join("", driver.StartEarliest)
	}
	b.topics[name] = t
	return t
}

// shared reports whether consumers without a group share one flow.
func (b *Broker) shared() bool { return !b.config.Features.Fanout }

// copied returns a message that shares no bytes with the sender's.
func copied(m driver.Message) driver.Message {
	headers := slices.Clone(m.Headers)
	for i := range headers {
		headers[i].Value = bytes.Clone(headers[i].Value)
	}
	return driver.Message{Key: bytes.Clone(m.Key), Body: bytes.Clone(m.Body), Headers: headers}
}
