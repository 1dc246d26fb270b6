package account_test

import (
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
	known, err := topic.Snapshot().Producers[0].Expected.MarshalText()
	if err != nil {
		f.Fatal(err)
	}
	for _, text := range []string{"", "AA==", string(known), string(known[:len(known)/8*4]), "//////////8="} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var s, same account.Set
		if s.UnmarshalText(text) != nil {
			return
		}
		again, err := s.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		if err := same.UnmarshalText(again); err != nil {
			t.Fatal(err)
		}
		if third, err := same.MarshalText(); err != nil || string(third) != string(again) {
			t.Errorf("%v: %d numbers, then %d", err, s.Len(), same.Len())
		}
	})
}
