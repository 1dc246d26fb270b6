package drivertest

import (
	"errors"
	"net/url"
	"strings"

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

func kindUnreachable(k *kit) {
	k.kind(k.openError(k.Context(), k.at(k.closedPort())), driver.Disconnected)
}

// password looks into each wrapped error too, because a log may print any of them.
func password(k *kit) {
	u, err := url.Parse(k.at(k.closedPort()))
	if err != nil {
		k.Fatal(err)
	}
	u.User = url.UserPassword("user", "Pa55-of-the-kit")
	for err := k.openError(k.Context(), u.String()); err != nil; err = errors.Unwrap(err) {
		if strings.Contains(err.Error(), "Pa55-of-the-kit") {
			k.Fatal("the error shows the URL's password")
		}
	}
}

func secrets(k *kit) {
	tested := false
	for _, o := range k.d.Options {
		if !o.Secret || o.Scope&driver.OnConnect == 0 || o.Type != driver.String {
			continue
		}
		tested = true
		err := k.openError(k.Context(), withOption(k.at(k.closedPort()), o.Name, "5ecret-of-the-kit"))
		if strings.Contains(err.Error(), "5ecret-of-the-kit") {
			k.Errorf("the error shows the option %q", o.Name)
		}
	}
	k.claims(tested, "secret options")
}

// admin returns a connection that is an Admin. The interface itself is the claim.
func (k *kit) admin() (driver.Conn, driver.Admin) {
	c := k.open()
	a, ok := c.(driver.Admin)
	k.claims(ok, "topics are managed")
	return c, a
}

func topics(k *kit) {
	_, a := k.admin()
	name := unique()
	k.kind(a.DeleteTopic(k.Context(), name), driver.NotFound)
	k.create(a, name, 1)
	k.create(a, name, 1)
	if err := a.DeleteTopic(k.Context(), name); err != nil {
		k.Errorf("DeleteTopic: %v", err)
	}
	k.kind(a.DeleteTopic(k.Context(), name), driver.NotFound)
}

// purge closes the consumer first, because no purge reaches prefetched messages.
func purge(k *kit) {
	_, a := k.admin()
	f := k.flow()
	f.r.finishes(f.send("acked", 5))
	k.close(f.r)
	f.send("purged", 20)
	err := a.PurgeTopic(k.Context(), f.topic)
	k.claims(!errors.Is(err, errors.ErrUnsupported), "purge")
	if err != nil {
		k.Fatalf("PurgeTopic: %v", err)
	}
	b := f.send("after", 5)
	if !k.onlySends() && !k.f.Start.Has(driver.StartEarliest) {
		k.notProven("a new consumer does not see earlier messages")
	}
	config := k.usual(f.topic)
	config.Start = driver.StartEarliest
	again := k.consumerWith(f.conn, config)
	again.finishes(b)
	again.nothing(quiet())
	k.kind(a.PurgeTopic(k.Context(), unique()), driver.NotFound)
}

func backlogAbsent(k *kit) {
	c, _ := k.admin()
	backlogger, ok := c.(driver.Backlogger)
	k.claims(ok, "backlog")
	config := k.usual(unique())
	_, err := backlogger.Backlog(k.Context(), config.Topic, config.Group)
	k.kind(err, driver.NotFound)
}
