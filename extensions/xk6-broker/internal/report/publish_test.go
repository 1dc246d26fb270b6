package report_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
)

// Of drafts that a killed process left only what a run writes is removed: what somebody put beside results may have been on its way to the new ones.
func TestDraftsOfAKilledProcessAreRemoved(t *testing.T) {
	dir := t.TempDir()
	f := report.Folder{Dir: dir, Name: "whole", Overwrite: true, Drafts: filepath.Join(dir, "drafts")}
	if err := f.RemoveDrafts(); err != nil {
		t.Errorf("there are none: %v", err)
	}
	put := func(names ...string) {
		t.Helper()
		for _, name := range names {
			path := filepath.Join(dir, filepath.FromSlash(name))
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte("half"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	put("drafts/.whole-1/summary.json", "drafts/.whole-1/orders.e2e_latency.hgrm", "drafts/.whole-old-2/whole/summary.json", ".whole-3/summary.json")
	if err := f.RemoveDrafts(); err != nil || len(files(t, f.Drafts)) != 0 {
		t.Errorf("there stay %q: %v", files(t, f.Drafts), err)
	}
	if got := files(t, dir); !slices.Equal(got, []string{".whole-3", "drafts"}) {
		t.Errorf("another's draft is gone: %q", got)
	}
	put("drafts/.whole-1/summary.json", "drafts/.whole-1/mine.txt", "drafts/.whole-1/whole/summary.json", "drafts/.whole-old-2/whole/mine/summary.json")
	if err := f.RemoveDrafts(); err == nil {
		t.Error("nobody hears of what stays")
	}
	for path, want := range map[string][]string{
		".whole-1": {"mine.txt", "whole"}, ".whole-1/whole": {"summary.json"}, ".whole-old-2/whole": {"mine"}, ".whole-old-2/whole/mine": {"summary.json"},
	} {
		if got := files(t, filepath.Join(f.Drafts, path)); !slices.Equal(got, want) {
			t.Errorf("in %s are %q, want %q", path, got, want)
		}
	}
	if err := f.Write(stalled(), nil); err != nil { // over nothing, and over results
		t.Fatal(err)
	}
	put("whole/mine.txt")
	if err := f.Write(stalled(), nil); err != nil {
		t.Fatal(err)
	}
	if got := files(t, f.Path()); !slices.Contains(got, "mine.txt") || !slices.Contains(got, report.SummaryFile) {
		t.Errorf("in the results are %q", got)
	}
	if got := files(t, f.Drafts); !slices.Equal(got, []string{".whole-1", ".whole-old-2"}) {
		t.Errorf("among the drafts are %q", got)
	}
}
