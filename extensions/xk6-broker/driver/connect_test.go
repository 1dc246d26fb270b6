package driver

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

func target(t *testing.T, url string, given map[string]any) Target {
	t.Helper()
	a, err := ParseURL(url, given)
	if err != nil {
		t.Fatal(err)
	}
	v, err := a.Resolve(OnConnect, nil)
	if err != nil {
		t.Fatal(err)
	}
	return Target{URL: a.url, Hosts: a.hosts, Options: v}
}

func TestWhoLogsIn(t *testing.T) {
	for url, want := range map[string][2]string{
		"sample://h":                        {},
		"sample://ann:secret@h":             {"ann", "secret"},
		"sample://ann@h?password=secret":    {"ann", "secret"},
		"sample://h?user=ann":               {"ann", ""},
		"sample://bob:b@h?user=ann":         {"ann", "b"},
		"sample://bob:b@h?password=another": {"bob", "another"},
	} {
		user, password := target(t, url, nil).Login()
		if got := [2]string{user, password}; got != want {
			t.Errorf("%s: %q", url, got)
		}
	}
}

func TestHostsHavePorts(t *testing.T) {
	got := target(t, "sample://a,b:1,[::1],[::1]:2,c", nil).Addresses("9")
	if want := []string{"a:9", "b:1", "[::1]:9", "[::1]:2", "c:9"}; !slices.Equal(got, want) {
		t.Error(got)
	}
	if got := target(t, "sample://", nil).Addresses("9"); !slices.Equal(got, []string{"127.0.0.1:9"}) {
		t.Error(got)
	}
}

// Where only one side speaks TLS, the error says so, whatever the driver's client makes of it.
func TestOneSideSpeaksTLS(t *testing.T) {
	secure := httptest.NewUnstartedServer(nil)
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = plain.Close() }()
	go func() {
		for {
			c, err := plain.Accept()
			if err != nil {
				return
			}
			_, _ = c.Read(make([]byte, 1<<10)) // or what is left of it resets the connection
			_, _ = c.Write([]byte("INFO {}\r\n"))
			_ = c.Close()
		}
	}()
	at := func(l net.Listener, query string) *Address {
		a, err := ParseURL("sample://"+l.Addr().String()+query, nil)
		if err != nil {
			t.Fatal(err)
		}
		d := *a.Driver
		d.Open = func(ctx context.Context, t Target) (Conn, error) {
			dial, err := t.Dialer()
			if err != nil {
				return nil, err
			}
			c, err := dial(ctx, "tcp", t.Hosts[0])
			if err != nil {
				return nil, err
			}
			defer func() { _ = c.Close() }()
			if _, err := io.WriteString(c, "hello\r\n"); err != nil {
				return nil, err
			}
			answer, err := io.ReadAll(c)
			if err == nil {
				err = errors.New("what is " + string(answer))
			}
			return nil, err
		}
		a.Driver = &d
		return a
	}
	for _, c := range []struct {
		*Address
		want string
	}{
		{at(secure.Listener, ""), `it requires TLS, so set option "tls"`},
		{at(plain, "?tls=true"), "the server does not speak TLS at this port"},
		{at(plain, ""), "what is INFO"},
		{at(secure.Listener, "?tls=true"), "certificate"},
	} {
		if _, err := c.Open(t.Context(), ""); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "TLS") != strings.Contains(c.want, "TLS") {
			t.Errorf("%s: %v", c, err)
		}
	}
}

// opening fails as a driver's Open does.
func opening(t *testing.T, url string, p Protocol, failure error) error {
	t.Helper()
	a, err := ParseURL(url, nil)
	if err != nil {
		t.Fatal(err)
	}
	d := *a.Driver
	d.Protocol = p
	d.Open = func(context.Context, Target) (Conn, error) { return nil, failure }
	a.Driver = &d
	_, err = a.Open(t.Context(), "")
	return err
}

// A client and a server that wait for each other's first word end with a timeout. The server is told
// from a slow one by its answer to a probe.
func TestOpen_Timeout_ForeignServerIsNamed(t *testing.T) {
	t.Parallel()
	web := httptest.NewServer(nil)
	defer web.Close()
	url := "sample://" + web.Listener.Addr().String()
	err := opening(t, url, Protocol{Name: "the protocol of samples"}, context.DeadlineExceeded)
	if e := (*Error)(nil); !errors.As(err, &e) || e.Kind != Unsupported ||
		!strings.Contains(err.Error(), `the server does not speak the protocol of samples at this port: it answers "HTTP/1.1 400 Bad Request"`) {
		t.Error(err)
	}
	err = opening(t, url, Protocol{Name: "HTTP", Text: []string{"HTTP/"}}, context.DeadlineExceeded)
	if e := (*Error)(nil); !errors.As(err, &e) || e.Kind != Timeout {
		t.Errorf("a server of its own: %v", err)
	}
}

// A server that accepts and stays silent is probed for a short time only.
func TestOpen_SilentServer_KeepsError(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }() // the kernel accepts
	at := "sample://" + silent.Addr().String()
	if err := opening(t, at, Protocol{}, io.EOF); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	if err := opening(t, at, Protocol{}, &OptionError{"acks", io.EOF}); !errors.As(err, new(*OptionError)) {
		t.Error(err)
	}
}

// A server that takes both, TLS and what is not, and is slow, is no stranger.
func TestWhoTakesTLSTooIsNoStranger(t *testing.T) {
	t.Parallel()
	secure := httptest.NewTLSServer(nil)
	defer secure.Close()
	either, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var talks sync.WaitGroup
	defer talks.Wait()
	defer func() { _ = either.Close() }()
	talks.Go(func() {
		for {
			c, err := either.Accept()
			if err != nil {
				return
			}
			talks.Go(func() {
				defer func() { _ = c.Close() }()
				first := make([]byte, 1<<10)
				n, _ := c.Read(first)
				if n == 0 || first[0] != 22 { // of a handshake of TLS
					_, _ = c.Write([]byte{0, 0, 0, 4, 0, 0, 0, 0, 0})
					return
				}
				s := tls.Server(&again{c, first[:n]}, &tls.Config{Certificates: secure.TLS.Certificates, MinVersion: tls.VersionTLS12})
				_ = s.HandshakeContext(t.Context())
			})
		}
	})
	err = opening(t, "sample://"+either.Addr().String(), Protocol{}, io.ErrUnexpectedEOF)
	if !errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, new(*ProtocolError)) {
		t.Error(err)
	}
}

// again is a connection whose first bytes have been read, and come once more.
type again struct {
	net.Conn
	first []byte
}

func (c *again) Read(b []byte) (int, error) {
	if len(c.first) == 0 {
		return c.Conn.Read(b)
	}
	n := copy(b, c.first)
	c.first = c.first[n:]
	return n, nil
}
