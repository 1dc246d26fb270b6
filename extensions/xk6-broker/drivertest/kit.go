package drivertest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// Harness is what the kit must know of a driver and its server.
type Harness struct {
	// Driver is the registered name; the Features are read from the registry.
	Driver string
	// URL is the server's. Where it is empty the tests are skipped, or fail if the environment's BROKER_REQUIRE, a
	// comma-separated list or "all", names the driver.
	URL string
	// On is said of the outcome in the documents where the server is not what every user of the driver has: "Artemis", or "ElasticMQ, not on AWS".
	On string
	// Topic makes a topic and returns its name. By default the name is unique, and the topic is created and in the end
	// deleted where the connection has an Admin.
	Topic func(t testing.TB, c driver.Conn) string
	// Freeze stops the server from answering, its connections kept, until thaw is called. By default a TCP proxy in
	// front of the server does it, where the URL has one host:port.
	Freeze func(t testing.TB) (thaw func())
	// Cut breaks every connection to the server. By default the proxy does it.
	Cut func(t testing.TB)
	// NoProxy says that a proxy is of no use because clients go round it to the address that the server advertises.
	NoProxy bool
	// Stored reads what the server has of a topic, in any order: all of it each time, from any goroutine. It is needed for a driver that
	// only sends, whose messages the kit finds there: Key, Headers and Body.
	Stored func(t testing.TB, topic string) []driver.Message
	// Numbers says that a body must be the text of a number: the kit sends one of its own in place of each body, and takes one that is stored for that body.
	Numbers bool
	// HeaderBytes says that the values of headers may hold any byte.
	HeaderBytes bool
	// Batches says that the broker delivers and counts as one what a producer sends as a batch, as it does with profile throughput.
	Batches bool
	// SettleUnconfirmed says that this server confirms no settlement, though others that the driver speaks to do: who asks for it is refused.
	SettleUnconfirmed bool
	// Patience is how long a thing that must happen may take; by default a minute, as of a machine that is ten times slower than most.
	Patience time.Duration
	// Prompt is how long the best of many single messages may take over loopback, there or back; by default 5 ms. It is not asked with -test.short. A delay that is meant to gather a batch,
	// such as the 10 ms of several clients, is in every one of them; what a busy machine adds is not. A server that is asked several times for a message,
	// or over HTTP, needs more.
	Prompt time.Duration
	// Quiet is how long it is watched that something does not happen; by default 250 ms, and 100 ms with -test.short.
	Quiet time.Duration
	// Grace is how late a call may return whose time is over; by default 2 s.
	Grace time.Duration
}

// kit is a harness at work.
type kit struct {
	Harness
	d *driver.Driver
	f driver.Features

	numbers *numbers // nil where bodies may be any bytes
}

type test struct {
	name string
	run  func(t *testing.T, k *kit)
}

// bounded is h with a bound for each that it leaves open.
func bounded(h Harness) Harness {
	h.Patience = cmp.Or(h.Patience, time.Minute)
	h.Prompt = cmp.Or(h.Prompt, 5*time.Millisecond)
	quiet := 250 * time.Millisecond
	if testing.Short() {
		quiet = 100 * time.Millisecond
	}
	h.Quiet = cmp.Or(h.Quiet, quiet)
	h.Grace = cmp.Or(h.Grace, 2*time.Second)
	return h
}

