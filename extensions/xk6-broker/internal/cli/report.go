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
	c := &cobra.Command{
		Use: "report DIR...", Short: "Draw report.html anew from summary.json, or look at a part of the run",
		Long: "Draws report.html anew from summary.json. With --phase, or --from and --to, it prints the tables of that part of the run, beside the whole,\n" +
			"and draws a page of its own for it; the verdict stays the run's.",
		Example: "  k6 x broker report results/nightly --from 30s --to 90s\n  k6 x broker report results/nightly --phase peak",
		Args:    cobra.MinimumNArgs(1),
	}
	c.Flags().StringVar(&phase, "phase", "", "the phase of the run to look at")
	c.Flags().DurationVar(&from, "from", 0, "look at the run after this time from the start")
	c.Flags().DurationVar(&to, "to", 0, "look at the run before this time from the start (default the end)")
	c.RunE = func(_ *cobra.Command, dirs []string) error {
		for _, dir := range dirs {
			r, err := report.Read(dir)
			if err != nil {
				return err
			}
			if filepath.Base(dir) == report.SummaryFile {
				dir = filepath.Dir(dir)
			}
			page := report.PageFile
			if phase != "" || from != 0 || to != 0 {
				if err := cut(dir, r, phase, from, to); err != nil {
					return fmt.Errorf("%s: %w", dir, err)
				}
				page = report.Sanitise("report-"+r.Leading) + filepath.Ext(page)
				if err := report.Text(gs.Stdout, r); err != nil {
					return err
				}
			}
			path := filepath.Join(dir, page)
			if err := report.WriteAtomic(path, func(w io.Writer) error { return report.HTML(w, r) }); err != nil {
				return err
			}
			fmt.Fprintln(gs.Stdout, path)
		}
		return nil
	}
	return c
}

// cut lets a phase, or the part between two times, lead the result.
func cut(dir string, r *result.Result, phase string, from, to time.Duration) error {
	if phase == "" {
		end := to.Seconds()
		if to == 0 {
			end = r.Seconds
		}
		if from < 0 || end <= from.Seconds() {
			return fmt.Errorf("--from %v must be 0 or more, and before --to %v", from, to)
		}
		return report.Recut(dir, r, from.Seconds(), end)
	}
	if from != 0 || to != 0 {
		return errors.New("give --phase, or --from and --to")
	}
	if r.Phase(phase) == nil {
		return fmt.Errorf("there was no phase %q: there were %s", phase, strings.Join(r.PhaseNames(), ", "))
	}
	r.Leading = phase
	return nil
}
