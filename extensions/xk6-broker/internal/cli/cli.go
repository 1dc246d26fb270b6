// Package cli has the subcommands of `k6 x broker`. Each is flags and a call of a tool.
package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/spf13/cobra"
	"go.k6.io/k6/v2/cmd/state"
	"go.k6.io/k6/v2/errext"
	"go.k6.io/k6/v2/errext/exitcodes"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/cells"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/merge"
)

// New returns the command.
func New(gs *state.GlobalState) *cobra.Command {
	root := &cobra.Command{Use: "broker", Short: "Work on the results of broker tests"}
	root.AddCommand(newReport(gs), newCompare(gs), newMerge(gs), newCoordinator(gs))
	root.AddCommand(newSweep(gs), newCapacity(gs), newStudy(gs))
	return root
}

// command returns a subcommand. Its errors get their exit codes.
func command(use, short, example string, args cobra.PositionalArgs, run func([]string) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Example: example, Args: args,
		RunE: func(_ *cobra.Command, args []string) error { return withCode(run(args)) },
	}
}

func withCode(err error) error {
	switch {
	case errors.Is(err, merge.ErrInvalid), errors.Is(err, merge.ErrCondition):
		return errext.WithExitCodeIfNone(err, exitcodes.ThresholdsHaveFailed)
	case errors.Is(err, cells.ErrStopped), errors.Is(err, merge.ErrInterrupted):
		return errext.WithExitCodeIfNone(err, exitcodes.ExternalAbort)
	}
	return err
}

// interruptible returns a channel that the first Ctrl-C closes, and a context that ends at the
// second or at SIGTERM.
func interruptible(gs *state.GlobalState) (ctx context.Context, stop <-chan struct{}, release func()) {
	ctx, cancel := context.WithCancel(gs.Ctx)
	signals, stopping := make(chan os.Signal, 2), make(chan struct{})
	gs.SignalNotify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		if got := <-signals; got == os.Interrupt {
			fmt.Fprintln(gs.Stderr, "\n  the study ends after this cell; Ctrl-C once more ends the cell, too")
			close(stopping)
			<-signals
		}
		cancel()
	}()
	return ctx, stopping, func() { gs.SignalStop(signals); cancel() }
}

// do runs a study until it ends or is interrupted.
func do(gs *state.GlobalState, s *cells.Study, run func(context.Context) error) error {
	ctx, stop, release := interruptible(gs)
	defer release()
	s.Stop, s.Out = stop, gs.Stdout
	err := run(ctx)
	if s.Asked != nil {
		fmt.Fprintf(gs.Stdout, "\n  results: %s/%s\n", s.Folder, cells.PageFile)
	}
	return err
}
