package report

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// publish gives a draft its name. What has that name now is moved out of the way as a whole, and its results go: so whoever comes last
// has the name, and nothing is ever of two runs. It reports whether the draft is to stay, as it does after an error if by then it holds what
// was in the folder beside results.
func (f Folder) publish(draft string) (stays bool, err error) {
	for {
		err := os.Rename(draft, f.Path()) // fails where there is a folder with anything in it
		if err == nil {
			return true, nil
		}
		_, there := os.Lstat(f.Path())
		switch {
		case there != nil && errors.Is(err, fs.ErrExist):
			continue // it was there when it mattered
		case there != nil:
			return stays, err
		case !f.Overwrite:
			return false, fmt.Errorf("the folder %s %w", f.Path(), ErrExists)
		}
		moved, err := f.takeOver(draft)
		if stays = stays || moved; err != nil {
			return stays, fmt.Errorf("the folder %s %w and cannot be replaced: %w", f.Path(), ErrExists, err)
		}
	}
}

var errNoResults = errors.New("it holds no results")

// takeOver moves what has the folder's name out of the way, and into the draft what no run has written there; it reports whether there was
// any. After an error everything is where it was.
func (f Folder) takeOver(draft string) (moved bool, err error) {
	aside, err := os.MkdirTemp(f.Dir, f.aside()+"*")
	if err != nil {
		return false, err
	}
	old := filepath.Join(aside, f.Name)
	if err := os.Rename(f.Path(), old); err != nil {
		_ = os.Remove(aside)
		if errors.Is(err, fs.ErrNotExist) { // another process was quicker
			return false, nil
		}
		return false, err
	}
	others := []string{}
	if err = errNoResults; replaceable(old) { // now that no other process has it
		others, err = moveOthers(old, draft)
	}
	if err != nil {
		for _, name := range others {
			err = errors.Join(err, os.Rename(filepath.Join(draft, name), filepath.Join(old, name)))
		}
		return false, errors.Join(err, os.Rename(old, f.Path()), os.Remove(aside))
	}
	_ = os.RemoveAll(aside) // if it cannot go, the new results are worth more than tidiness
	return len(others) > 0, nil
}

// moveOthers moves what no run has written from one folder into another, and names what it has moved.
func moveOthers(from, to string) (moved []string, err error) {
	entries, err := os.ReadDir(from)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if isResult(e.Name()) {
			continue
		}
		if err := os.Rename(filepath.Join(from, e.Name()), filepath.Join(to, e.Name())); err != nil {
			return moved, err
		}
		moved = append(moved, e.Name())
	}
	return moved, nil
}

// isResult reports whether a file is one that a run writes.
func isResult(name string) bool {
	switch name {
	case SummaryFile, PageFile, LedgerFile, RecordingFile:
		return true
	}
	return strings.HasSuffix(name, hgrm) || strings.HasSuffix(name, hlog)
}

// aside begins the names of folders that have what was moved out of the way.
func (f Folder) aside() string { return "." + f.Name + "-old-" }
