package drivertest

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// Harness describes a driver and its server to the kit.
type Harness struct {
	// Driver is the registered name. The kit reads the Features from the registry.
	Driver string
	// URL is the URL of the server. If it is empty the tests are skipped, or fail if the driver is
	// in BROKER_REQUIRE, a comma-separated list or "all".
	URL string
	// On names the server in the documents if it is not the usual one, such as "Artemis".
	On string
	// Topic makes a topic and returns its name. By default the name is unique, and the topic is
	// created and deleted if the connection is an Admin.
	Topic func(t testing.TB, c driver.Conn) string
	// Freeze stops the server until thaw is called and keeps its connections. By default a TCP
	// proxy in front of the server does it, if the URL has one host:port.
	Freeze func(t testing.TB) (thaw func())
	// Cut breaks every connection to the server. By default the proxy does it.
	Cut func(t testing.TB)
	// NoProxy is set if clients connect to the address that the server advertises.
	NoProxy bool
	// Stored reads all messages of a topic from the server: Key, Headers and Body, in any order,
	// from any goroutine. A driver that only sends needs it.
	Stored func(t testing.TB, topic string) []driver.Message
	// Numbers is set if a body must be the text of a number. The kit sends a number in place of
	// each body.
	Numbers bool
	// HeaderBytes is set if the values of headers may hold any byte.
	HeaderBytes bool
	// Batches is set if the broker delivers a batch of profile throughput as one message.
	Batches bool
	// SettleUnconfirmed is set if this server refuses to confirm settlements.
	SettleUnconfirmed bool
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

// group is a list of tests about one subject.
type group struct {
	name     string
	tests    []test
	profiled bool // the tests are repeated with each profile
	consumes bool // the tests need consumers
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
	if k.d.Name != h.Driver {
		t.Fatalf("the URL is for driver %q, not %q", k.d.Name, h.Driver)
	}
	if k.onlySends() && h.Stored == nil {
		t.Fatalf("%s only sends: set Harness.Stored", h.Driver)
	}
	outcome := &Outcome{Driver: h.Driver, On: h.On, NotProven: []string{}}
	for _, g := range groups {
		g.run(k, outcome)
	}
	for _, profile := range k.profiles() {
		profiled := h
		profiled.URL = withOption(h.URL, "profile", string(profile))
		t.Run(string(profile), func(t *testing.T) {
			k := newKit(t, profiled)
			for _, g := range groups {
				if g.profiled {
					g.run(k, &Outcome{})
				}
			}
		})
	}
	outcome.write(t)
}

// run runs the tests and counts them in the outcome.
func (g group) run(k *kit, outcome *Outcome) {
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

// profiles returns the profiles that change an option, or none if the URL has a profile.
func (k *kit) profiles() []driver.Profile {
	if strings.Contains(k.URL, "profile=") {
		return nil
	}
	profiles := []driver.Profile{driver.Durable}
	if !testing.Short() {
		profiles = append(profiles, driver.Throughput)
	}
	return slices.DeleteFunc(profiles, func(p driver.Profile) bool {
		return !slices.ContainsFunc(k.d.Options, func(o driver.Option) bool {
			_, ok := o.Profile[p]
			return ok
		})
	})
}
