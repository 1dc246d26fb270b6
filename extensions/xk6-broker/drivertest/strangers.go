package drivertest

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// Strangers proves that a driver names another protocol at its server's port, without waiting for
// more. It needs no server: url is one of the driver's, with one host:port. [Run] does it too.
func Strangers(t *testing.T, url string) {
	t.Helper()
	k := newKit(t, Harness{URL: url})
	if k.host() == "" {
		t.Fatal("the URL has no single host and port")
	}
	strangers(k)
}

func strangers(k *kit) {
	k.dialer(k.at("broker.invalid:7"), "broker.invalid:7")
	web := httptest.NewServer(http.NotFoundHandler())
	k.Cleanup(web.Close)
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	k.Cleanup(secure.Close)
	mail := k.mailServer()

	k.stranger("a web server", k.at(web.Listener.Addr().String()), "")
	k.stranger("a server that greets", k.at(mail), "")
	if _, networked := k.d.Option("tls"); !networked {
		return
	}
	tls := func(url string) string { return withOption(url, "tls", "true") }
	insecure := withOption(k.at(secure.Listener.Addr().String()), "tlsInsecure", "true")
	k.stranger("TLS where none is asked for", k.at(secure.Listener.Addr().String()), `set option "tls"`)
	k.stranger("a web server and no TLS", tls(k.at(web.Listener.Addr().String())), "")
	k.stranger("a server that greets and no TLS", tls(k.at(mail)), "")
	k.stranger("a web server by TLS", insecure, "")
}

// dialer connects by a dialer that refuses. The driver must ask it for the URL's host by name.
func (k *kit) dialer(url, host string) {
	address, err := driver.ParseURL(withOption(url, "connectTimeout", "1s"), nil)
	if err != nil {
		k.Fatal(err)
	}
	var mu sync.Mutex
	asked := ""
	network := &driver.Network{Dial: func(_ context.Context, _, address string) (net.Conn, error) {
		mu.Lock()
		defer mu.Unlock()
		asked = address
		return nil, io.ErrUnexpectedEOF
	}}
	_, err = address.OpenThrough(k.Context(), network, "drivertest")
	if k.d.OwnDialer {
		k.unsupported("a dialer", err)
		return
	}
	mu.Lock()
	defer mu.Unlock()
	if asked != host || err == nil {
		k.Errorf("the dialer was asked for %q, want %q: %v", asked, host, err)
	}
}

// stranger connects to a server of another protocol. The error must come before connectTimeout and
// contain a text.
func (k *kit) stranger(server, url, text string) {
	k.Helper()
	url = withOption(url, "connectTimeout", (2 * k.Timeout).String())
	err := k.openError(k.limit(k.Timeout), url)
	named := errors.As(err, new(*driver.ProtocolError))
	if !named || k.d.KindOf(err) != driver.Unsupported || !strings.Contains(err.Error(), text) {
		k.Errorf("%s: kind %s, want a ProtocolError with %q: %v", server, k.d.KindOf(err), text, err)
	}
}

// mailServer greets as mail servers do.
func (k *kit) mailServer() (host string) {
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
	return l.Addr().String()
}
