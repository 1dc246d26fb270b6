package merge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/coordinator"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
)

// ErrInterrupted is the error of a coordinator that ended before all results were here.
var ErrInterrupted = errors.New("interrupted")

// Coordinator receives the results of the processes of a test, and joins them.
type Coordinator struct {
	Options
	Listen  string
	Test    string // BROKER_RUN of the processes; "" takes that of the first
	Token   string
	Timeout time.Duration // of a process that does not come
	Log     io.Writer
}

func (c *Coordinator) say(text string) { fmt.Fprintln(c.Log, text) }

// Do coordinates a test until all results are here, and joins them.
func (c *Coordinator) Do(ctx context.Context, w io.Writer) error {
	_, folder, err := c.check()
	if err != nil {
		return err
	}
	processes := folder.Path() + "-processes"
	if _, err := os.Stat(processes); err == nil && !c.Overwrite {
		return fmt.Errorf("the folder %s %w: choose another -o, or --overwrite", processes, report.ErrExists)
	}
	server := coordinator.New(coordinator.Config{
		Run: c.Test, Name: fmt.Sprintf("%s-%d", folder.Name, time.Now().UnixNano()), Token: c.Token,
		Processes: c.Processes, Timeout: c.Timeout, Dir: processes, Tell: c.say, Unpack: unpack,
	})
	listener, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	serving := &http.Server{Handler: server, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = serving.Serve(listener) }() // it ends with Close
	defer serving.Close()                       //nolint:errcheck // the process ends
	c.say(fmt.Sprintf("waiting for %d processes: BROKER_COORDINATOR=http://%s", c.Processes, listener.Addr()))
	err = server.Wait(ctx)
	dirs, missing := server.Results()
	if len(missing) > 0 {
		c.say("missing: " + strings.Join(missing, ", "))
	}
	if err != nil {
		return fmt.Errorf("%w: k6 x broker merge joins the folders in %s", ErrInterrupted, processes)
	}
	if len(dirs) == 0 {
		return fmt.Errorf("no process sent its results within %v (--timeout)", c.Timeout)
	}
	return c.Join(w, dirs, missing)
}

// unpack writes the results of a process into a folder, which has an earlier test only with --overwrite.
func unpack(packed *os.File, size int64, folder string, process coordinator.Hello) error {
	//gosec:disable G301 -- others may read results
	if err := errors.Join(os.RemoveAll(folder), os.MkdirAll(folder, 0o755)); err != nil {
		return err
	}
	if err := report.Unpack(packed, size, folder); err != nil {
		return err
	}
	part, err := report.ReadPart(folder)
	if err != nil {
		return err
	}
	if part.Ledger == nil || part.Ledger.Instance != process.Instance || part.Result.Instance != process.Instance {
		return fmt.Errorf("not a result of instance %d with its %s", process.Instance, report.LedgerFile)
	}
	return nil
}
