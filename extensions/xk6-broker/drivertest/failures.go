package drivertest

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

var failures = []test{
	{"unreachable is of kind disconnected", func(k *kit) {
		k.kind(k.openError(k.Context(), k.at(k.closedPort())), driver.Disconnected)
	}},
	{"another protocol is refused", strangers},
	// A log may print each wrapped error.
	{"no password in an error", func(k *kit) {
		u, err := url.Parse(k.at(k.closedPort()))
		k.noError("URL", err)
		u.User = url.UserPassword("user", "Pa55-of-the-kit")
		for err := k.openError(k.Context(), u.String()); err != nil; err = errors.Unwrap(err) {
			k.must(!strings.Contains(err.Error(), "Pa55-of-the-kit"), "the error shows the URL's password")
		}
	}},
	{"no secret option in an error", func(k *kit) {
		tested := false
		for _, o := range k.d.Options {
			if !o.Secret || o.Scope&driver.OnConnect == 0 || o.Type != driver.String {
				continue
			}
			tested = true
			err := k.openError(k.Context(), withOption(k.at(k.closedPort()), o.Name, "5ecret-of-the-kit"))
			k.check(!strings.Contains(err.Error(), "5ecret-of-the-kit"), "the error shows the option %q", o.Name)
		}
		k.claims(tested, "secret options")
	}},
	{"create, delete and not found", func(k *kit) {
		_, a := k.admin()
		name := unique()
		k.kind(a.DeleteTopic(k.Context(), name), driver.NotFound)
		k.create(a, name, 1)
		k.create(a, name, 1)
		k.noError("DeleteTopic", a.DeleteTopic(k.Context(), name))
		k.kind(a.DeleteTopic(k.Context(), name), driver.NotFound)
	}},
	// Closes the consumer first, because no purge reaches prefetched messages.
	{"purge", func(k *kit) {
		_, a := k.admin()
		f := k.flow()
		f.r.finishes(f.send("acked", 5))
		k.close(f.r)
		f.send("purged", 20)
		err := a.PurgeTopic(k.Context(), f.topic)
		k.claims(!errors.Is(err, errors.ErrUnsupported), "purge")
		k.noError("PurgeTopic", err)
		b := f.send("after", 5)
		k.needs(k.onlySends() || k.f.Start.Has(driver.StartEarliest), "consumers that see earlier messages")
		config := k.usual(f.topic)
		config.Start = driver.StartEarliest
		again := k.consumerWith(f.conn, config)
		again.finishes(b)
		again.nothing(quiet())
		k.kind(a.PurgeTopic(k.Context(), unique()), driver.NotFound)
	}},
	{"backlog of an absent topic", func(k *kit) {
		c, _ := k.admin()
		backlogger, ok := c.(driver.Backlogger)
		k.claims(ok, "backlog")
		config := k.usual(unique())
		_, err := backlogger.Backlog(k.Context(), config.Topic, config.Group)
		k.kind(err, driver.NotFound)
	}},
}

// admin returns a connection that is an Admin. The interface itself is the claim.
func (k *kit) admin() (driver.Conn, driver.Admin) {
	c := k.open()
	a, ok := c.(driver.Admin)
	k.claims(ok, "topics are managed")
	return c, a
}

// Strangers proves that a driver refuses a server of another protocol. It needs no server:
// url is one of the driver's, with one host:port. [Run] does it too.
func Strangers(t *testing.T, url string) {
	t.Helper()
	k := newKit(t, Harness{URL: url})
	k.must(k.host() != "", "the URL has no single host and port")
	strangers(k)
}

func strangers(k *kit) {
	k.dialer("broker.invalid:7")
	web := httptest.NewServer(http.NotFoundHandler())
	k.Cleanup(web.Close)
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	k.Cleanup(secure.Close)
	plainURL, tlsURL, mailURL := k.at(web.Listener.Addr().String()), k.at(secure.Listener.Addr().String()), k.mail()
	k.stranger("a web server", plainURL)
	k.stranger("a server that greets", mailURL)
	if _, networked := k.d.Option("tls"); networked {
		k.stranger("TLS where none is asked for", tlsURL)
		k.stranger("a web server and no TLS", withOption(plainURL, "tls", "true"))
		k.stranger("a server that greets and no TLS", withOption(mailURL, "tls", "true"))
		k.stranger("a web server by TLS", withOption(tlsURL, "tlsInsecure", "true"))
	}
}

// dialer connects by a dialer that refuses. The driver must ask it for the URL's host by name.
func (k *kit) dialer(host string) {
	address, err := driver.ParseURL(withOption(k.at(host), "connectTimeout", "1s"), nil)
	k.noError("URL", err)
	var asked sync.Map
	network := &driver.Network{Dial: func(_ context.Context, _, address string) (net.Conn, error) {
		asked.Store(address, true)
		return nil, io.ErrUnexpectedEOF
	}}
	_, err = address.OpenThrough(k.Context(), network, "drivertest")
	if k.d.OwnDialer {
		k.is(err, errors.ErrUnsupported)
		return
	}
	_, ok := asked.Load(host)
	k.check(ok && err != nil, "the dialer was asked for %s: %t, want true; error: %v", host, ok, err)
}

// stranger connects to a server of another protocol, which must fail before ctx ends.
func (k *kit) stranger(server, url string) {
	ctx := k.limit(k.Timeout)
	err := k.openError(ctx, withOption(url, "connectTimeout", "3s"))
	k.check(ctx.Err() == nil, "%s: Open did not return within its connectTimeout: %v", server, err)
}

// mail returns the URL of a server that greets as mail servers do.
func (k *kit) mail() (url string) {
	l := k.listen()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			k.Cleanup(func() { _ = c.Close() })
			_, _ = io.WriteString(c, "220 mail.example ESMTP\r\n")
		}
	}()
	return k.at(l.Addr().String())
}
