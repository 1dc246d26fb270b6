package driver_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// The errors are those that the standard library gives for what really happens on a socket.
func TestKindsOfTheNetwork(t *testing.T) {
	dial := func(address string) error {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		_, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := l.Addr().String()
	_ = l.Close()
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	shake := func(server *httptest.Server, c *tls.Config) error {
		_, err := tls.Dial("tcp", server.Listener.Addr().String(), c)
		return err
	}
	one, err := net.Dial("tcp", plain.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_ = one.Close()
	_, own := one.Read(make([]byte, 1))
	a, b := net.Pipe()
	_ = b.Close()
	_, gone := a.Read(make([]byte, 1))
	c, d := net.Pipe()
	defer func() { _ = d.Close() }()
	_ = c.SetDeadline(time.Now().Add(-time.Second))
	_, late := c.Read(make([]byte, 1))
	_ = c.Close()
	for name, of := range map[string]struct {
		err  error
		want driver.Kind
	}{
		"nobody listens":       {dial(closed), driver.Disconnected},
		"no such host":         {dial("no-such-host.invalid:1"), driver.Disconnected},
		"the other side left":  {gone, driver.Disconnected},
		"in the middle":        {fmt.Errorf("frame: %w", io.ErrUnexpectedEOF), driver.Disconnected},
		"closed by ourselves":  {own, driver.Disconnected},
		"too late":             {late, driver.Timeout},
		"a deadline":           {fmt.Errorf("read: %w", os.ErrDeadlineExceeded), driver.Timeout},
		"not who it claims":    {shake(secure, &tls.Config{ServerName: "other.example"}), driver.Denied},
		"of unknown authority": {shake(secure, &tls.Config{ServerName: "example.com"}), driver.Denied},
		"no TLS there":         {shake(plain, &tls.Config{ServerName: "example.com"}), driver.Unsupported},
		"another's alert":      {&net.OpError{Op: "remote error", Err: errors.New("tls: bad certificate")}, driver.Denied},
		"anything else":        {errors.New("anything else"), driver.Unknown},
		"a file is no host":    {os.ErrNotExist, driver.Unknown},
	} {
		if of.err == nil {
			t.Errorf("%s: no error", name)
		} else if got := driver.NetworkKind(of.err); got != of.want {
			t.Errorf("%s: %v, want %v: %v", name, got, of.want, of.err)
		}
	}
	silent := driver.Driver{Name: "silent"}
	if got := silent.KindOf(late); got != driver.Timeout {
		t.Errorf("a driver that does not know: %v", got)
	}
}
