package report

import (
	"errors"
	"io/fs"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict"
)

// Recut adds to the result of a folder the phase from one time to another, in seconds from the start, and lets it lead.
// See [result.Result.Cut].
func Recut(folder string, r *result.Result, from, to float64) error {
	if r.Several() {
		return errors.New("a result of several processes cannot be cut: cut that of each process, which has " + RecordingFile)
	}
	rec, err := ReadRecording(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New("there is no " + RecordingFile + ", which has what was measured second by second")
	}
	if err != nil {
		return err
	}
	if err := r.Cut(rec, from, to); err != nil {
		return err
	}
	verdict.Describe(r)
	return nil
}
