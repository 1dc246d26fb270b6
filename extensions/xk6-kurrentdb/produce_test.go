package kurrentdb

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/kurrent-io/KurrentDB-Client-Go/protos/kurrentdb/protocols/v1/streams"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/proxy"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-kurrentdb/internal/double"
)

// What is sent together is one append, unless that is to have fewer messages, or bytes.
func TestOneAppendForAll(t *testing.T) {
	f := start(t, double.Config{})
	c := f.open()
	for name, test := range map[string]struct {
		given map[string]any
		want  int
	}{
		"together": {nil, 1},
		"alone":    {map[string]any{"batch": 1}, 6},
		"in pairs": {map[string]any{"batch": 2}, 3},
		"in 25 B":  {map[string]any{"maxAppendSize": 50}, 3}, // of 5 bytes each, and 14 for the type
		"in 1 B":   {map[string]any{"maxAppendSize": 1}, 6},  // which none has, and all go
	} {
		f.topic(c, name)
		p := f.producer(c, name, test.given)
		before := f.server.Appends()
		if err := errors.Join(f.send(p, bodies("first", "secnd", "third", "forth", "fifth", "sixth"))...); err != nil {
			t.Fatal(err)
		}
		if got := f.server.Appends() - before; got != test.want {
			t.Errorf("%s: %d appends, want %d", name, got, test.want)
		}
	}
}

// An append that is too large for the server fails as a whole, and so does one with one event that is. What comes after does not.
func TestTooLarge(t *testing.T) {
	large := bytes.Repeat([]byte("x"), 1<<20)
	for name, test := range map[string]struct {
		config double.Config
		with   []byte
		says   string
	}{
		"the append": {double.Config{MaxAppendSize: 1 << 20}, large, "Maximum Append Size of 1048576"},
		"one event":  {double.Config{}, bytes.Repeat(large, 16), "Maximum Append Event Size of 16777216"},
		"the call":   {double.Config{}, bytes.Repeat(large, 18), "larger than max"},
	} {
		t.Run(name, func(t *testing.T) {
			f := start(t, test.config)
			c := f.open()
			f.topic(c, "large")
			p := f.producer(c, "large", map[string]any{"maxAppendSize": "64MiB"})
			for i, err := range f.send(p, driver.Batch{{Body: []byte("beside")}, {Body: test.with}}) {
				if f.kind(err) != driver.Rejected || !strings.Contains(err.Error(), test.says) {
					t.Errorf("message %d: kind %s: %v", i, f.kind(err), err)
				}
			}
			if err := f.send(p, bodies("after"))[0]; err != nil {
				t.Error(err)
			}
			if got := f.receive(f.consumer(c, "large", "", nil), 1); string(got[0].Body) != "after" {
				t.Errorf("%q is the first that is there", got[0].Body)
			}
		})
	}
}

// Of what is sent together, what cannot be an event fails alone.
func TestWhatCannotBeAnEvent(t *testing.T) {
	f := start(t, double.Config{})
	c := f.open()
	f.topic(c, "t")
	p := f.producer(c, "t", nil)
	header := func(name, value string) driver.Header { return driver.Header{Name: name, Value: []byte(value)} }
	b := driver.Batch{
		{Key: []byte{0xff}},
		{Headers: []driver.Header{header("a", "\xff")}},
		{Headers: []driver.Header{header("a", "1"), header("a", "2")}},
		{Key: []byte("k"), Headers: []driver.Header{header(correlation, "other")}},
		{Body: []byte("good")},
	}
	for i, err := range f.send(p, b) {
		if good := i == len(b)-1; good != (err == nil) || !good && f.kind(err) != driver.Rejected {
			t.Errorf("message %d: kind %s: %v", i, f.kind(err), err)
		}
	}
}

// half is a call that breaks after some events, and that gRPC then makes anew with these.
type half struct {
	grpc.ClientStreamingClient[streams.AppendReq, streams.AppendResp]
	sends int
	why   error
	gone  bool
}

func (h *half) Send(*streams.AppendReq) error {
	if h.sends--; h.sends < 0 {
		return io.EOF
	}
	return nil
}

