package cli

import (
	"os"
	"path/filepath"
	"testing"
)

// Two comparisons of one second are two pages.
func TestAPageOfItsOwn(t *testing.T) {
	name := filepath.Join(t.TempDir(), "compare-20260102T030405Z")
	for _, want := range []string{".html", "-2.html", "-3.html"} {
		page := freePage(name)
		if page != name+want {
			t.Fatalf("%s, want %s", page, name+want)
		}
		if err := os.WriteFile(page, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
