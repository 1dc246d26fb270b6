package account_test

import (
	"bytes"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
)

func FuzzSet(f *testing.F) {
	topic := account.NewTopic()
	p := topic.Producer(1)
	for n := range uint64(100_000) { // of each kind of container one
		if seq := p.Next(); n < 70_000 || n%3 == 0 && n < 90_000 || n == 99_000 {
			p.Expect(seq)
		}
	}
	var known bytes.Buffer
	if _, err := topic.Snapshot().Producers[0].Expected.WriteTo(&known); err != nil {
		f.Fatal(err)
	}
	for _, text := range []string{"", "\x00", known.String(), known.String()[:known.Len()/2], known.String() + "\x00", "\xff\xff\xff\xff\xff\xff\xff\xff"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := account.ReadSet(text)
		if err != nil {
			return
		}
		var again bytes.Buffer
		if _, err := s.WriteTo(&again); err != nil {
			t.Fatal(err)
		}
		if same, err := account.ReadSet(again.Bytes()); err != nil || !same.Equal(s) {
			t.Errorf("%v: %d numbers, then %d", err, s.Len(), same.Len())
		}
	})
}