func (h *half) CloseAndRecv() (*streams.AppendResp, error) {
	return &streams.AppendResp{Result: &streams.AppendResp_Success_{Success: &streams.AppendResp_Success{}}}, nil
}

func (h *half) RecvMsg(any) error {
	if !h.gone {
		return nil
	}
	return h.why
}

func TestHalfAnAppendIsNone(t *testing.T) {
	f := &fixture{t: t}
	for _, c := range []struct {
		sends int
		why   error
		want  driver.Kind
	}{
		{4, nil, ""},
		{0, nil, driver.Disconnected},
		{2, status.Error(codes.Canceled, "given up"), driver.Disconnected},
		{3, status.Error(codes.InvalidArgument, "too large"), driver.Rejected},
	} {
		call := &half{sends: c.sends, why: c.why}
		answer, err := transmit(call, func() { call.gone = true }, &streams.AppendReq_Options{}, make([]*streams.AppendReq_ProposedMessage, 3))
		if kind := f.kind(answered(err, nil)); kind != c.want || (answer == nil) != (c.want != "") {
			t.Errorf("after %d of 4 requests: kind %q, %v, %v", c.sends, kind, answer, err)
		}
	}
}

// A server that does not answer holds no Close up beyond its context, whatever time its answer has.
func TestCloseEnds(t *testing.T) {
	if testing.Short() {
		t.Skip("part of make test-full")
	}
	f := start(t, double.Config{})
	between, err := proxy.Listen(f.server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer between.Close() //nolint:errcheck // of a test
	opened, err := f.try("kurrentdb://" + between.Addr() + "?requestTimeout=10m")
	if err != nil {
		t.Fatal(err)
	}
	c := opened.(*conn)
	defer c.Close(context.Background()) //nolint:errcheck // it never fails
	f.topic(c, "t")
	p := f.producer(c, "t", nil)
	between.Freeze()
	defer between.Thaw()
	fates := make(chan error, 2)
	p.Send(f.context(), bodies("a", "b"), func(_ int, err error) { fates <- err })
	short, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_ = p.Close(short) // the test hangs if this waits for the answer
	for range 2 {
		if err := <-fates; f.kind(err) != driver.Timeout {
			t.Errorf("kind %s: %v", f.kind(err), err)
		}
	}
}

func TestTypesOfEvents(t *testing.T) {
	f := start(t, double.Config{})
	c := f.open()
	f.topic(c, "t")
	p := f.producer(c, "t", map[string]any{"eventType": "placed"})
	if err := errors.Join(f.send(p, driver.Batch{{Body: []byte("{}")}, {Body: []byte("{}"), Properties: driver.Values{"eventType": "paid"}}})...); err != nil {
		t.Fatal(err)
	}
	for i, m := range f.receive(f.consumer(c, "t", "", nil), 2) {
		if want := []string{"placed", "paid"}[i]; m.Properties["eventType"] != want {
			t.Errorf("message %d: %v, want type %s", i, m.Properties, want)
		}
	}
}

// What others wrote comes as far as it is text.
func TestMetadataOfOthers(t *testing.T) {
	for text, want := range map[string]driver.Message{
		"": {}, "no JSON": {}, `["a"]`: {},
		`{"$correlationId":"c","b":{"x":1},"a":"1","n":2}`: {Key: []byte("c"), Headers: []driver.Header{
			{Name: "a", Value: []byte("1")}, {Name: "b", Value: []byte(`{"x":1}`)}, {Name: "n", Value: []byte("2")},
		}},
	} {
		var got driver.Message
		decodeMetadata([]byte(text), &got)
		if !bytes.Equal(got.Key, want.Key) || len(got.Headers) != len(want.Headers) {
			t.Fatalf("%s: key %q and headers %q", text, got.Key, got.Headers)
		}
		for i, h := range want.Headers {
			if got.Headers[i].Name != h.Name || !bytes.Equal(got.Headers[i].Value, h.Value) {
				t.Errorf("%s: header %q, want %q", text, got.Headers[i], h)
			}
		}
	}
}
