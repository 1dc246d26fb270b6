package collect_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/collect"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// What a collector wrote that was killed before it had done all may be replaced by the next one, and nothing else may.
func TestAWholeIsUnfinishedUntilItsCollectorHasDoneAll(t *testing.T) {
	out := filepath.Join(t.TempDir(), "whole")
	dir := out + "-processes"
	write := func(run uint32) {
		t.Helper()
		whole := &result.Result{Version: result.Version, Name: "whole", Run: run, Topics: []result.Topic{}}
		if err := (report.Folder{Dir: filepath.Dir(out), Name: "whole", Overwrite: true}).Write(whole, nil); err != nil {
			t.Fatal(err)
		}
	}
	is := func(when string, want bool) {
		t.Helper()
		if got := collect.Unfinished(dir, out); got != want {
			t.Errorf("%s: unfinished %v", when, got)
		}
	}
	is("before anything is there", false)
	b := begin(t, dir, "", 3)
	if err := b.send(process(1), packed(process(1))); err != nil {
		t.Fatal(err)
	}
	write(7)
	is("while it waits for processes, of somebody else's result", false)
	if err := b.Merge(); err != nil {
		t.Fatal(err)
	}
	is("when it is merged", true)
	write(8)
	is("of another test", false)
	if err := os.RemoveAll(out); err != nil {
		t.Fatal(err)
	}
	is("where none is there", false)
	write(7)
	b.end()
	is("when its collector is gone", true)
	next := begin(t, dir, "", 3)
	if got := next.here(); !slices.Equal(got, []string{".merging", "p1"}) {
		t.Errorf("here are %q", got)
	}
	is("when the next is there", true)
	next.Merged()
	is("when all is done", false)
}

// Two collectors of one folder would each have a part of the processes.
func TestAFolderHasOneCollector(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "whole-processes")
	synctest.Test(t, func(t *testing.T) {
		open := func() (*collect.Collector, string, error) {
			var told []string
			c, err := collect.Open(dir, collect.Test{}, func(text string) { told = append(told, text) })
			return c, strings.Join(told, ", "), err
		}
		first, told, err := open()
		if err != nil || told != "" {
			t.Fatal(told, err)
		}
		if _, told, err := open(); err == nil || !strings.Contains(err.Error(), "another collector is at work in "+dir) || !strings.Contains(told, "waiting for its end") {
			t.Error(told, err)
		}
		gone := make(chan error, 1)
		go func() {
			synctest.Wait() // until it waits
			gone <- first.Close()
		}()
		second, told, err := open()
		if err != nil || !strings.Contains(told, "waiting for its end") {
			t.Fatal(told, err)
		}
		if err := <-gone; err != nil {
			t.Error(err)
		}
		if err := second.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Error("the folder stays, though nothing came")
		}
	})
}
