package account

import (
	"archive/zip"
	"bytes"
	"errors"
	"io"
	"math"
	"reflect"
	"strings"
	"testing"
)

// ledgerOf is a ledger with something in each of its fields.
func ledgerOf(t *testing.T) *Ledger {
	t.Helper()
	topic := NewTopic()
	group := topic.Group("workers", Earliest)
	reader := group.Reader()
	p := topic.Producer(1<<40 | 7)
	for range 200_000 {
		seq := p.Next()
		p.Expect(seq)
		if seq%3 > 0 {
			reader.Received(p.ID(), seq, 0, 1)
		}
		if seq%3 > 1 {
			reader.Settled(p.ID(), seq)
		}
	}
	reader.Received(1<<63|5, 10, 0, 1)
	reader.Settled(1<<63|5, 10)
	reader.Drained(p.ID(), 0)
	reader.Cleared(p.ID(), 1)
	known := topic.Snapshot()
	return &Ledger{
		Version: LedgerVersion, Run: math.MaxUint32, Instance: 5, Clock: "one", Ended: 1_700_000_000_123_456_789, Unfinished: true, Topics: []TopicLedger{
			{Broker: "memory://x", Driver: "memory", Topic: "empty", Courses: map[uint64]Course{}},
			{
				Broker: "memory://x", Driver: "memory", Topic: `a "topic" <&> ä`, Failed: 3, Unanswered: 2, Selected: true, Unordered: true, Spends: true,
				Removed: []int64{1, 2}, Slowest: 14, Producers: known.Producers,
				Courses: map[uint64]Course{p.ID(): {Width: 7, Marks: []Mark{{1_700_000_000_000_000_001, 0}, {1_700_000_000_000_000_003, 200_000}}}},
				Groups: []GroupLedger{{
					GroupSnapshot: known.Groups[0], Subscriber: true, Kept: true, Earliest: true, There: []Presence{{5, math.MaxInt64}}, Partings: []Presence{{1, 2}}, Asked: 6,
					Backlog: Backlog{Messages: 7, Undelivered: 8}, Leftovers: 9, Strangers: 11, SureHeld: 12, Held: 13, Cut: true,
				}},
			},
		},
	}
}

// loaded has the sets of a ledger in memory, as they are written.
func loaded(t *testing.T, l *Ledger) *Ledger {
	t.Helper()
	load := func(sets ...*Numbers) {
		for _, n := range sets {
			set, err := (*n).Load()
			if err != nil || set.Len() != (*n).Len() {
				t.Fatalf("%d numbers: %v", (*n).Len(), err)
			}
			var text bytes.Buffer
			if _, err := set.WriteTo(&text); err != nil {
				t.Fatal(err)
			}
			if set, err = ReadSet(text.Bytes()); err != nil {
				t.Fatal(err)
			}
			*n = set
		}
	}
	for i := range l.Topics {
		for k := range l.Topics[i].Producers {
			load(&l.Topics[i].Producers[k].Expected)
		}
		for _, g := range l.Topics[i].Groups {
			for k := range g.Sources {
				s := &g.Sources[k]
				load(&s.Received, &s.Settled, &s.Again, &s.Drained, &s.Doubted, &s.Cleared)
			}
		}
	}
	l.file = nil
	return l
}

func written(t *testing.T, l *Ledger) []byte {
	t.Helper()
	var text bytes.Buffer
	if err := l.Write(&text); err != nil {
		t.Fatal(err)
	}
	return text.Bytes()
}

func TestALedgerIsReadAsItWasWritten(t *testing.T) {
	text := written(t, ledgerOf(t))
	if again := written(t, ledgerOf(t)); !bytes.Equal(text, again) {
		t.Error("the same ledger is written otherwise")
	}
	got, err := ReadLedger(bytes.NewReader(text), int64(len(text)))
	if err != nil {
		t.Fatal(err)
	}
	if again := written(t, got); !bytes.Equal(text, again) {
		t.Error("a ledger that was read is written otherwise")
	}
	want, read := loaded(t, ledgerOf(t)), loaded(t, got)
	if !reflect.DeepEqual(read, want) {
		t.Errorf("\n got %+v\nwant %+v", read, want)
	}
}

func TestALedgerThatCannotBeReadSaysWhy(t *testing.T) {
	whole := written(t, ledgerOf(t))
	z, err := zip.NewReader(bytes.NewReader(whole), int64(len(whole)))
	if err != nil {
		t.Fatal(err)
	}
	first, err := z.File[0].DataOffset()
	if err != nil {
		t.Fatal(err)
	}
	changed := func(at int64) []byte {
		text := bytes.Clone(whole)
		text[at] ^= 0x10
		return text
	}
	relined := func(edit func(lines string) string) []byte {
		var text bytes.Buffer
		to := zip.NewWriter(&text)
		for _, f := range z.File {
			from, err := f.Open()
			if err != nil {
				t.Fatal(err)
			}
			content, err := io.ReadAll(from)
			if err != nil {
				t.Fatal(err)
			}
			if f.Name == linesEntry {
				content = []byte(edit(string(content)))
			}
			w, err := to.CreateHeader(&zip.FileHeader{Name: f.Name, Method: f.Method})
			if err == nil {
				_, err = w.Write(content)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := to.Close(); err != nil {
			t.Fatal(err)
		}
		return text.Bytes()
	}
	for _, c := range []struct {
		name, says string
		text       []byte
	}{
		{"nothing", "or not all of it", nil},
		{"half of it", "or not all of it", whole[:len(whole)/2]},
		{"all but a byte", "or not all of it", whole[:len(whole)-1]},
		{"a bit of a set", "checksum", changed(first + 100)},
		{"a bit of a line", "a damaged ledger", changed(int64(len(whole)) - 400)},
		{"of version 6", "a version before 9", []byte("\x1f\x8b\x08 as gzip begins")},
		{"of version 8", "it is of version 8, and this program reads version 9", relined(func(s string) string { return strings.Replace(s, `"version":9`, `"version":8`, 1) })},
		{"without its head", "does not begin with its version", relined(func(s string) string { return s[strings.Index(s, "\n")+1:] })},
		{"without topics", "of no topic", relined(func(s string) string { return strings.ReplaceAll(s, `{"topic":`, `{"ledger":`) })},
		{"no lines", "does not begin with its version", relined(func(string) string { return "" })},
		{"no JSON", "a damaged ledger", relined(func(s string) string { return s[:len(s)/2] })},
		{"another ZIP", "no ledger", func() []byte {
			var text bytes.Buffer
			_ = errors.Join(zip.NewWriter(&text).Close())
			return text.Bytes()
		}()},
	} {
		if _, err := ReadLedger(bytes.NewReader(c.text), int64(len(c.text))); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", c.name, err, c.says)
		}
	}
	for name, edit := range map[string]func(string) string{
		"a set elsewhere": func(s string) string { return strings.Replace(s, `"expected":{"at":0`, `"expected":{"at":1`, 1) },
		"beyond the end": func(s string) string {
			return strings.Replace(s, `"expected":{"at":0`, `"expected":{"at":900000000000`, 1)
		},
		"other numbers": func(s string) string { return strings.Replace(s, `"count":200000`, `"count":200001`, 1) },
	} {
		text := relined(edit)
		l, err := ReadLedger(bytes.NewReader(text), int64(len(text)))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.Topics[1].Producers[0].Expected.Load(); err == nil || !strings.Contains(err.Error(), "damaged") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
