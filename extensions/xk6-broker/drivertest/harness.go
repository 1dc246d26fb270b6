// Package drivertest proves that a driver keeps the contract of package driver and its Features.
//
// A driver's test is a few lines:
//
//	func TestConformance(t *testing.T) {
//		drivertest.Run(t, drivertest.Harness{Driver: "nats", URL: os.Getenv("BROKER_URL_NATS")})
//	}
//
//	func TestStrangers(t *testing.T) { drivertest.Strangers(t, "nats://127.0.0.1:4222") } // needs no server
//
// A claimed feature must work on a real server. A feature that is not claimed must be refused with
// [errors.ErrUnsupported] or be absent. A test that needs a fault which the harness cannot cause is
// skipped as "not proven", never passed.
//
// No test asserts a short time of a single event. An event that must happen may take up to
// [Harness.Timeout], and bounds on latency are on the best of many messages.
package drivertest

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// Harness describes a driver and its server to the kit.
type Harness struct {
	Driver string // the registered name
	// URL is the URL of the server. If it is empty the tests are skipped, or fail if the driver is
	// in BROKER_REQUIRE, a comma-separated list or "all".
	URL string
	On  string // the server's name in the documents if it is not the usual one, such as "Artemis"
	// Topic makes a topic and returns its name. By default the name is unique, and the topic is
	// created and deleted if the connection is an Admin.
	Topic func(t testing.TB, c driver.Conn) string
	// Freeze stops the server until thaw is called and keeps its connections. By default a TCP
	// proxy in front of the server does it, if the URL has one host:port.
	Freeze func(t testing.TB) (thaw func())
	// Cut breaks every connection to the server. By default the proxy does it.
	Cut     func(t testing.TB)
	NoProxy bool // clients connect to the address that the server advertises
	// Stored reads all messages of a topic from the server: Key, Headers and Body, in any order,
	// from any goroutine. A driver that only sends needs it.
	Stored func(t testing.TB, topic string) []driver.Message

	Numbers           bool // a body must be the text of a number
	HeaderBytes       bool // the values of headers may hold any byte
	Batches           bool // the broker delivers a batch of profile throughput as one message
	SettleUnconfirmed bool // this server refuses to confirm settlements

	// Timeout bounds each event that must happen. The default is a minute.
	Timeout time.Duration
	// Prompt bounds the best latency of many single messages over loopback. The default is 5 ms.
	// It is not tested with -test.short.
	Prompt time.Duration
}

// test is one test of the kit.
type test struct {
	name string
	run  func(k *kit)
}

var groups = []struct {
	name     string
	tests    []test
	profiled bool // the tests are repeated with each profile
	consumes bool // the tests need consumers
}{
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

// Run runs the kit as subtests named group/test. The tests of messages are repeated, named
// profile/group/test, with each profile that changes an option of the driver. With -test.short
// profile throughput and the comparisons of times are left out.
func Run(t *testing.T, h Harness) {
	if h.URL == "" {
		required := strings.Split(os.Getenv("BROKER_REQUIRE"), ",")
		if slices.Contains(required, h.Driver) || slices.Contains(required, "all") {
			t.Fatalf("no URL for %s, which is in BROKER_REQUIRE", h.Driver)
		}
		t.Skipf("no URL for %s", h.Driver)
	}
	k := newKit(t, h)
	k.must(k.d.Name == h.Driver, "the URL is for driver %q, not %q", k.d.Name, h.Driver)
	k.must(!k.onlySends() || h.Stored != nil, "%s only sends: set Harness.Stored", h.Driver)
	outcome := &Outcome{Driver: h.Driver, On: h.On, NotProven: []string{}}
	k.runGroups(outcome, false)
	for _, profile := range k.profiles() {
		h.URL = withOption(k.URL, "profile", string(profile))
		t.Run(string(profile), func(t *testing.T) { newKit(t, h).runGroups(&Outcome{}, true) })
	}
	outcome.write(k)
}

// runGroups runs all groups, or the profiled ones only, and counts the tests.
func (k *kit) runGroups(outcome *Outcome, profiled bool) {
	for _, g := range groups {
		if profiled && !g.profiled {
			continue
		}
		k.Run(g.name, func(t *testing.T) {
			for _, c := range g.tests {
				t.Run(c.name, func(t *testing.T) {
					k := k.with(t)
					defer outcome.count(k, g.name+"/"+c.name)
					k.watch(func() {
						k.claims(!g.consumes || !k.onlySends(), "consumers")
						c.run(k)
					})
				})
			}
		})
	}
}

// profiles returns the profiles that change an option, or none if the URL has a profile.
func (k *kit) profiles() (profiles []driver.Profile) {
	if strings.Contains(k.URL, "profile=") {
		return nil
	}
	for _, p := range []driver.Profile{driver.Durable, driver.Throughput} {
		changes := func(o driver.Option) bool { return o.Profile[p] != "" }
		if slices.ContainsFunc(k.d.Options, changes) && !(testing.Short() && p == driver.Throughput) {
			profiles = append(profiles, p)
		}
	}
	return profiles
}

// Outcome counts the tests of one driver on one server. Run appends it, as a line of JSON, to the
// file that BROKER_CONFORMANCE names.
type Outcome struct {
	Driver     string   `json:"driver"`
	On         string   `json:"on,omitempty"` // see [Harness.On]
	Passed     int      `json:"passed"`
	Failed     int      `json:"failed"`
	NotClaimed int      `json:"notClaimed"` // skipped because the driver does not claim the feature
	NotProven  []string `json:"notProven"`  // tests that this server or machine has no means for
}

// count counts a test that has ended.
func (o *Outcome) count(k *kit, name string) {
	switch {
	case k.Failed():
		o.Failed++
	case k.unproven:
		o.NotProven = append(o.NotProven, name)
	case k.Skipped():
		o.NotClaimed++
	default:
		o.Passed++
	}
}

func (o *Outcome) write(k *kit) {
	path := os.Getenv("BROKER_CONFORMANCE")
	if path == "" {
		return
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644) //gosec:disable G302 G304 G703 -- a report
	k.noError("BROKER_CONFORMANCE", err)
	defer f.Close() //nolint:errcheck // the write is checked
	k.noError("BROKER_CONFORMANCE", json.NewEncoder(f).Encode(o))
}
