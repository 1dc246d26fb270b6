package nats

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// What a consumer has no room for is dropped, and the consumer is told how much: received and dropped add up.
func TestDroppedMessagesAreCounted(t *testing.T) {
	const total = 5000
	for name, given := range map[string]map[string]any{
		"by messages": {"pendingMessages": 10},
		"by bytes":    {"pendingBytes": 40}, // bodies of up to four bytes
	} {
		t.Run(name, func(t *testing.T) {
			c, a := open(t, "embedded-nats:")
			topic := unique("slow")
			k := consumer(t, c, a, driver.ConsumerConfig{Topic: topic}, given)
			p := producer(t, c, a, topic, nil)
			for _, err := range send(t, p, bodies(total)) {
				if err != nil {
					t.Fatal(err)
				}
			}
			received, dropped := 0, 0
			b := make(driver.Batch, 100)
			for received+dropped < total {
				n, err := k.Receive(within(t), b)
				received += n
				if err == nil {
					continue
				}
				if kind := a.Driver.KindOf(err); kind != driver.Throttled {
					t.Fatalf("after %d received and %d dropped: %v", received, dropped, err)
				}
				_, count, _ := strings.Cut(err.Error(), "messages dropped: ")
				dropped += must[int](t)(strconv.Atoi(count))
			}
			if dropped == 0 || received == 0 || received+dropped != total {
				t.Errorf("received %d, dropped %d of %d", received, dropped, total)
			}
		})
	}
}

// What has no room although nothing waits is told to who waits for it.
func TestADropWakesReceive(t *testing.T) {
	c, a := open(t, "embedded-nats:")
	topic := unique("large")
	k := consumer(t, c, a, driver.ConsumerConfig{Topic: topic}, map[string]any{"pendingBytes": 40})
	p := producer(t, c, a, topic, nil)
	for range 3 {
		told := make(chan error, 1)
		go func() {
			_, err := k.Receive(within(t), make(driver.Batch, 1))
			told <- err
		}()
		send(t, p, driver.Batch{{Body: make([]byte, 41)}})
		if err := <-told; !errors.Is(err, nats.ErrSlowConsumer) || !strings.HasSuffix(err.Error(), ": 1") {
			t.Error(err)
		}
	}
}

func TestWildcard(t *testing.T) {
	for _, url := range []string{"embedded-nats:", "embedded:"} {
		c, a := open(t, url)
		root := unique("wild")
		if _, ok := c.(driver.Admin); ok {
			create(t, c, a, root+".*", nil)
		}
		k := consumer(t, c, a, driver.ConsumerConfig{Topic: root + ".*", Prefetch: 10}, nil)
		if err := send(t, producer(t, c, a, root+".x", nil), bodies(1))[0]; err != nil {
			t.Fatal(err)
		}
		b := make(driver.Batch, 1)
		must[int](t)(k.Receive(within(t), b))
		if b[0].Topic != root+".x" {
			t.Errorf("%s: topic %q", url, b[0].Topic)
		}
	}
}

func TestRequestWithoutResponder(t *testing.T) {
	c, a := open(t, "embedded-nats:")
	p := producer(t, c, a, unique("nobody"), nil).(driver.Requester)
	_, err := p.Request(within(t), driver.Message{Body: []byte("?")})
	if kind := a.Driver.KindOf(err); kind != driver.NotFound {
		t.Errorf("kind %s, want not_found: %v", kind, err)
	}
}

func TestReplyToWhatAsksForNone(t *testing.T) {
	c, a := open(t, "embedded-nats:")
	topic := unique("noreply")
	k := consumer(t, c, a, driver.ConsumerConfig{Topic: topic}, nil)
	send(t, producer(t, c, a, topic, nil), bodies(1))
	b := make(driver.Batch, 1)
	must[int](t)(k.Receive(within(t), b))
	if err := k.(driver.Replier).Reply(within(t), b[0], driver.Message{}); !errors.Is(err, nats.ErrMsgNoReply) {
		t.Error(err)
	}
}

