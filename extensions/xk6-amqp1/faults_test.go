package amqp1_test

import (
	"net/url"
	"os"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/proxy"
)

// While the server is there and does not answer, all messages that wait for a connection fail with the one attempt to make it, and not each with its own.
func TestAServerThatStopsAnswering(t *testing.T) {
	if testing.Short() {
		t.Skip("part of make test-full")
	}
	raw := os.Getenv("BROKER_URL_AMQP1")
	if raw == "" {
		t.Skip("no BROKER_URL_AMQP1")
	}
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	p, err := proxy.Listen(u.Host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	topic := newRig(t, "BROKER_URL_AMQP1").topic()
	u.Host = p.Addr()
	u.RawQuery = "connectTimeout=500ms"
	r := rigAt(t, u.String())
	s := r.producer(topic, nil)
	r.send(s, text("before"))
	p.Freeze()
	p.Cut()
	begin := time.Now()
	for _, err := range r.try(s, make([]driver.Message, 100)...) { // one after the other they would take 50 s
		if kind := r.driver.KindOf(err); kind != driver.Timeout && kind != driver.Disconnected {
			t.Fatalf("kind %q: %v", kind, err)
		}
	}
	if took := time.Since(begin); took > 20*time.Second {
		t.Errorf("100 messages failed within %v", took)
	}
	p.Thaw()
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		if err := r.try(s, text("after"))[0]; err == nil {
			break
		} else if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}
