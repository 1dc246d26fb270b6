package drivertest

import (
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/proxy"
)

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
	if k.host() == "" {
		k.notProven("the URL has no single host and port")
	}
	return strings.Replace(k.URL, k.host(), host, 1)
}

// proxied starts a proxy in front of the server and returns the URL that leads through it.
func (k *kit) proxied() (string, *proxy.Proxy) {
	if k.NoProxy || k.host() == "" {
		k.notProven("no proxy can stand in front of this server")
	}
	p, err := proxy.Listen(k.host())
	if err != nil {
		k.Fatal(err)
	}
	k.Cleanup(func() {
		if err := p.Close(); err != nil {
			k.Error(err)
		}
	})
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
	if err != nil {
		k.Fatal(err)
	}
	k.Cleanup(func() { _ = l.Close() })
	return l
}

// closedPort returns a loopback address without a listener.
func (k *kit) closedPort() string {
	l := k.listen()
	_ = l.Close()
	return l.Addr().String()
}
