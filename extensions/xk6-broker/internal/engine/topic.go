package engine

import (
	"fmt"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/engine/summary"
)

// Topic is one topic of one broker, with the accounting of its messages.
type Topic struct {
	Address *driver.Address
	Name    string

	run       *Run
	broker    string // the address, without credentials
	track     *account.Topic
	declared  atomic.Bool  // the script has a consumer for it, opened or not
	unordered atomic.Bool  // the broker reorders, because of a priority, a delay or a requeue
	selected  atomic.Bool  // consumers need not get every message, because of keys or selectors
	spends    atomic.Bool  // settled messages are not kept for groups that come later
	failed    atomic.Int64 // sends that failed; the broker may have their messages

	mu       sync.Mutex
	order    []*group // of consumer groups and subscribers
	info     driver.Info
	uses     summary.Options
	created  *driver.TopicSpec        // by this test
	readBack account.Account          // of a driver that only sends
	proofs   map[string]summary.Proof // by when they were asked for, and the producers' options
	removed  []int64                  // when this process deleted or emptied it
}

func newTopic(r *Run, a *driver.Address, name string) *Topic {
	t := &Topic{
		Address: a, Name: name, run: r, broker: a.String(), track: account.NewTopic(), uses: summary.Options{},
		proofs: map[string]summary.Proof{},
	}
	t.spends.Store(!a.Driver.Features.Replay)
	return t
}

// Declare records that the script has a consumer for the topic. With several processes it may be
// opened in another one.
func (t *Topic) Declare() { t.declared.Store(true) }

// Use records the options in force for a user of the topic: "connect", "topic", "producer",
// "consumer", "produce" or "consume". Secrets are masked.
func (t *Topic) Use(by string, options map[string]any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.uses.Add(by, options)
}

// Created records that this test made the topic.
func (t *Topic) Created(spec driver.TopicSpec) {
	t.mu.Lock()
	t.created = &spec
	t.mu.Unlock()
	t.noteOptions(effective(t.Address.Driver, driver.OnTopic), spec.Options)
}

// effective lists the options of a scope that have an effect on the account.
func effective(d *driver.Driver, scope driver.Scope) []driver.Option {
	return slices.DeleteFunc(slices.Clone(d.Options), func(o driver.Option) bool {
		return o.Scope&scope == 0 || !o.Reorders && !o.Selects && o.Spends == ""
	})
}

// noteOptions records the effects on the account of options that are not at their defaults.
func (t *Topic) noteOptions(options []driver.Option, values driver.Values) {
	for _, o := range options {
		v, ok := values[o.Name]
		if usual, err := o.Parse(o.Default); !ok || err == nil && reflect.DeepEqual(v, usual) {
			continue
		}
		if o.Spends != "" && v == o.Spends {
			t.spends.Store(true)
		}
		if o.Selects {
			t.selected.Store(true)
		}
		delay, _ := v.(time.Duration)
		if o.Reorders && !reflect.ValueOf(v).IsZero() {
			t.unordered.Store(true)
			raise(&t.run.delay, int64(delay))
		}
	}
}

// connected keeps the information that a connection has of the broker.
func (t *Topic) connected(conn driver.Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if informer, ok := conn.(driver.Informer); ok {
		t.info = informer.Info()
	}
}

// explain adds a hint to the error that a topic is missing. A driver that only sends creates topics
// by use.
func (t *Topic) explain(err error) error {
	if d := t.Address.Driver; err == nil || d.KindOf(err) != driver.NotFound || d.Features.Start == 0 {
		return err
	}
	return fmt.Errorf("%w: is there a topic %q? createTopic in setup makes it", err, t.Name)
}

// everyGroup lists the groups of the topic, subscribers too.
func (t *Topic) everyGroup() []*group {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.order)
}