// Run runs the kit as subtests named group/test. The tests of messages are repeated, named profile/group/test, with each profile that changes a default of the
// driver. With -test.short the profile throughput and the tests that compare times are left out.
func Run(t *testing.T, h Harness) {
	if h.URL == "" {
		required := strings.Split(os.Getenv("BROKER_REQUIRE"), ",")
		if slices.Contains(required, h.Driver) || slices.Contains(required, "all") {
			t.Fatalf("no URL for %s, which BROKER_REQUIRE asks for", h.Driver)
		}
		t.Skipf("no URL for %s", h.Driver)
	}
	address, err := driver.ParseURL(h.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	if address.Driver.Name != h.Driver {
		t.Fatalf("the URL is one of driver %q, not %q", address.Driver.Name, h.Driver)
	}
	h = bounded(h)
	k := &kit{Harness: h, d: address.Driver, f: address.Driver.Features}
	if h.Numbers {
		k.numbers = &numbers{of: map[string]int{}}
	}
	if k.onlySends() && h.Stored == nil {
		t.Fatalf("%s only sends: Harness.Stored is needed, to read what it has sent", h.Driver)
	}
	outcome := &Outcome{Driver: h.Driver, On: h.On, NotProven: []string{}}
	for _, g := range groups {
		g.run(t, k, outcome)
	}
	for _, profile := range k.profiles() {
		t.Run(string(profile), func(t *testing.T) {
			k := *k
			k.URL = withOption(k.URL, "profile", string(profile))
			for _, g := range groups {
				if g.profiled {
					g.run(t, &k, nil)
				}
			}
		})
	}
	outcome.write(t)
}

// group is some tests of one kind.
type group struct {
	name     string
	tests    []test
	profiled bool // they are about messages, whose fate a profile may change
	consumes bool // they are about consumers, which a driver that only sends has none of
}

var groups = []group{
	{name: "Lifecycle", tests: lifecycle},
	{name: "Publish", tests: publish, profiled: true},
	{name: "Consume", tests: consume, profiled: true, consumes: true},
	{name: "Order", tests: order, profiled: true, consumes: true},
	{name: "Settle", tests: settle, profiled: true, consumes: true},
	{name: "Request", tests: request, consumes: true},
	{name: "Errors", tests: failures},
	{name: "Reconnect", tests: reconnect},
	{name: "Measure", tests: measure},
}

func (g group) run(t *testing.T, k *kit, outcome *Outcome) {
	t.Run(g.name, func(t *testing.T) {
		for _, c := range g.tests {
			t.Run(c.name, func(t *testing.T) {
				if outcome != nil {
					defer outcome.note(t, g.name+"/"+c.name)
				}
				if g.consumes {
					k.consumes(t)
				}
				c.run(t, k)
			})
		}
	})
}

// profiles are those that change a default, where the URL names none.
func (k *kit) profiles() (all []driver.Profile) {
	if strings.Contains(k.URL, "profile=") {
		return nil
	}
	candidates := []driver.Profile{driver.Durable, driver.Throughput}
	if testing.Short() {
		candidates = candidates[:1]
	}
	for _, p := range candidates {
		if slices.ContainsFunc(k.d.Options, func(o driver.Option) bool { _, ok := o.Profile[p]; return ok }) {
			all = append(all, p)
		}
	}
	return all
}

func withOption(url, name, value string) string {
	if strings.Contains(url, "?") {
		return url + "&" + name + "=" + value
	}
	return url + "?" + name + "=" + value
}

// claimed skips the test where the driver does not claim what it proves.
func claimed(t *testing.T, claim bool, what string) {
	t.Helper()
	if !claim {
		t.Skipf("not claimed: %s", what)
	}
}

// single skips the test where messages go in batches, and it counts single ones.
func (k *kit) single(t *testing.T) {
	t.Helper()
	if k.Batches && strings.Contains(k.URL, "profile="+string(driver.Throughput)) {
		notProven(t, "the broker delivers and counts batches")
	}
}

// timed skips a test that compares times with -test.short: it needs an idle machine.
func timed(t *testing.T) {
	t.Helper()
	if testing.Short() {
		notProven(t, "part of make test-full")
	}
}

// onlySends reports whether the driver has no consumers.
func (k *kit) onlySends() bool { return k.f.Start == 0 }

// consumes skips the test where the driver has no consumers.
func (k *kit) consumes(t *testing.T) {
	t.Helper()
	claimed(t, !k.onlySends(), "consumers")
}

// context ends with the kit's patience.
func (k *kit) context(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), k.Patience)
	t.Cleanup(cancel)
	return ctx
}

