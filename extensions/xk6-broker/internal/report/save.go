package report

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// Save writes results that must not be lost, and gives the folder that has them. Where the folder is taken they go to one whose name has a
// number at the end, and where nothing can be written there, to a folder in the system's directory for temporary files. There is an error
// unless all of them are in the directory that was asked for; the folder is empty where none are anywhere.
func (f Folder) Save(r *result.Result, ledger *account.Ledger) (Folder, error) {
	write := func(f Folder) error {
		named := *r
		named.Name = f.Name
		return f.Write(&named, ledger)
	}
	asked := f
	err := write(f)
	for errors.Is(err, ErrExists) { // another run may take a free name first
		f = asked.Free()
		err = write(f)
	}
	incomplete := (*IncompleteError)(nil)
	if err == nil || errors.As(err, &incomplete) {
		return f, err
	}
	dir, tempErr := os.MkdirTemp("", "results-*")
	if tempErr != nil {
		return Folder{}, errors.Join(err, tempErr)
	}
	elsewhere := Folder{Dir: dir, Name: f.Name}
	if tempErr := write(elsewhere); tempErr != nil && !errors.As(tempErr, &incomplete) {
		_ = os.Remove(dir)
		return Folder{}, errors.Join(err, tempErr)
	} else if tempErr != nil {
		err = errors.Join(err, tempErr)
	}
	return elsewhere, fmt.Errorf("%w\nthe results are in %s instead", err, elsewhere.Path())
}

// IncompleteError is the error of results of which some files could not be written.
type IncompleteError struct {
	Folder  string
	Missing []Missing
}

// Missing is a file that is not there, and why.
type Missing struct {
	Name string
	Err  error
}

// Error names the files by the reason why they are missing.
func (e *IncompleteError) Error() string {
	var reasons []string
	files := map[string][]string{}
	for _, m := range e.Missing {
		reason := m.Err.Error()
		if path := (*fs.PathError)(nil); errors.As(m.Err, &path) { // without the path, which is the draft's
			reason = path.Err.Error()
		}
		if files[reason] == nil {
			reasons = append(reasons, reason)
		}
		files[reason] = append(files[reason], m.Name)
	}
	for i, reason := range reasons {
		reasons[i] = fmt.Sprintf("%s (%s)", strings.Join(files[reason], ", "), reason)
	}
	return fmt.Sprintf("report: the results in %s are not complete, there are missing %s", e.Folder, strings.Join(reasons, "; "))
}
