package proxy_test

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/proxy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start runs a server that sends back what it gets, and a proxy in front of it.
func start(t *testing.T) *proxy.Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				_, _ = io.Copy(c, c)
			}()
		}
	}()
	p, err := proxy.Listen(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		_ = l.Close()
	})
	return p
}

func dial(t *testing.T, p *proxy.Proxy) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// echo writes and reads the same back within a limit.
func echo(c net.Conn, text string, limit time.Duration) error {
	_ = c.SetDeadline(time.Now().Add(limit))
	if _, err := c.Write([]byte(text)); err != nil {
		return err
	}
	return expect(c, text)
}

func expect(c net.Conn, text string) error {
	got := make([]byte, len(text))
	if _, err := io.ReadFull(c, got); err != nil {
		return err
	}
	if string(got) != text {
		return errors.New("another text came back")
	}
	return nil
}

const long = 5 * time.Minute

func TestCarries(t *testing.T) {
	p := start(t)
	for range 3 {
		if err := echo(dial(t, p), "carried", long); err != nil {
			t.Error(err)
		}
	}
}

func TestCut(t *testing.T) {
	p := start(t)
	c := dial(t, p)
	if err := echo(c, "before", long); err != nil {
		t.Fatal(err)
	}
	p.Cut()
	if err := echo(c, "after", long); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the connection should be broken: %v", err)
	}
	if err := echo(dial(t, p), "again", long); err != nil {
		t.Errorf("a new connection after Cut: %v", err)
	}
}

func TestRefuse(t *testing.T) {
	p := start(t)
	before := dial(t, p)
	if err := echo(before, "before", long); err != nil {
		t.Fatal(err)
	}
	p.Refuse(true)
	if err := echo(dial(t, p), "refused", long); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the connection should be broken: %v", err)
	}
	if err := echo(before, "still", long); err != nil {
		t.Errorf("a connection from before Refuse: %v", err)
	}
	p.Refuse(false)
	if err := echo(dial(t, p), "again", long); err != nil {
		t.Error(err)
	}
}

func TestFreeze(t *testing.T) {
	p := start(t)
	c := dial(t, p)
	if err := echo(c, "before", long); err != nil {
		t.Fatal(err)
	}
	p.Freeze()
	p.Freeze()
	for _, c := range []net.Conn{c, dial(t, p)} {
		if err := echo(c, "frozen", 100*time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("the connection should be silent: %v", err)
		}
	}
	p.Thaw()
	p.Thaw()
	_ = c.SetDeadline(time.Now().Add(long))
	if err := expect(c, "frozen"); err != nil {
		t.Errorf("what was sent while frozen: %v", err)
	}
}

// TestCloseFrozen would never end if Close waited for bytes that do not flow.
func TestCloseFrozen(t *testing.T) {
	p := start(t)
	c := dial(t, p)
	p.Freeze()
	if _, err := c.Write([]byte("lost")); err != nil {
		t.Fatal(err)
	}
}
