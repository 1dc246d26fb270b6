package redis

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	goredis "github.com/redis/go-redis/v9"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

func read(s string) reader { return reader{bufio.NewReader(strings.NewReader(s))} }

func TestReader(t *testing.T) {
	r := read("$3\r\na\r\n\r\n:-42\r\n*2\r\n$1\r\nx\r\n*1\r\n:1\r\n$-1\r\n*-1\r\n-ERR no\r\n+OK\r\n:7\r\n")
	if b, err := r.bulk(); string(b) != "a\r\n" || err != nil {
		t.Errorf("%q %v", b, err)
	}
	if n, err := r.integer(); n != -42 || err != nil {
		t.Errorf("%d %v", n, err)
	}
	if none, err := r.skip(); none || err != nil {
		t.Errorf("an array: %v %v", none, err)
	}
	if b, err := r.bulk(); b != nil || err != nil {
		t.Errorf("no string: %q %v", b, err)
	}
	if none, err := r.skip(); !none || err != nil {
		t.Errorf("no array: %v %v", none, err)
	}
	if _, err := r.bulk(); !answered(err) || err.Error() != "ERR no" {
		t.Errorf("an error: %v", err)
	}
	if _, err := r.skip(); err != nil {
		t.Error(err)
	}
	if n, err := r.integer(); n != 7 || err != nil {
		t.Errorf("%d %v: out of step", n, err)
	}
}

// What XADD answers is the entry's id, of which nothing is made unless somebody asks.
func TestTheAnswerToXADD(t *testing.T) {
	for text, want := range map[string]string{
		"1526919030474-55": "1526919030474-55", "0-1": "0-1", "18446744073709551615-18446744073709551615": "18446744073709551615-18446744073709551615",
		"5": "", "-": "", "1-x": "",
	} {
		var place driver.Place
		if err := (xadd{}).answer(read(fmt.Sprintf("$%d\r\n%s\r\n", len(text), text)), &place); err != nil || place.Position.String() != want {
			t.Errorf("%s: %q, %v", text, place.Position, err)
		}
	}
	for _, place := range []*driver.Place{nil, {}} {
		if err := (xadd{}).answer(read("$-1\r\n"), place); !errors.Is(err, errNoTopic) {
			t.Errorf("no stream: %v", err)
		}
		if err := (xadd{}).answer(read("-ERR no\r\n"), place); !answered(err) {
			t.Errorf("an error: %v", err)
		}
		r := read(strings.Repeat("$15\r\n1526919030474-0\r\n", 200))
		if n := testing.AllocsPerRun(100, func() { _ = (xadd{}).answer(r, place) }); n > 0 {
			t.Errorf("%v allocations to read an id", n)
		}
	}
}

func TestWhereAnEntryIs(t *testing.T) {
	for id, want := range map[string]driver.Place{
		"1526919030474-55":       {Position: driver.Position{Form: driver.Identifier, Number: 1526919030474, Sub: 55}, Timestamp: 1526919030474000000},
		"18446744073709551615-1": {Position: driver.Position{Form: driver.Identifier, Number: 1<<64 - 1, Sub: 1}}, // no time that there is
	} {
		if got := entryPlace(&driver.Message{Token: &delivery{id: id}}); got != want {
			t.Errorf("%s: %+v", id, got)
		}
	}
	if got := entryPlace(&driver.Message{}); got != (driver.Place{}) {
		t.Errorf("no entry: %+v", got)
	}
}

// fate is an exchange that remembers.
type fate struct{ errs map[int]error }

func (*fate) encode(b []byte) ([]byte, int) { return b, 0 }
func (*fate) read(reader, int) error        { return nil }
func (f *fate) end(i int, err error)        { f.errs[i] = err }

func TestBarrier(t *testing.T) {
	for _, c := range []struct {
		replicas int64
		fsync    bool
		replies  string
		n        int
		want     string
	}{
		{1, false, ":1\r\n", 1, ""},
		{2, false, ":1\r\n", 1, "1 of 2 replicas"},
		{0, true, "*2\r\n:1\r\n:0\r\n", 1, ""},
		{0, true, "*2\r\n:0\r\n:3\r\n", 1, "on disk"},
		{1, true, ":1\r\n*2\r\n:1\r\n:0\r\n", 2, ""},
		{1, true, ":0\r\n*2\r\n:1\r\n:0\r\n", 2, "0 of 1 replicas"},
		{1, true, ":1\r\n-ERR WAITAOF cannot be used\r\n", 2, "WAITAOF cannot"},
	} {
		b := &barrier{replicas: c.replicas, fsync: c.fsync}
		f := &fate{errs: map[int]error{}}
		b.up.Store(true)
		b.hold(f, 0)
		b.hold(f, 1)
		if _, n := b.encode(nil); n != c.n {
			t.Fatalf("%d replies expected, want %d", n, c.n)
		}
		r := read(c.replies)
		for i := range c.n {
			if len(f.errs) > 0 {
				t.Errorf("%q: ended before the last reply", c.replies)
			}
			if err := b.read(r, i); err != nil {
				t.Fatal(err)
			}
		}
		if b.raised() || len(f.errs) != 2 {
			t.Errorf("%q: still up, or %d of 2 ended", c.replies, len(f.errs))
		}
		for _, err := range f.errs {
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%q: %v, want %q", c.replies, err, c.want)
			}
		}
	}
}

