package drivertest

import (
	"net"
	"net/url"
	"strings"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/proxy"
)

// host is the one host:port of the harness's URL, or "".
func (k *kit) host() string {
	u, err := url.Parse(k.URL)
	if err != nil || u.Port() == "" || strings.Contains(u.Host, ",") {
		return ""
	}
	return u.Host
}

// at is the harness's URL with another host:port.
func (k *kit) at(host string) string {
	return strings.Replace(k.URL, k.host(), host, 1)
}

// proxied starts a proxy in front of the server and gives the URL that leads through it.
func (k *kit) proxied(t *testing.T) (string, *proxy.Proxy) {
	t.Helper()
	if k.NoProxy || k.host() == "" {
		notProven(t, "no proxy can stand in front of this server")
	}
	p, err := proxy.Listen(k.host())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return k.at(p.Addr()), p
}

// freezer gives the URL of a server that can be frozen, and what freezes it.
func (k *kit) freezer(t *testing.T) (url string, freeze func() (thaw func())) {
	t.Helper()
	if k.Freeze != nil {
		return k.URL, func() func() { return k.Freeze(t) }
	}
	url, p := k.proxied(t)
	return url, func() func() { p.Freeze(); return p.Thaw }
}

// cutter gives the URL of a server whose connections can be broken, and what breaks them.
func (k *kit) cutter(t *testing.T) (url string, cut func()) {
	t.Helper()
	if k.Cut != nil {
		return k.URL, func() { k.Cut(t) }
	}
	url, p := k.proxied(t)
	return url, p.Cut
}

// closedPort is a loopback address on which nothing listens.
func closedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}