func TestHeaderValuesThatWouldChange(t *testing.T) {
	c, a := open(t, "embedded-nats:")
	p := producer(t, c, a, unique("headers"), nil)
	for _, value := range []string{"a\r\nb", "a\nb", " a", "a ", "\ta"} {
		err := send(t, p, driver.Batch{{Headers: []driver.Header{{Name: "x", Value: []byte(value)}}}})[0]
		if kind := a.Driver.KindOf(err); kind != driver.Rejected {
			t.Errorf("%q: kind %s, want rejected: %v", value, kind, err)
		}
	}
}

// A message with a header that NATS cannot carry is rejected, by the header's name, and leaves no trace in those that come after it:
// on other topics and connections, and of other senders.
func TestARefusedHeaderDoesNotSpoilTheNext(t *testing.T) {
	header := func(name, value string) driver.Header { return driver.Header{Name: name, Value: []byte(value)} }
	refused := map[string][]driver.Header{
		`header "bad name": the name of a NATS header is`:        {header("good", "1"), header("bad name", "1")},
		`header "bad:name": the name of a NATS header is`:        {header("bad:name", "1")},
		`header "bad(name)": the name of a NATS header is`:       {header("bad(name)", "1")},
		`header "": the name of a NATS header is`:                {header("", "1")},
		`header "nüme": the name of a NATS header is`:            {header("nüme", "1")},
		`header "a\r\nb": the name of a NATS header is`:          {header("a\r\nb", "1")},
		`header "value": a NATS header value cannot hold a line`: {header("stale", "1"), header("value", "a\nb")},
	}
	for _, url := range []string{"embedded-nats:", "embedded:"} {
		t.Run(url, func(t *testing.T) {
			c, a := open(t, url)
			other, _ := open(t, url)
			bad, good := unique("bad"), unique("good")
			if url == "embedded:" {
				create(t, c, a, bad, nil)
				create(t, c, a, good, nil)
			}
			k := consumer(t, other, a, driver.ConsumerConfig{Topic: good, Prefetch: 1000}, nil)
			spoiler, p := producer(t, c, a, bad, nil), producer(t, other, a, good, nil)
			const rounds, each = 2, 100
			for range rounds {
				for want, headers := range refused {
					err := send(t, spoiler, driver.Batch{{Headers: headers}})[0]
					if a.Driver.KindOf(err) != driver.Rejected || !strings.Contains(err.Error(), want) {
						t.Fatalf("%v; want it rejected: %s", err, want)
					}
				}
				b := bodies(each)
				for i := range b {
					b[i].Headers = []driver.Header{header("a", "1"), header("b", "2")}
				}
				for _, err := range send(t, p, b) {
					if err != nil {
						t.Fatalf("a good message was refused: %v", err)
					}
				}
			}
			for n := 0; n < rounds*each; {
				b := make(driver.Batch, each)
				got := must[int](t)(k.Receive(within(t), b))
				for _, m := range b[:got] {
					if len(m.Headers) != 2 || m.Headers[0].Name != "a" || m.Headers[1].Name != "b" {
						t.Fatalf("received %q", m.Headers)
					}
				}
				if a.Driver.Features.Settle != 0 {
					if err := k.Settle(within(t), b[:got], driver.Ack); err != nil {
						t.Fatal(err)
					}
				}
				n += got
			}
		})
	}
}

// What is legal is what nats.go takes.
func TestLegalHeaderNames(t *testing.T) {
	c, a := open(t, "embedded-nats:")
	nc, topic := client(t, c), unique("names")
	p := producer(t, c, a, topic, nil)
	for b := range 256 {
		for _, name := range []string{string([]byte{byte(b)}), string([]byte{'a', byte(b), 'c'})} {
			theirs := nc.PublishMsg(&nats.Msg{Subject: topic, Header: nats.Header{name: {"v"}}})
			ours := send(t, p, driver.Batch{{Headers: []driver.Header{{Name: name, Value: []byte("v")}}}})[0]
			if (theirs == nil) != (ours == nil) || ours != nil && !strings.Contains(ours.Error(), fmt.Sprintf("header %q: the name", name)) {
				t.Errorf("%q: nats.go says %v, we %v", name, theirs, ours)
			}
		}
	}
}

