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

// Strangers proves that a driver tells what answers where its servers should, and is none of them, without waiting for more. It needs no server: url is
// one of the driver's, with one host:port, for which others stand in. [Run] does it too, where it has a server.
func Strangers(t *testing.T, url string) {
	t.Helper()
	address, err := driver.ParseURL(url, nil)
	if err != nil {
		t.Fatal(err)
	}
	k := &kit{Harness: bounded(Harness{URL: url}), d: address.Driver}
	if k.host() == "" {
		t.Fatal("the URL has no single host and port")
	}
	strangers(t, k)
}

func strangers(t *testing.T, k *kit) {
	if k.host() == "" {
		notProven(t, "the URL has no single host and port")
	}
	k.through(t)
	web := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(web.Close)
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	t.Cleanup(secure.Close)
	mail := mailServer(t)

	k.stranger(t, "a web server", web.Listener.Addr().String(), "", "")
	k.stranger(t, "a server that greets", mail, "", "")
	if _, networked := k.d.Option("tls"); networked {
		k.stranger(t, "TLS where none is asked for", secure.Listener.Addr().String(), "", `set option "tls"`)
		k.stranger(t, "a web server and no TLS", web.Listener.Addr().String(), "tls=true", "")
		k.stranger(t, "a server that greets and no TLS", mail, "tls=true", "")
		k.stranger(t, "a web server by TLS", secure.Listener.Addr().String(), "tlsInsecure=true", "")
	}
}

// through connects by a dialer that refuses: it must be asked for the URL's host by name, and nothing else may be dialed.
func (k *kit) through(t *testing.T) {
	t.Helper()
	const host = "broker.invalid:7"
	address, err := driver.ParseURL(withOption(k.at(host), "connectTimeout", "1s"), nil)
	if err != nil {
		t.Fatal(err)
	}
	asked := make(chan string, 1)
	network := &driver.Network{Dial: func(_ context.Context, _, address string) (net.Conn, error) {
		select {
		case asked <- address:
		default:
		}
		return nil, io.ErrUnexpectedEOF
	}}
	ctx, cancel := context.WithTimeout(context.Background(), k.Patience)
	defer cancel()
	_, err = address.OpenThrough(ctx, network, "drivertest")
	if k.d.OwnDialer {
		if !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("a dialer: %v, want it to be unsupported", err)
		}
		return
	}
	select {
	case got := <-asked:
		if got != host || err == nil {
			t.Errorf("the dialer was asked for %s, want %s: %v", got, host, err)
		}
	default:
		t.Errorf("the dialer was not asked: %v", err)
	}
}

// stranger connects to a server that is not one of the driver's.
func (k *kit) stranger(t *testing.T, who, host, option, says string) {
	t.Helper()
	url := withOption(k.at(host), "connectTimeout", "1s")
	if name, value, ok := strings.Cut(option, "="); ok {
		url = withOption(url, name, value)
	}
	ctx, cancel := context.WithTimeout(context.Background(), k.Patience)
	defer cancel()
	c, err := k.dial(t, ctx, url)
	switch {
	case err == nil:
		k.close(t, "connection", c)
		t.Errorf("%s: Open succeeded", who)
	case !errors.As(err, new(*driver.ProtocolError)) || k.d.KindOf(err) != driver.Unsupported || !strings.Contains(err.Error(), says):
		t.Errorf("%s: kind %s, want a ProtocolError that says %q: %v", who, k.d.KindOf(err), says, err)
	}
}

// mailServer greets as servers of mail do, and listens.
func mailServer(t *testing.T) (host string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	over, end := context.WithCancel(context.Background())
	var talks sync.WaitGroup
	t.Cleanup(func() { _ = l.Close(); end(); talks.Wait() })
	talks.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			talks.Go(func() {
				defer context.AfterFunc(over, func() { _ = c.Close() })()
				_, _ = io.WriteString(c, "220 mail.example ESMTP\r\n")
				_, _ = io.Copy(io.Discard, c)
				_ = c.Close()
			})
		}
	})
	return l.Addr().String()
}