// within fails the test where f is not back in time: a call that hangs must not hang the kit. The grace is for calls that end with a context of the
// kit's patience.
func (k *kit) within(t testing.TB, what string, f func()) {
	t.Helper()
	back := make(chan struct{})
	go func() { defer close(back); f() }()
	select {
	case <-back:
	case <-time.After(k.Patience + 2*k.Grace):
		t.Fatalf("%s has not returned", what)
	}
}

// open connects to the server.
func (k *kit) open(t testing.TB) driver.Conn {
	t.Helper()
	return k.openAt(t, k.URL)
}

func (k *kit) openAt(t testing.TB, url string) driver.Conn {
	t.Helper()
	c, err := k.dial(t, k.context(t), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { k.close(t, "connection", c) })
	return c
}

// dial connects as the engine does, and returns the error.
func (k *kit) dial(t testing.TB, ctx context.Context, url string) (c driver.Conn, err error) {
	t.Helper()
	address, err := driver.ParseURL(url, nil)
	if err != nil {
		t.Fatal(err)
	}
	k.within(t, "Open", func() { c, err = address.Open(ctx, "drivertest") })
	return c, err
}

// options are the defaults of a scope, with what the URL sets.
func (k *kit) options(t testing.TB, scope driver.Scope) driver.Values {
	t.Helper()
	address, err := driver.ParseURL(k.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	values, err := address.Resolve(scope, nil)
	if err != nil {
		t.Fatal(err)
	}
	return values
}

type closer interface {
	Close(ctx context.Context) error
}

// close closes and accepts that it was closed before.
func (k *kit) close(t testing.TB, what string, c closer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), k.Patience)
	defer cancel()
	var err error
	k.within(t, "Close of the "+what, func() { err = c.Close(ctx) })
	if err != nil && !errors.Is(err, driver.ErrClosed) {
		t.Errorf("Close of the %s: %v", what, err)
	}
}

// unique is a name that no other test has.
func unique() string { return fmt.Sprintf("kit%012x", rand.Uint64()>>16) } //gosec:disable G404 -- a name, no secret

// topic makes a topic of one partition.
func (k *kit) topic(t testing.TB, c driver.Conn) string {
	t.Helper()
	return k.partitioned(t, c, 1)
}

// partitioned makes a topic of several partitions, where the broker has them.
func (k *kit) partitioned(t testing.TB, c driver.Conn, partitions int) string {
	t.Helper()
	if k.Topic != nil {
		return k.Topic(t, c)
	}
	name := unique()
	admin, ok := c.(driver.Admin)
	if !ok {
		return name
	}
	k.create(t, admin, name, partitions)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), k.Patience)
		defer cancel()
		if err := admin.DeleteTopic(ctx, name); err != nil && k.d.KindOf(err) != driver.NotFound {
			t.Errorf("DeleteTopic: %v", err)
		}
	})
	return name
}

func (k *kit) create(t testing.TB, admin driver.Admin, name string, partitions int) {
	t.Helper()
	spec := driver.TopicSpec{Name: name, Partitions: partitions, Replicas: 1, Options: k.options(t, driver.OnTopic)}
	if err := admin.CreateTopic(k.context(t), spec); err != nil {
		t.Fatalf("CreateTopic: %v", err)
	}
}

// group names a group of the topic, or none where the driver has no groups.
func (k *kit) group(topic, name string) string {
	if !k.f.Groups {
		return ""
	}
	return topic + "-" + name
}

// start is where a consumer begins that shall at least see what comes after it.
func (k *kit) start() driver.Start {
	if k.f.Start.Has(driver.StartNew) {
		return driver.StartNew
	}
	return driver.StartEarliest
}

// kept reports whether messages wait for a consumer that is not there.
func (k *kit) kept() bool { return k.f.Deliver == driver.AtLeastOnce || k.onlySends() }

// shared reports whether the consumers of the kit's usual group share its messages.
func (k *kit) shared() bool { return k.f.Groups || !k.f.Fanout }

// confirmed reports whether a nil error in a Done proves that the broker has the message.
func (k *kit) confirmed() bool { return k.f.Confirm != driver.Unconfirmed }