// Headers of one message must not show in the next, though they share memory on the way out.
func TestHeadersDoNotLinger(t *testing.T) {
	c, a := open(t, "embedded-nats:")
	topic := unique("headers")
	k := consumer(t, c, a, driver.ConsumerConfig{Topic: topic}, nil)
	p := producer(t, c, a, topic, nil)
	header := func(name, value string) driver.Header { return driver.Header{Name: name, Value: []byte(value)} }
	sent := driver.Batch{
		{Headers: []driver.Header{header("a", "1"), header("a", "2"), header("b", "")}},
		{Headers: []driver.Header{header("c", "ü")}},
		{},
	}
	for i := range sent {
		if err := send(t, p, sent[i:i+1])[0]; err != nil {
			t.Fatal(err)
		}
	}
	b := make(driver.Batch, 1)
	for _, want := range sent {
		must[int](t)(k.Receive(within(t), b))
		if len(b[0].Headers) != len(want.Headers) {
			t.Fatalf("got %q, want %q", b[0].Headers, want.Headers)
		}
		for i, h := range b[0].Headers {
			if h.Name != want.Headers[i].Name || string(h.Value) != string(want.Headers[i].Value) {
				t.Errorf("got %q, want %q", b[0].Headers, want.Headers)
			}
		}
	}
}

// While there is no connection, a send fails at once instead of waiting in a buffer, and a consumer learns that it may have
// missed something.
func TestDisconnected(t *testing.T) {
	if testing.Short() {
		t.Skip("part of make test-full")
	}
	for _, scheme := range []string{"nats", "jetstream"} {
		t.Run(scheme, func(t *testing.T) {
			s := startProcess(t)
			c, a := open(t, scheme+"://"+s.address)
			topic := unique("away")
			if _, ok := c.(driver.Admin); ok {
				create(t, c, a, topic, nil)
				t.Cleanup(func() { // for the topic to be deleted
					s.start(t)
					reconnected(t, c)
				})
			}
			k := consumer(t, c, a, driver.ConsumerConfig{Topic: topic}, nil)
			p := producer(t, c, a, topic, nil)
			s.kill()
			if _, err := k.Receive(within(t), make(driver.Batch, 1)); a.Driver.KindOf(err) != driver.Disconnected {
				t.Errorf("Receive: %v, want disconnected", err)
			}
			if err := send(t, p, bodies(1))[0]; a.Driver.KindOf(err) != driver.Disconnected {
				t.Errorf("Send: %v, want disconnected", err)
			}
		})
	}
}

// Every embedded connection is to the same server, which is gone after the last.
func TestEmbeddedIsOne(t *testing.T) {
	a, err := driver.ParseURL("embedded:", nil)
	if err != nil {
		t.Fatal(err)
	}
	first, second := must[driver.Conn](t)(a.Open(within(t), "first")), must[driver.Conn](t)(a.Open(within(t), "second"))
	if x, y := client(t, first).ConnectedServerId(), client(t, second).ConnectedServerId(); x != y {
		t.Errorf("servers %s and %s", x, y)
	}
	if info := second.(driver.Informer).Info(); !info.Embedded || info.Nodes != 1 || !strings.HasPrefix(info.Server, "nats-server 2.") {
		t.Errorf("%+v", info)
	}
	store := embedded.running.store
	if err := first.Close(within(t)); err != nil {
		t.Fatal(err)
	}
	if err := client(t, second).Flush(); err != nil {
		t.Errorf("the server went with the first connection: %v", err)
	}
	if err := second.Close(within(t)); err != nil {
		t.Fatal(err)
	}
	if exists(store) || embedded.running != nil {
		t.Errorf("%s or its server is still there", store)
	}
}

func TestOpenEndsWithItsContext(t *testing.T) {
	address, accepted := silentServer(t)
	a, err := driver.ParseURL("nats://"+address, map[string]any{"connectTimeout": "1h"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-accepted
		cancel()
	}()
	if _, err := a.Open(ctx, "test"); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), address) {
		t.Errorf("%v", err)
	}
}
