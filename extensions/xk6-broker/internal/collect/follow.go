package collect

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
)

// What a collector has in its folder besides results.
const (
	draft   = ".draft-"  // begins the names of what is not yet received
	lock    = ".lock"    // is held by the collector that is at work
	merging = ".merging" // is a folder in which the whole is made, and is there until its collector has done all
)

// dying is how long a collector may take to end that is to be replaced, and mostly has to be killed for it.
const dying = 15 * time.Second

// hold makes a folder, and keeps other collectors from it until this one has ended, in whatever way.
func hold(dir string, tell func(string)) (*flock.Flock, error) {
	l, told := flock.New(filepath.Join(dir, lock)), false
	for end := time.Now().Add(dying); ; time.Sleep(50 * time.Millisecond) {
		if err := os.MkdirAll(dir, 0o777); err != nil { //gosec:disable G301 -- as the user's umask has it
			return nil, fmt.Errorf("collect: %w", err)
		}
		got, err := l.TryLock()
		switch {
		case got, errors.Is(err, errors.ErrUnsupported): // not every file system has locks
			return l, nil
		case err != nil && !errors.Is(err, fs.ErrNotExist): // one that ends takes an empty folder with it
			return nil, fmt.Errorf("collect: %w", err)
		case time.Now().After(end):
			return nil, fmt.Errorf("collect: another collector is at work in %s: each has a folder (-o) of its own", dir)
		case !told:
			told = true
			tell(fmt.Sprintf("another collector is at work in %s: waiting for its end, for up to %v", dir, dying))
		}
	}
}

// Close lets other collectors have the folder, which goes if nothing came.
func (c *Collector) Close() error {
	_ = os.Remove(c.held.Path()) // while nobody else can have it, where the system lets it; nothing is meant by it
	err := c.held.Close()
	_ = os.Remove(c.dir) // fails if something came
	if err != nil {
		return fmt.Errorf("collect: %w", err)
	}
	return nil
}

// Drafts is the folder where the whole is made, in the time from Merge to Merged.
func (c *Collector) Drafts() string { return filepath.Join(c.dir, merging) }

// Merge notes that the whole is made from now on.
func (c *Collector) Merge() error {
	if err := errors.Join(os.MkdirAll(c.Drafts(), 0o777), syncFolder(c.dir)); err != nil { //gosec:disable G301 -- as the user's umask has it
		return fmt.Errorf("collect: %w", err)
	}
	return nil
}

// Merged notes that all is done: the whole is there for good.
func (c *Collector) Merged() { _ = os.Remove(c.Drafts()) } // fails if something stays there that no run has written

// Unfinished tells whether a result is of what is collected in a folder, by a collector that was killed before it had ended: the one after it may replace it.
func Unfinished(dir, whole string) bool {
	if _, err := os.Stat(filepath.Join(dir, merging)); err != nil {
		return false
	}
	result, err := report.Read(whole)
	if err != nil {
		return false
	}
	entries, _ := os.ReadDir(dir) // Open says what is wrong with it
	for _, e := range entries {
		if part, err := report.Read(filepath.Join(dir, e.Name())); err == nil {
			return part.Run == result.Run
		}
	}
	return false
}