// FuzzEntry reads whatever a server might send where an entry is expected: an error or an entry, and never a crash.
func FuzzEntry(f *testing.F) {
	f.Add([]byte("*2\r\n$3\r\n1-1\r\n*2\r\n$4\r\nbody\r\n$1\r\nx\r\n"))
	f.Add([]byte("*2\r\n$3\r\n1-1\r\n*-1\r\n"))
	f.Add([]byte("*2\r\n$3\r\n1-1\r\n*4\r\n$3\r\nkey\r\n$-1\r\n$3\r\nh:a\r\n$0\r\n\r\n"))
	f.Add([]byte("-ERR x\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 1<<12 || bytes.ContainsAny(b, "56789") { // no gigabytes
			t.Skip()
		}
		r := reader{bufio.NewReader(bytes.NewReader(b))}
		d, err := r.entry("s")
		if err != nil && d != nil {
			t.Errorf("both %v and %v", d, err)
		}
	})
}

// FuzzXadd encodes a message and reads it back as the server would give it.
func FuzzXadd(f *testing.F) {
	f.Add([]byte("key"), "name", []byte("value"), []byte("body\r\n"))
	f.Add([]byte{}, "", []byte{}, []byte{})
	f.Fuzz(func(t *testing.T, key []byte, name string, value, body []byte) {
		m := driver.Message{Key: key, Body: body, Headers: []driver.Header{{Name: name, Value: value}}}
		x := newXadd("s", true, 0)
		r := reader{bufio.NewReader(bytes.NewReader(x.command(nil, &m)))}
		n, err := r.array()
		if err != nil {
			t.Fatal(err)
		}
		for range x.args {
			if _, err := r.skip(); err != nil {
				t.Fatal(err)
			}
		}
		var got driver.Message
		for range (n - x.args) / 2 {
			if err := r.field(&got); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(got.Key, key) || !bytes.Equal(got.Body, body) || len(got.Headers) != 1 ||
			got.Headers[0].Name != name || !bytes.Equal(got.Headers[0].Value, value) {
			t.Errorf("%+v came as %+v", m, got)
		}
		if _, err := r.ReadByte(); err == nil {
			t.Error("bytes are left")
		}
	})
}

// A server repeats the arguments of a command that it does not know, which AUTH can be made to be.
func TestCredentialsAreNotRepeated(t *testing.T) {
	r := reader{bufio.NewReader(strings.NewReader("-ERR unknown command 'AUTH', with args beginning with: 'user' 's3cret' \r\n"))}
	if _, err := r.skip(); err == nil || err.Error() != "ERR unknown command 'AUTH'" {
		t.Errorf("%v", err)
	}
}

func TestClassify(t *testing.T) {
	for answer, want := range map[string]driver.Kind{
		"UNBLOCKED the stream key no longer exists":                                                    driver.NotFound,
		"UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)": driver.Disconnected,
		"NOAUTH Authentication required.":                                                              driver.Denied, "WRONGPASS invalid": driver.Denied, "NOPERM no": driver.Denied,
		"OOM command not allowed": driver.Throttled, "LOADING Redis is loading": driver.Throttled, "BUSY script": driver.Throttled,
		"TRYAGAIN multiple keys": driver.Throttled, "READONLY You can't write": driver.Disconnected,
		"MOVED 1 127.0.0.1:1": driver.Disconnected, "NOGROUP No such key": driver.NotFound, "ERR no such key": driver.NotFound,
		"WRONGTYPE Operation": driver.Rejected, "ERR unknown command 'WAITAOF'": driver.Unsupported, "ERR what": driver.Rejected,
		"ERR max number of clients reached": driver.Throttled,
	} {
		if got := classify(replyError(answer)); got != want {
			t.Errorf("%q is of kind %s, want %s", answer, got, want)
		}
	}
	if got := classify(goredis.ErrPoolTimeout); got != driver.Timeout {
		t.Errorf("a full pool is %s", got)
	}
	if got := classify(errors.New("else")); got != driver.Unknown {
		t.Errorf("unknown is %s", got)
	}
}
