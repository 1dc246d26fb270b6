package drivertest

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

var failures = []test{
	{"unreachable is of kind disconnected", kindUnreachable},
	{"another protocol is named", strangers},
	{"no password in an error", password},
	{"no secret option in an error", secrets},
	{"create, delete and not found", topics},
	{"purge", purge},
	{"backlog of an absent topic", backlogAbsent},
}

// failing opens a URL on which nothing listens and gives the error.
func (k *kit) failing(t *testing.T, change func(*url.URL)) error {
	t.Helper()
	if k.host() == "" {
		notProven(t, "the URL has no single host and port")
	}
	u, err := url.Parse(k.at(closedPort(t)))
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(u)
	}
	c, err := k.dial(t, k.context(t), u.String())
	if err == nil {
		k.close(t, "connection", c)
		t.Fatal("Open succeeded without a server")
	}
	return err
}

func kindUnreachable(t *testing.T, k *kit) {
	err := k.failing(t, nil)
	if kind := k.d.KindOf(err); kind != driver.Disconnected {
		t.Errorf("nothing listens: kind %s, want disconnected: %v", kind, err)
	}
}

// password looks into each wrapped error too, as a log may print any of them.
func password(t *testing.T, k *kit) {
	err := k.failing(t, func(u *url.URL) { u.User = url.UserPassword("user", "Pa55-of-the-kit") })
	for ; err != nil; err = errors.Unwrap(err) {
		if strings.Contains(err.Error(), "Pa55-of-the-kit") {
			t.Fatal("the error shows the URL's password")
		}
	}
}

func secrets(t *testing.T, k *kit) {
	tried := false
	for _, o := range k.d.Options {
		if !o.Secret || o.Scope&driver.OnConnect == 0 || o.Type != driver.String {
			continue
		}
		tried = true
		err := k.failing(t, func(u *url.URL) {
			q := u.Query()
			q.Set(o.Name, "5ecret-of-the-kit")
			u.RawQuery = q.Encode()
		})
		if strings.Contains(err.Error(), "5ecret-of-the-kit") {
			t.Errorf("the error shows the option %q", o.Name)
		}
	}
	claimed(t, tried, "secret options")
}

// admin is the connection's Admin, where it has one: to be one is the claim, made where the driver's code says so (var _ driver.Admin = &conn{}), so that
// the compiler holds it to that. What else claims it the test "claims have their verbs" looks at.
func (k *kit) admin(t *testing.T) (driver.Conn, driver.Admin) {
	t.Helper()
	c := k.open(t)
	a, ok := c.(driver.Admin)
	claimed(t, ok, "topics are managed")
	return c, a
}

func topics(t *testing.T, k *kit) {
	_, a := k.admin(t)
	name := unique()
	absent := func(when string) {
		t.Helper()
		if err := a.DeleteTopic(k.context(t), name); k.d.KindOf(err) != driver.NotFound || err == nil {
			t.Errorf("DeleteTopic of a topic %s: %v, want kind not_found", when, err)
		}
	}
	absent("that never was")
	k.create(t, a, name, 1)
	k.create(t, a, name, 1)
	if err := a.DeleteTopic(k.context(t), name); err != nil {
		t.Errorf("DeleteTopic: %v", err)
	}
	absent("that was deleted")
}

func purge(t *testing.T, k *kit) {
	c, a := k.admin(t)
	topic := k.topic(t, c)
	r, p := k.consumer(t, c, topic), k.producer(t, c, topic)
	p.send(t, messages("acked", 5))
	r.finish(t, 5)
	k.close(t, "consumer", r) // so that nothing is prefetched, which no purge can reach
	p.send(t, messages("purged", 20))
	switch err := a.PurgeTopic(k.context(t), topic); {
	case errors.Is(err, errors.ErrUnsupported):
		t.Skipf("not claimed: %v", err)
	case err != nil:
		t.Fatalf("PurgeTopic: %v", err)
	}
	p.send(t, messages("after", 5))
	if !k.onlySends() && !k.f.Start.Has(driver.StartEarliest) {
		notProven(t, "nothing before a new consumer can be seen")
	}
	again := k.consumerFrom(t, c, topic, driver.StartEarliest)
	same(t, "sent after the topic was purged", bodies(again.finish(t, 5)), bodies(messages("after", 5)))
	again.nothing(t, "the topic was purged")
	if err := a.PurgeTopic(k.context(t), unique()); k.d.KindOf(err) != driver.NotFound || err == nil {
		t.Errorf("PurgeTopic of a topic that does not exist: %v, want kind not_found", err)
	}
}

func backlogAbsent(t *testing.T, k *kit) {
	c, _ := k.admin(t)
	teller, ok := c.(driver.Backlogger)
	claimed(t, ok, "backlog")
	topic := unique()
	if _, err := teller.Backlog(k.context(t), topic, k.group(topic, "group")); k.d.KindOf(err) != driver.NotFound || err == nil {
		t.Errorf("Backlog of a topic that does not exist: %v, want kind not_found", err)
	}
}
