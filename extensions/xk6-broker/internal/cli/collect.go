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

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/collect"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
)

// collecting are the options of collect.
type collecting struct {
	merging
	listen  string
	test    string // BROKER_RUN of its processes; "" where the first of them says it
	timeout time.Duration
}

// leastSilence is how long nothing must have been heard of a process, at least, for it to be missing.
const leastSilence = 5 * time.Second

func newCollect(gs *state.GlobalState) *cobra.Command {
	var o collecting
	c := &cobra.Command{
		Use:   "collect -o OUT",
		Short: "Receive the results of the processes of one test, and join them into one",
		Long: "Waits for the results of all processes of one test, which send them here when they end, where BROKER_COLLECT=http://HOST:PORT is in their environment.\n" +
			"Then it does what merge does. What has come is in OUT-processes, and stays if this is ended: started again, it goes on with that.\n" +
			"With BROKER_COLLECT_TOKEN in its environment it refuses processes that have another one, or none.",
		Example: "  k6 x broker collect -o results/nightly-17 --run nightly-17 --fail-if 'lost > 0'\n" +
			"  BROKER_RUN=nightly-17 BROKER_COLLECT=http://127.0.0.1:6464 ./k6 run --execution-segment 0:1/2 --execution-segment-sequence 0,1/2,1 script.js",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return o.run(gs) },
	}
	o.flags(c)
	c.Flags().StringVar(&o.listen, "listen", "127.0.0.1:6464", "the address to listen on; 0.0.0.0:6464 is for processes on other machines")
	c.Flags().StringVar(&o.test, "run", "", "the BROKER_RUN of the test (default that of the first process that comes, which may be left from an earlier test)")
	c.Flags().DurationVar(&o.timeout, "timeout", 10*time.Minute, "how long after a process was heard of last those that are missing are waited for")
	return c
}

func (o *collecting) run(gs *state.GlobalState) error {
	conditions, err := o.check()
	if err != nil {
		return err
	}
	if o.timeout < leastSilence {
		return fmt.Errorf("--timeout %v: give how long to wait, at least %v: processes say every two seconds that they go on", o.timeout, leastSilence)
	}
	folder := report.Folder{Dir: filepath.Dir(o.out), Name: filepath.Base(o.out), Overwrite: o.overwrite}
	tell := func(text string) { _, _ = fmt.Fprintln(gs.Stderr, text) }
	processes := folder.Path() + "-processes"
	if collect.Unfinished(processes, folder.Path()) {
		folder.Overwrite = true
		tell(o.out + " is of a collector of this test that was ended before it had done all: it is made again")
	}
	if err := folder.Check(); err != nil {
		return err
	}
	c, err := collect.Open(processes, collect.Test{Run: o.test, Token: gs.Env["BROKER_COLLECT_TOKEN"], Processes: o.processes}, tell)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }() // the system does
	folder.Drafts = c.Drafts()
	if err := folder.RemoveDrafts(); err != nil {
		tell(err.Error())
	}
	listener, err := net.Listen("tcp", o.listen)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	defer func() { _ = listener.Close() }() // the server has, where there is one
	server := &http.Server{Handler: c, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	defer func() { // when all is written: a process that did not hear that it was received may ask until then
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = server.Shutdown(ctx) // what is still sent then is refused anyway
	}()
	tell("collecting for " + o.out + ": BROKER_COLLECT=http://" + reached(listener.Addr()))
	ctx, stop := signalled(gs)
	defer stop()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			cancel(err)
		}
	}()
	err = c.Wait(ctx, o.timeout)
	missing, dirs := c.Missing(), c.Folders()
	switch {
	case errors.Is(err, collect.ErrTimeout) && len(dirs) == 0:
		return fmt.Errorf("nobody sent results: %w for %v", err, o.timeout)
	case errors.Is(err, collect.ErrTimeout):
		tell(fmt.Sprintf("missing: %s; nothing was heard of any for %v", strings.Join(missing, ", "), o.timeout))
	case err != nil:
		return o.interrupted(context.Cause(ctx), c)
	}
	stop()
	o.processes, o.absent = c.Processes(), missing
	if err := c.Merge(); err != nil {
		return err
	}
	err = o.join(gs, dirs, folder, conditions)
	ctx, stop = signalled(gs)
	defer stop()
	if c.Stay(ctx); ctx.Err() == nil {
		c.Merged()
	}
	return err
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
func (o *collecting) interrupted(why error, c *collect.Collector) error {
	missing, dirs := c.Missing(), c.Folders()
	text := "interrupted"
	if !errors.Is(why, context.Canceled) {
		text = why.Error()
	}
	if len(missing) > 0 {
		text += "; missing: " + strings.Join(missing, ", ")
	}
	if len(dirs) > 0 {
		text += fmt.Sprintf("; what has come stays: the same command goes on with it, and k6 x broker merge %s -o %s merges it", strings.Join(dirs, " "), o.out)
		if n := c.Processes(); n > 0 {
			text += fmt.Sprintf(" with --processes %d", n)
		}
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
