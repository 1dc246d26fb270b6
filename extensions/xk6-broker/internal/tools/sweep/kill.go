package sweep

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

var errNotKilled = errors.New("it had ended before it was to be killed")

// meanwhile is where a process that is to be killed leaves its results so far.
func (r *Runner) meanwhile(c Cell) string {
	return report.Folder{Dir: r.Folder, Name: c.Folder}.Meanwhile().Path()
}

// kill runs a command that is killed, as by the system: it hears nothing of that, and closes nothing. Its time counts from its first message on, sent and
// confirmed or received, by what it says meanwhile.
func (r *Runner) kill(ctx context.Context, c Cell, env []string, log io.Writer, args ...string) error {
	cmd := prepare(ctx, env, log, args...)
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	look := time.NewTicker(100 * time.Millisecond)
	defer look.Stop()
	var due <-chan time.Time
	for killed := false; ; {
		select {
		case err := <-ended:
			switch {
			case killed:
				return nil
			case slices.Contains(whole, cmd.ProcessState.ExitCode()):
				return errNotKilled
			}
			return err
		case <-look.C:
			if due != nil {
				continue
			}
			switch so, err := report.Read(r.meanwhile(c)); {
			case errors.Is(err, fs.ErrNotExist): // it has not begun
			case err != nil:
				return errors.Join(err, cmd.Process.Kill(), <-ended)
			case busy(so):
				due = time.After(c.Kill.After)
			}
		case <-due:
			killed = cmd.Process.Kill() == nil // else it has ended
		}
	}
}

// busy tells whether a run has had a message confirmed, or received one.
func busy(r *result.Result) bool {
	return slices.ContainsFunc(r.Topics, func(t result.Topic) bool {
		return t.Counts[recording.Confirmed.String()] > 0 || t.Counts[recording.Received.String()] > 0
	})
}

// left gives what a process that was killed has left, which becomes the cell's result.
func (r *Runner) left(c Cell) (*result.Result, error) {
	if err := os.Rename(r.meanwhile(c), r.Path(c)); errors.Is(err, fs.ErrNotExist) {
		return nil, errNotKilled
	} else if err != nil {
		return nil, fmt.Errorf("study: %w", err)
	}
	return report.Read(r.Path(c))
}
