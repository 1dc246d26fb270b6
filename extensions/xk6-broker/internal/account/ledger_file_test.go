package account

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"
)

// ledgerOf is a ledger with something in each of its fields.
func ledgerOf(t *testing.T) *Ledger {
	t.Helper()
	topic := NewTopic()
	group := topic.Group("workers", true)
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
	reader.Drained(p.ID(), 0, true)
	reader.Drained(p.ID(), 1, true)
	p.Sent(1_700_000_000_000_000_001, 0)
	known := topic.Snapshot()
	return &Ledger{
		Version: LedgerVersion, Run: math.MaxUint32, Instance: 5, Clock: "one", Ended: 1_700_000_000_123_456_789, Unfinished: true, Topics: []TopicLedger{
			{Broker: "memory://x", Driver: "memory", Topic: "empty"},
			{
				Broker: "memory://x", Driver: "memory", Topic: `a "topic" <&> ä`, Failed: 3, Selected: true, Unordered: true, Spends: true,
				Removed: []int64{1, 2}, Slowest: 14, Producers: known.Producers,
				Groups: []GroupLedger{{
					GroupSnapshot: known.Groups[0], Subscriber: true, Kept: true, Earliest: true, There: []Presence{{5, math.MaxInt64}}, Left: []Presence{{1, 2}}, Asked: 6,
					Backlog: Backlog{Messages: 7, Undelivered: 8}, Leftovers: 9, Held: 13, Doubtful: true, Cut: true,
				}},
			},
		},
	}
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
	want := ledgerOf(t)
	text := written(t, want)
	got, err := ReadLedger(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if again := written(t, got); !bytes.Equal(text, again) {
		t.Error("a ledger that was read is written otherwise")
	}
	if s, r := want.Topics[1].Groups[0].Sources[0], got.Topics[1].Groups[0].Sources[0]; s.Received.Len() == 0 || r.Received.Len() != s.Received.Len() || r.Drained.Len() != s.Drained.Len() {
		t.Errorf("%d numbers received, want %d", r.Received.Len(), s.Received.Len())
	}
}

func TestALedgerThatCannotBeReadSaysWhy(t *testing.T) {
	whole := written(t, ledgerOf(t))
	changed := bytes.Clone(whole)
	changed[len(changed)/2] ^= 0x10
	old := ledgerOf(t)
	old.Version--
	unsorted := ledgerOf(t)
	slices.Reverse(unsorted.Topics[1].Groups[0].Sources)
	for name, c := range map[string]struct {
		text []byte
		says string
	}{
		"nothing":          {nil, "damaged"},
		"half of it":       {whole[:len(whole)/2], "not all of it"},
		"all but a byte":   {whole[:len(whole)-1], "not all of it"},
		"a bit changed":    {changed, "damaged"},
		"an older version": {written(t, old), "version 9: this program reads version 10"},
		"unsorted sources": {written(t, unsorted), "not in their order"},
	} {
		if _, err := ReadLedger(bytes.NewReader(c.text)); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
}
