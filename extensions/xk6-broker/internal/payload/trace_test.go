package payload

import (
	"strings"
	"testing"
)

func TestTrace(t *testing.T) {
	due, sizes, keys, err := Trace("# a morning\n0 100 a\n\n0.5 20\n1s 7 b # the last\n")
	if err != nil || due != "\n0\n\n0.5\n1s\n" {
		t.Fatalf("%q, %v", due, err)
	}
	for n, want := range []struct {
		size int
		key  string
	}{{100, "a"}, {20, ""}, {7, "b"}, {100, "a"}} {
		if size, key := sizes.choose(uint64(n), 0), string(keys.choose(uint64(n), 0)); size != want.size || key != want.key {
			t.Errorf("message %d: %d, %q", n, size, key)
		}
	}
	if due, sizes, keys, err = Trace("0\n1\n"); due != "0\n1\n" || sizes != nil || keys != nil || err != nil {
		t.Errorf("%q, %v, %v, %v", due, sizes, keys, err)
	}
	if _, sizes, keys, err = Trace("0 1\n1 2\n"); sizes == nil || keys != nil || err != nil {
		t.Errorf("%v, %v, %v", sizes, keys, err)
	}
	for text, want := range map[string]string{
		"0 1\n1\n":           "1 of 2 lines have no size",
		"0\n# x\n1 2\n":      "line 3 has a size",
		"0 x":                `line 1: "x" is not a size`,
		"0 -1":               "not a size",
		"0 4294967296":       "not a size",
		"0 1 a b":            "line 1: a due time, a size and a key",
		"0 1 a # b\n1 2 3 4": "line 2: a due time",
	} {
		if _, _, _, err := Trace(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
