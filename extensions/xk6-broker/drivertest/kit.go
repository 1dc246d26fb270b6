package drivertest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// grace is how late a call may return after its context has ended.
const grace = 2 * time.Second

// kit is a harness in one test. The context of the test is the context of calls that must succeed.
type kit struct {
	*testing.T
	Harness
	address  *driver.Address
	d        *driver.Driver
	f        driver.Features
	unproven bool // the test was skipped because means were missing
}

func newKit(t *testing.T, h Harness) *kit {
	address, err := driver.ParseURL(h.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	h.Timeout = cmp.Or(h.Timeout, time.Minute)
	h.Prompt = cmp.Or(h.Prompt, 5*time.Millisecond)
	return &kit{T: t, Harness: h, address: address, d: address.Driver, f: address.Driver.Features}
}

// with returns the kit for another test.
func (k *kit) with(t *testing.T) *kit {
	other := *k
	other.T = t
	return &other
}

func withOption(url, name, value string) string {
	if strings.Contains(url, "?") {
		return url + "&" + name + "=" + value
	}
	return url + "?" + name + "=" + value
}

// claims skips the test if the driver does not claim the feature.
func (k *kit) claims(claim bool, feature string) {
	k.Helper()
	if !claim {
		k.Skipf("not claimed: %s", feature)
	}
}

// notProven skips the test because means are missing.
func (k *kit) notProven(why string) {
	k.Helper()
	k.unproven = true
	k.Skip("not proven: " + why)
}

// single skips the test if the broker counts batches, not messages.
func (k *kit) single() {
	if k.Batches && strings.Contains(k.URL, "profile="+string(driver.Throughput)) {
		k.notProven("the broker delivers and counts batches")
	}
}

// timed skips a test that compares times with -test.short: it needs an idle machine.
func (k *kit) timed() {
	if testing.Short() {
		k.notProven("part of make test-full")
	}
}

// onlySends reports whether the driver has no consumers.
func (k *kit) onlySends() bool { return k.f.Start == 0 }

// kept reports whether messages wait for a consumer that is not there.
func (k *kit) kept() bool { return k.f.Deliver == driver.AtLeastOnce || k.onlySends() }

// shared reports whether the consumers of the kit's usual group share its messages.
func (k *kit) shared() bool { return k.f.Groups || !k.f.Fanout }

// acks reports whether consumers acknowledge messages.
func (k *kit) acks() bool { return k.f.Settle.Has(driver.Ack) }

// confirmed reports whether a nil error in a Done proves that the broker has the message.
func (k *kit) confirmed() bool { return k.f.Confirm != driver.Unconfirmed }

// quiet is how long the kit waits for an event that must not happen.
func quiet() time.Duration {
	if testing.Short() {
		return 100 * time.Millisecond
	}
	return 250 * time.Millisecond
}

// limit returns a context that ends after d.
func (k *kit) limit(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	k.Cleanup(cancel)
	return ctx
}

// watch calls f and fails the test if a call in it hangs, so that the kit does not hang.
func (k *kit) watch(f func()) {
	k.Helper()
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		f()
	}()
	select {
	case <-returned:
	case <-time.After(3*k.Timeout + 2*grace):
		stacks := make([]byte, 1<<20)
		k.Fatalf("a call does not return:\n%s", stacks[:runtime.Stack(stacks, true)])
	}
}

// eventually calls done until it returns true. It returns false after the timeout.
func (k *kit) eventually(done func() bool) bool {
	for end := time.Now().Add(k.Timeout); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if done() {
			return true
		}
	}
	return false
}

// open connects to the server.
func (k *kit) open() driver.Conn { return k.openAt(k.URL) }

func (k *kit) openAt(url string) driver.Conn {
	c, err := k.dial(k.Context(), url)
	if err != nil {
		k.Fatal(err)
	}
	k.Cleanup(func() { k.close(c) })
	return c
}

// dial connects as the engine does.
func (k *kit) dial(ctx context.Context, url string) (driver.Conn, error) {
	address, err := driver.ParseURL(url, nil)
	if err != nil {
		k.Fatal(err)
	}
	return address.Open(ctx, "drivertest")
}

// openError opens a URL that must fail and returns the error.
func (k *kit) openError(ctx context.Context, url string) error {
	k.Helper()
	c, err := k.dial(ctx, url)
	if err == nil {
		k.close(c)
		k.Fatal("Open succeeded without a server")
	}
	return err
}

type closer interface {
	Close(ctx context.Context) error
}

// close closes a connection, producer or consumer, which may be closed already.
func (k *kit) close(c closer) {
	k.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), k.Timeout)
	defer cancel()
	var err error
	k.watch(func() { err = c.Close(ctx) })
	if err != nil && !errors.Is(err, driver.ErrClosed) {
		k.Errorf("Close of %T: %v", c, err)
	}
}

// options returns the defaults of a scope with the options of the URL.
func (k *kit) options(scope driver.Scope) driver.Values {
	values, err := k.address.Resolve(scope, nil)
	if err != nil {
		k.Fatal(err)
	}
	return values
}

// unique returns a name that no other test has.
func unique() string { return fmt.Sprintf("kit%012x", rand.Uint64()>>16) } //gosec:disable G404 -- a name, no secret

// topic makes a topic with a number of partitions, if the broker has partitions.
func (k *kit) topic(c driver.Conn, partitions int) string {
	if k.Topic != nil {
		return k.Topic(k.T, c)
	}
	name := unique()
	admin, ok := c.(driver.Admin)
	if !ok {
		return name
	}
	k.create(admin, name, partitions)
	k.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), k.Timeout)
		defer cancel()
		if err := admin.DeleteTopic(ctx, name); err != nil && k.d.KindOf(err) != driver.NotFound {
			k.Errorf("DeleteTopic: %v", err)
		}
	})
	return name
}

func (k *kit) create(admin driver.Admin, name string, partitions int) {
	spec := driver.TopicSpec{Name: name, Partitions: partitions, Replicas: 1, Options: k.options(driver.OnTopic)}
	if err := admin.CreateTopic(k.Context(), spec); err != nil {
		k.Fatalf("CreateTopic: %v", err)
	}
}
