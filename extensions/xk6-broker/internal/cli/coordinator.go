package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"go.k6.io/k6/v2/cmd/state"
	"go.k6.io/k6/v2/errext"
	"go.k6.io/k6/v2/errext/exitcodes"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/coordinator"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
)

// coordinating are the options of coordinator.
type coordinating struct {
	merging
	listen  string
	test    string // BROKER_RUN of its processes
	timeout time.Duration
}

func newCoordinator(gs *state.GlobalState) *cobra.Command {
	var o coordinating
	c := &cobra.Command{
		Use:   "coordinator --processes N -o OUT",
		Short: "Start the processes of one test together, receive their results, and join them into one",
		Long: "Waits until all processes of a test are ready, compares their clocks, and receives their results when they end. Each process has BROKER_COORDINATOR=http://HOST:PORT\n" +
			"in its environment. Then it does what merge does. The results of each process are in OUT-processes.\n" +
			"With BROKER_COORDINATOR_TOKEN in its environment it refuses processes that have another one, or none.",
		Example: "  k6 x broker coordinator --processes 2 -o results/nightly-17 --fail-if 'lost > 0'\n" +
			"  BROKER_COORDINATOR=http://127.0.0.1:6464 ./k6 run --execution-segment 0:1/2 --execution-segment-sequence 0,1/2,1 script.js",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return o.run(gs) },
	}
	o.flags(c)
	c.Flags().StringVar(&o.listen, "listen", "127.0.0.1:6464", "the address to listen on; 0.0.0.0:6464 is for processes on other machines")
	c.Flags().StringVar(&o.test, "run", "", "the BROKER_RUN of the test (default that of the first process)")
	c.Flags().DurationVar(&o.timeout, "timeout", 5*time.Minute, "how long a process is waited for")
	_ = c.MarkFlagRequired("processes") // the flag is there
	return c
}

func (o *coordinating) run(gs *state.GlobalState) error {
	conditions, err := o.check()
	if err != nil {
		return err
	}
	if o.timeout <= 0 {
		return fmt.Errorf("--timeout %v: give how long to wait, such as 5m", o.timeout)
	}
	folder := report.Folder{Dir: filepath.Dir(o.out), Name: filepath.Base(o.out), Overwrite: o.overwrite}
	if err := folder.Check(); err != nil {
		return err
	}
	processes := folder.Path() + "-processes"
	if _, err := os.Stat(processes); err == nil && !o.overwrite {
		return fmt.Errorf("the folder %s %w: choose another -o, or --overwrite", processes, report.ErrExists)
	}
	tell := func(text string) { _, _ = fmt.Fprintln(gs.Stderr, text) }
	server := coordinator.New(coordinator.Config{
		Run: o.test, Name: fmt.Sprintf("%s-%d", folder.Name, time.Now().UnixNano()), Token: gs.Env["BROKER_COORDINATOR_TOKEN"], Processes: o.processes,
		Timeout: o.timeout, Dir: processes, Tell: tell, Unpack: unpack,
	})
	listener, err := net.Listen("tcp", o.listen)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	ctx, stop := signalled(gs)
	defer stop()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	serving := &http.Server{Handler: server, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		if err := serving.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			cancel(err)
		}
	}()
	defer func() { _ = serving.Close() }()
	tell(fmt.Sprintf("waiting for %d processes: BROKER_COORDINATOR=http://%s", o.processes, reached(listener.Addr())))
	err = server.Wait(ctx)
	dirs, missing := server.Results()
	if err != nil {
		return o.interrupted(context.Cause(ctx), dirs, missing)
	}
	if len(missing) > 0 {
		tell("missing: " + strings.Join(missing, ", "))
	}
	if len(dirs) == 0 {
		return fmt.Errorf("no process sent its results within %v (--timeout)", o.timeout)
	}
	o.absent = missing
	return o.join(gs, dirs, folder, conditions)
}

// unpack writes what a process has sent into a folder.
func unpack(packed *os.File, size int64, folder string, of coordinator.Hello) error {
	// One of an earlier test is there only with --overwrite.
	if err := errors.Join(os.RemoveAll(folder), os.MkdirAll(folder, 0o755)); err != nil { //gosec:disable G301 -- anybody may read results
		return err
	}
	if err := report.Unpack(packed, size, folder); err != nil {
		return err
	}
	part, err := report.ReadPart(folder)
	switch {
	case err != nil:
		return err
	case part.Ledger == nil || part.Ledger.Instance != of.Instance || part.Result.Instance != of.Instance:
		return fmt.Errorf("it is not a result of instance %d with its %s", of.Instance, report.LedgerFile)
	}
	return nil
}

// signalled ends when the user, or the system, asks for the end.
func signalled(gs *state.GlobalState) (context.Context, func()) {
	ctx, cancel := context.WithCancel(gs.Ctx)
	signals := make(chan os.Signal, 1)
	gs.SignalNotify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		select {
		case <-signals:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, func() { gs.SignalStop(signals); cancel() }
}

// interrupted says what is missing, and how what is there is merged.
func (o *coordinating) interrupted(why error, dirs, missing []string) error {
	text := "interrupted"
	if !errors.Is(why, context.Canceled) {
		text = why.Error()
	}
	text += "; missing: " + strings.Join(missing, ", ")
	if len(dirs) > 0 {
		text += fmt.Sprintf("; k6 x broker merge %s -o %s --processes %d merges what is there", strings.Join(dirs, " "), o.out, o.processes)
	}
	return errext.WithExitCodeIfNone(errors.New(text), exitcodes.ExternalAbort)
}

// reached is where processes find a listener: one on all addresses has none of its own to name.
func reached(listening net.Addr) string {
	if a, ok := listening.(*net.TCPAddr); ok && a.IP.IsUnspecified() {
		return fmt.Sprint("HOST:", a.Port)
	}
	return listening.String()
}
