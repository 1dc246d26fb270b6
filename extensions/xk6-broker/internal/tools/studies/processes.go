package studies

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/sweep"
)

// before runs what a cell has run before it, which is not measured.
func (r *Run) before(ctx context.Context, cell sweep.Cell, settings sweep.Values) (sweep.Outcome, error) {
	cell.Folder, cell.Settings = cell.Folder+"-before", settings
	o, err := r.Runner.Run(ctx, cell)
	switch {
	case err != nil || o.Cut:
	case o.Error != "":
		o.Error = "what is run before it: " + o.Error
	case o.ExitCode != 0:
		o.Error = fmt.Sprintf("what is run before it ended with exit code %d: see %s in %s", o.ExitCode, sweep.LogFile, cell.Folder)
	}
	return o, err
}

// together runs a cell as several processes of one test, and merges what they find out. The commands of the study were run before.
func (r *Run) together(ctx context.Context, cell sweep.Cell, processes []sweep.Cell) (sweep.Outcome, error) {
	runner := r.Runner
	runner.Reset, runner.BeforeCell, runner.Pause = "", "", 0
	runner.Keep = true // to merge takes the ledgers
	all, errs := make([]sweep.Outcome, len(processes)), make([]error, len(processes))
	started := time.Now().UnixNano() // no other test has the name
	var running sync.WaitGroup
	for i := range all {
		one := processes[i]
		one.Index, one.Repetition = cell.Index, cell.Repetition
		one.Folder = fmt.Sprintf("%s-%d", cell.Folder, i+1)
		one.Run, one.Processes = fmt.Sprintf("%s-%d", cell.Folder, started), len(processes)
		running.Go(func() { all[i], errs[i] = runner.Run(ctx, one) })
	}
	running.Wait()
	if err := errors.Join(errs...); err != nil {
		return sweep.Outcome{}, err
	}
	whole := all[0]
	whole.Cell = cell
	parts := make([]result.Part, len(processes))
	for i, o := range all {
		if o.Started.Before(whole.Started) {
			whole.Started = o.Started
		}
		if o.Ended.After(whole.Ended) {
			whole.Ended = o.Ended
		}
		whole.ExitCode, whole.Cut = max(whole.ExitCode, o.ExitCode), whole.Cut || o.Cut
		if o.Error != "" {
			whole.Error, whole.Result = fmt.Sprintf("process %d of %d: %s", i+1, len(processes), o.Error), nil
			return whole, nil
		}
		part, err := report.ReadPart(runner.Path(o.Cell))
		if err != nil {
			return whole, err
		}
		parts[i] = part
	}
	merged, err := result.Merge(parts, result.Siblings{Killed: slices.ContainsFunc(processes, func(c sweep.Cell) bool { return c.Kill != nil })})
	if err != nil {
		whole.Error, whole.Result = err.Error(), nil
		return whole, nil //nolint:nilerr // it is the cell's failure, and not the study's
	}
	merged.Name, whole.Result = cell.Folder, merged
	if err := os.RemoveAll(runner.Path(cell)); err != nil { // what an interrupted study left of it
		return whole, fmt.Errorf("study: %w", err)
	}
	if err := (report.Folder{Dir: runner.Folder, Name: cell.Folder}).Write(merged, nil); err != nil {
		return whole, err
	}
	return whole, r.thin(all)
}

// thin leaves of the processes what they printed, unless all is to be kept.
func (r *Run) thin(processes []sweep.Outcome) error {
	if r.Runner.Keep {
		return nil
	}
	for _, o := range processes {
		folder := r.Runner.Path(o.Cell)
		entries, err := os.ReadDir(folder)
		if err != nil {
			return fmt.Errorf("study: %w", err)
		}
		for _, e := range entries {
			if e.Name() != sweep.LogFile {
				if err := os.RemoveAll(filepath.Join(folder, e.Name())); err != nil {
					return fmt.Errorf("study: %w", err)
				}
			}
		}
	}
	return nil
}
