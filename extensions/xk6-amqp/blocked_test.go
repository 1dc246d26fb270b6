package amqp_test

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// blocker stands between the client and the server, and says to every client what RabbitMQ says when it runs out of memory
// or disk: a real alarm would stop all that shares the server. It keeps back what clients send from then on.
type blocker struct {
	net.Listener
	server string

	mu      sync.Mutex
	resume  *sync.Cond
	blocked bool
	clients []net.Conn
	running sync.WaitGroup
}

func newBlocker(tb testing.TB, raw string) (*blocker, string) {
	tb.Helper()
	if raw == "" {
		tb.Skip("no URL for rabbitmq")
	}
	u, err := url.Parse(raw)
	if err != nil {
		tb.Fatal("the URL is malformed")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	b := &blocker{Listener: l, server: u.Host}
	b.resume = sync.NewCond(&b.mu)
	b.running.Go(b.accept)
	tb.Cleanup(func() {
		_ = l.Close()
		b.say(false)
		b.running.Wait()
	})
	u.Host = l.Addr().String()
	return b, u.String()
}

func (b *blocker) accept() {
	for {
		client, err := b.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", b.server)
		if err != nil {
			_ = client.Close()
			continue
		}
		b.mu.Lock()
		b.clients = append(b.clients, client)
		b.mu.Unlock()
		b.running.Go(func() { _, _ = io.Copy(client, server); _ = client.Close() })
		b.running.Go(func() { _, _ = io.Copy(server, gate{client, b}); _ = server.Close() })
	}
}

// gate lets nothing through while blocked.
type gate struct {
	net.Conn
	blocker *blocker
}

func (g gate) Read(p []byte) (int, error) {
	n, err := g.Conn.Read(p)
	g.blocker.mu.Lock()
	defer g.blocker.mu.Unlock()
	for g.blocker.blocked {
		g.blocker.resume.Wait()
	}
	return n, err
}

// say sends connection.blocked or connection.unblocked to all clients, of which none may be amid a frame.
func (b *blocker) say(blocked bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.blocked = blocked
	b.resume.Broadcast()
	method := []byte{0, 10, 0, 61}
	if blocked {
		method = append([]byte{0, 10, 0, 60, 10}, "low on RAM"...)
	}
	frame := binary.BigEndian.AppendUint32([]byte{1, 0, 0}, uint32(len(method)))
	frame = append(append(frame, method...), 0xCE)
	for _, client := range b.clients {
		_, _ = client.Write(frame) // those that are gone do not care
	}
}

// Messages wait while the broker blocks, and are confirmed when it goes on.
func TestBlockedWaits(t *testing.T) {
	t.Parallel()
	b, address := newBlocker(t, server(t, "rabbitmq"))
	r := newRig(t, address)
	topic := r.topic(nil)
	p := r.producer(topic, 10, nil)
	r.kinds("", r.send(p, text("before"))...)
	b.say(true)
	confirmed := make(chan error, 1)
	p.Send(r.context(), driver.Batch{text("while")}, func(_ int, err error) { confirmed <- err })
	select {
	case err := <-confirmed:
		t.Fatalf("the message was answered for while the broker was blocked: %v", err)
	case <-time.After(200 * time.Millisecond):
	}
	b.say(false)
	r.kinds("", <-confirmed)
}

// Where the user wants to know at once, or cannot wait any longer, it is the broker that throttles.
func TestBlockedFails(t *testing.T) {
	t.Parallel()
	b, address := newBlocker(t, server(t, "rabbitmq"))
	r := newRig(t, address)
	topic := r.topic(nil)
	eager := r.producer(topic, 10, map[string]any{"blocked": "fail"})
	patient, err := r.conn.NewProducer(r.context(), driver.ProducerConfig{Topic: topic, Window: 10, Options: r.produceOptions(nil)})
	r.must(err)
	r.kinds("", r.send(eager, text("before"))...)
	b.say(true)
	r.eventually("sends fail", func() bool { return r.refused(eager) })
	waiting := make(chan error, 1)
	patient.Send(r.context(), driver.Batch{text("waiting")}, func(_ int, err error) { waiting <- err })
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_ = patient.Close(ctx)
	err = <-waiting
	r.kinds(driver.Throttled, err)
	if err == nil || !strings.Contains(err.Error(), "low on RAM") {
		t.Errorf("%v does not tell the broker's reason", err)
	}
	b.say(false)
	r.eventually("sends are confirmed again", func() bool { return r.send(eager, text("after"))[0] == nil })
}

// refused sends a message, and tells whether it fails at once as throttled; one that does not is left to its fate.
func (r *rig) refused(p driver.Producer) bool {
	answer := make(chan error, 1)
	p.Send(r.context(), driver.Batch{text("while")}, func(_ int, err error) { answer <- err })
	select {
	case err := <-answer:
		return kindOf(r.driver, err) == driver.Throttled
	case <-time.After(10 * time.Millisecond):
		return false
	}
}

func (r *rig) produceOptions(given map[string]any) driver.Values {
	r.Helper()
	values, err := r.address.Resolve(driver.OnProducer, given)
	r.must(err)
	return values
}
