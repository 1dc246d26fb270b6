package drivertest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/proxy"
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
	unproven bool         // the test was skipped because means were missing
	hung     *atomic.Bool // a call does not return, and the test has ended without it
}

func newKit(t *testing.T, h Harness) *kit {
	address, err := driver.ParseURL(h.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	h.Timeout = cmp.Or(h.Timeout, time.Minute)
	h.Prompt = cmp.Or(h.Prompt, 5*time.Millisecond)
	k := &kit{Harness: h, address: address, d: address.Driver, f: address.Driver.Features}
	return k.with(t)
}

// with returns the kit for another test.
func (k *kit) with(t *testing.T) *kit {
	other := *k
	other.T, other.hung = t, &atomic.Bool{}
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
		k.exitIfHung()
		k.Skipf("not claimed: %s", feature)
	}
}

// needs skips the test if its means are missing.
func (k *kit) needs(ok bool, means string) {
	k.Helper()
	if !ok {
		k.exitIfHung()
		k.unproven = true
		k.Skipf("not proven without %s", means)
	}
}

// single reports whether the broker delivers and counts single messages.
func (k *kit) single() bool { return !k.Batches || !strings.Contains(k.URL, "profile=throughput") }

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
		k.hung.Store(true)
		stacks := make([]byte, 1<<20)
		k.Fatalf("a call does not return:\n%s", stacks[:runtime.Stack(stacks, true)])
	}
}

// exitIfHung ends a goroutine whose test has ended without it.
func (k *kit) exitIfHung() {
	if k.hung.Load() {
		runtime.Goexit()
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
	k.noError("Open", err)
	k.Cleanup(func() { k.close(c) })
	return c
}

// dial connects as the engine does.
func (k *kit) dial(ctx context.Context, url string) (driver.Conn, error) {
	address, err := driver.ParseURL(url, nil)
	k.noError("URL", err)
	return address.Open(ctx, "drivertest")
}

// openError opens a URL that must fail and returns the error.
func (k *kit) openError(ctx context.Context, url string) error {
	k.Helper()
	c, err := k.dial(ctx, url)
	if err == nil {
		k.close(c)
	}
	k.must(err != nil, "Open succeeded without a server")
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
	k.check(err == nil || errors.Is(err, driver.ErrClosed), "Close of %T: %v", c, err)
}

// options returns the defaults of a scope with the options of the URL.
func (k *kit) options(scope driver.Scope) driver.Values {
	values, err := k.address.Resolve(scope, nil)
	k.noError("options", err)
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
		err := admin.DeleteTopic(ctx, name)
		k.check(err == nil || k.d.KindOf(err) == driver.NotFound, "DeleteTopic: %v", err)
	})
	return name
}

func (k *kit) create(admin driver.Admin, name string, partitions int) {
	spec := driver.TopicSpec{Name: name, Partitions: partitions, Replicas: 1, Options: k.options(driver.OnTopic)}
	k.noError("CreateTopic", admin.CreateTopic(k.Context(), spec))
}

// host returns the host:port of the harness's URL, or "" if it has not exactly one.
func (k *kit) host() string {
	u, err := url.Parse(k.URL)
	if err != nil || u.Port() == "" || strings.Contains(u.Host, ",") {
		return ""
	}
	return u.Host
}

// at returns the harness's URL with another host:port.
func (k *kit) at(host string) string {
	k.needs(k.host() != "", "a single host and port in the URL")
	return strings.Replace(k.URL, k.host(), host, 1)
}

// proxied starts a proxy in front of the server and returns the URL that leads through it.
func (k *kit) proxied() (string, *proxy.Proxy) {
	k.needs(!k.NoProxy && k.host() != "", "a proxy in front of this server")
	p, err := proxy.Listen(k.host())
	k.noError("proxy", err)
	k.Cleanup(func() { k.noError("proxy", p.Close()) })
	return k.at(p.Addr()), p
}

// freezer returns the URL of a server and a function that freezes it, at most until the test ends.
func (k *kit) freezer() (url string, freeze func() (thaw func())) {
	url = k.URL
	stop := k.Freeze
	if stop == nil {
		var p *proxy.Proxy
		url, p = k.proxied()
		stop = func(testing.TB) func() {
			p.Freeze()
			return p.Thaw
		}
	}
	return url, func() func() {
		thaw := sync.OnceFunc(stop(k.T))
		k.Cleanup(thaw)
		return thaw
	}
}

// cutter returns the URL of a server and a function that breaks its connections.
func (k *kit) cutter() (url string, cut func()) {
	if k.Cut != nil {
		return k.URL, func() { k.Cut(k.T) }
	}
	url, p := k.proxied()
	return url, p.Cut
}

// listen accepts connections at a loopback port, in the kernel, and never answers.
func (k *kit) listen() net.Listener {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	k.noError("listen", err)
	k.Cleanup(func() { _ = l.Close() })
	return l
}

// closedPort returns a loopback address without a listener.
func (k *kit) closedPort() string {
	l := k.listen()
	_ = l.Close()
	return l.Addr().String()
}

// check fails the test if ok is false.
func (k *kit) check(ok bool, format string, args ...any) {
	k.Helper()
	if !ok {
		k.exitIfHung()
		k.Errorf(format, args...)
	}
}

// must stops the test if ok is false.
func (k *kit) must(ok bool, format string, args ...any) {
	k.Helper()
	k.check(ok, format, args...)
	if !ok {
		k.FailNow()
	}
}

// noError stops the test if a call failed.
func (k *kit) noError(call string, err error) {
	k.Helper()
	k.must(err == nil, "%s: %v", call, err)
}

// same fails the test if the messages got are not the messages wanted, in any order.
func (k *kit) same(got, want driver.Batch) {
	k.Helper()
	left := map[string]int{}
	for _, m := range want {
		left[string(m.Body)]++
	}
	var missing, unexpected []string
	for _, m := range got {
		body := string(m.Body)
		left[body]--
		if left[body] < 0 {
			unexpected = append(unexpected, body)
		}
	}
	for body, n := range left {
		if n > 0 {
			missing = append(missing, body)
		}
	}
	k.check(len(missing)+len(unexpected) == 0, "of %d messages, missing: %d %s; unexpected: %d %s",
		len(want), len(missing), excerpt(missing), len(unexpected), excerpt(unexpected))
}

func excerpt(bodies []string) string {
	return fmt.Sprintf("%.60q", bodies[:min(len(bodies), 3)])
}

// is fails the test if the error is not the target.
func (k *kit) is(err, target error) {
	k.Helper()
	k.check(errors.Is(err, target), "the error is %v, want %v", err, target)
}

// kind fails the test if there is no error or one of another kind.
func (k *kit) kind(err error, kinds ...driver.Kind) {
	k.Helper()
	valid := err != nil && slices.Contains(kinds, k.d.KindOf(err))
	k.check(valid, "the error is %v, of kind %v, want kind %v", err, k.d.KindOf(err), kinds)
}
