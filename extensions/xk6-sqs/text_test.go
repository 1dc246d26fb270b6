package sqs

import (
	"bytes"
	"testing"
)

func FuzzBody(f *testing.F) {
	for _, s := range []string{"", "text", "\x00", "\xff\xfe", "=", "日本", "\uffff", "a\tb\n", string(rune(0x10ffff))} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		text, isBase64 := encodeBody(body)
		if !plain([]byte(text)) {
			t.Fatalf("%q is sent as %q", body, text)
		}
		back, ok := []byte(text), true
		if isBase64 {
			back, ok = decodeBody(text)
		}
		if !ok || !bytes.Equal(back, body) {
			t.Fatalf("%q came back as %q", body, back)
		}
	})
}

func FuzzGroup(f *testing.F) {
	for _, s := range []string{"k", "order/42=a b", "%-7", "%20", "ü", "\x00"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, key []byte) {
		group, err := groupOf(key)
		if len(key) == 0 || err != nil {
			return
		}
		if back := keyOf(group); !bytes.Equal(back, key) {
			t.Fatalf("key %q is group %q, and came back as %q", key, group, back)
		}
	})
}

// TestGroupsOfNoKey are none that a key could have, and none that another program gave is lost.
func TestGroupsOfNoKey(t *testing.T) {
	s := spread{groups: 2}
	if a, b, c := s.group(), s.group(), s.group(); a == b || a != c || keyOf(a) != nil {
		t.Errorf("groups %q, %q, %q", a, b, c)
	}
	if key := keyOf("50%"); string(key) != "50%" {
		t.Errorf("a group that others named is key %q", key)
	}
}
