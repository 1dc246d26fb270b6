package report_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// A name that is taken is no reason to lose results, even where it has no room for a number, and even if it was free a moment ago.
func TestSavedResultsGoToANameThatIsFree(t *testing.T) {
	dir := t.TempDir()
	long := strings.Repeat("x", 100)
	for _, name := range []string{"a", long} {
		for range 3 {
			folder, err := report.Folder{Dir: dir, Name: name}.Save(stalled(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if read, err := report.Read(folder.Path()); err != nil || read.Name != folder.Name {
				t.Errorf("%s: %v, %v", folder.Path(), read, err)
			}
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := (report.Folder{Dir: dir, Name: "file", Overwrite: true}).Save(stalled(), nil); err != nil {
		t.Error(err)
	}
	want := []string{"a", "a-2", "a-3", "file", "file-2", long[:98] + "-2", long[:98] + "-3", long}
	if got := files(t, dir); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	small := stalled()
	small.Topics = small.Topics[1:]
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			if _, err := (report.Folder{Dir: dir, Name: "b"}).Save(small, nil); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got := files(t, dir); len(got) != len(want)+5 {
		t.Errorf("%q", got)
	}
}

// Runs overwrite one folder at once: at the end it has the results of one of them.
func TestResultsThatAreOverwrittenAtOnceAreNotMixed(t *testing.T) {
	dir := t.TempDir()
	folder := report.Folder{Dir: dir, Name: "a", Overwrite: true}
	// Each run has a topic of its own, and so files that no other has.
	of := func(n int) *result.Result {
		topic := unread()
		topic.Topic = fmt.Sprintf("topic-%d", n)
		topic.Counts["sent"] = int64(n)
		return &result.Result{Version: result.Version, Name: topic.Topic, Topics: []result.Topic{topic}}
	}
	if err := folder.Write(of(0), &account.Ledger{}); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for n := range 6 {
		wg.Go(func() {
			for range 5 {
				if err := folder.Write(of(n+1), nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	r, err := report.Read(folder.Path())
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"report.html", "summary.json", r.Name + ".publish_latency.hgrm"}
	if got := files(t, folder.Path()); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	page, err := os.ReadFile(filepath.Join(folder.Path(), report.PageFile))
	if err != nil || !strings.Contains(string(page), "<title>"+r.Name) {
		t.Errorf("the page is not of %s: %v", r.Name, err)
	}
	if got := files(t, dir); !slices.Equal(got, []string{"a"}) {
		t.Errorf("left behind: %q", got)
	}
}

// huge is a recording that has much of another topic, too.
func huge(rec *recording.Recording) *recording.Recording {
	random, all := rand.New(rand.NewPCG(1, 2)), &recording.Recording{} // the same numbers each time is what it is for
	for _, i := range rec.Intervals() {
		its := *i
		other := recording.Record{Key: recording.Key{Topic: "other"}}
		for l := range other.Latencies {
			for trend := range other.Latencies[l] {
				h := &hist.Histogram{}
				for range 10_000 {
					h.RecordN(random.Int64N(int64(time.Second)), 1+random.Uint64N(1000))
				}
				other.Latencies[l][trend] = h.Pack()
			}
		}
		its.Records = append(slices.Clone(i.Records), other)
		all.Add(&its)
	}
	return all
}

// On a disk that is too small for all, what matters most is there, and the error says what is missing; on one that is too small for
// anything the results go where temporary files go.
func TestAFullDiskLosesAsLittleAsCanBe(t *testing.T) {
	small := t.TempDir()
	mount(t, small, 512<<10)
	t.Setenv("TMPDIR", t.TempDir())
	folder := report.Folder{Dir: filepath.Join(small, "results"), Name: "a"}
	r := stalled()
	fits := r.Recording
	r.Recording = huge(fits)
	saved, err := folder.Save(r, &account.Ledger{})
	if saved != folder || !errors.Is(err, report.ErrIncomplete) || !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), report.RecordingFile+": no space left") {
		t.Fatalf("%+v: %v", saved, err)
	}
	if got := files(t, folder.Path()); strings.Count(err.Error(), "no space left") != 1 || len(got) != 3+2*len(r.Topics[0].Trends)+2 {
		t.Errorf("%v; there %q", err, got)
	}
	if err := os.WriteFile(filepath.Join(small, "filler"), make([]byte, 512<<10), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	folder.Name, r.Recording = "b", fits
	saved, err = folder.Save(r, nil)
	if err == nil || !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "the results are in "+saved.Path()) {
		t.Fatalf("%+v: %v", saved, err)
	}
	if read, err := report.Read(saved.Path()); err != nil || !strings.HasPrefix(saved.Dir, os.Getenv("TMPDIR")) || !sameResult(t, named(r, "b"), read) {
		t.Errorf("%s: %v", saved.Path(), err)
	}
	if got := files(t, filepath.Join(small, "results")); !slices.Equal(got, []string{"a"}) {
		t.Errorf("drafts are left: %q", got)
	}
	t.Setenv("TMPDIR", small)
	if saved, err := folder.Save(r, nil); saved.Name != "" || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("%+v: %v", saved, err)
	}
}

func named(r *result.Result, name string) *result.Result {
	n := *r
	n.Name = name
	return &n
}

// mount mounts a file system of so many bytes in memory.
func mount(t *testing.T, dir string, size int) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "mount", "-t", "tmpfs", "-o", fmt.Sprintf("size=%d", size), "tmpfs", dir).CombinedOutput()
	if err != nil {
		t.Skipf("a small disk cannot be made here: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", dir).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
}
