package cli

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.k6.io/k6/v2/cmd/state"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

func newReport(gs *state.GlobalState) *cobra.Command {
	var phase string
	var from, to time.Duration
	c := command("report DIR...", "Draw report.html anew from summary.json, or look at a part of the run",
		"  k6 x broker report results/nightly --from 30s --to 90s\n  k6 x broker report results/nightly --phase peak",
		cobra.MinimumNArgs(1), func(dirs []string) error {
			for _, dir := range dirs {
				if err := draw(gs.Stdout, dir, phase, from, to); err != nil {
					return fmt.Errorf("%s: %w", dir, err)
				}
			}
			return nil
		})
	c.Flags().StringVar(&phase, "phase", "", "the phase of the run to look at")
	c.Flags().DurationVar(&from, "from", 0, "look at the run after this time from the start")
	c.Flags().DurationVar(&to, "to", 0, "look at the run before this time from the start (default the end)")
	return c
}

// draw writes the page of a result, or prints a part of the run and writes a page for it.
func draw(w io.Writer, dir, phase string, from, to time.Duration) error {
	r, err := report.Read(dir)
	if err != nil {
		return err
	}
	if filepath.Base(dir) == report.SummaryFile {
		dir = filepath.Dir(dir)
	}
	path := filepath.Join(dir, report.PageFile)
	if phase != "" || from != 0 || to != 0 {
		if err := cut(dir, r, phase, from, to); err != nil {
			return err
		}
		path = filepath.Join(dir, report.Sanitise("report-"+r.Leading)+filepath.Ext(path))
		if err := report.Text(w, r); err != nil {
			return err
		}
	}
	fmt.Fprintln(w, path)
	return report.WriteAtomic(path, func(w io.Writer) error { return report.HTML(w, r) })
}

// cut lets a phase, or the part between two times, lead the result.
func cut(dir string, r *result.Result, phase string, from, to time.Duration) error {
	switch {
	case phase == "" && to == 0:
		return report.Recut(dir, r, from.Seconds(), r.Seconds)
	case phase == "":
		return report.Recut(dir, r, from.Seconds(), to.Seconds())
	case from != 0 || to != 0:
		return errors.New("give --phase, or --from and --to")
	case r.Phase(phase) == nil:
		return fmt.Errorf("there was no phase %q: there were %s", phase, strings.Join(r.PhaseNames(), ", "))
	}
	r.Leading = phase
	return nil
}
