package js

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/collect"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// The environment says where the results of a process of several go.
const (
	envCollect        = "BROKER_COLLECT"         // http://host:port of k6 x broker collect
	envCollectToken   = "BROKER_COLLECT_TOKEN"   //gosec:disable G101 -- the name of a variable
	envCollectTimeout = "BROKER_COLLECT_TIMEOUT" // how long it is tried
)

const (
	collectTimeout = 5 * time.Minute
	// sayInterval is how often a process says that it goes on. A collector that is started again hears of it by that, too.
	sayInterval = 2 * time.Second
)

// remote is where the results of this process go besides its folder.
type remote struct {
	*collect.Sender
	name    string // of the test
	folder  string // of the results, where the environment says it
	timeout time.Duration
}

// remoteOf reads what the environment says of a collector; nil where there is none.
func remoteOf(lookup func(string) (string, bool), run string, processes int) (*remote, error) {
	address, _ := lookup(envCollect)
	if address == "" {
		return nil, nil
	}
	if run == "" || processes == 1 {
		return nil, fmt.Errorf("%s: what is collected is of several processes of one test: give them all one BROKER_RUN", envCollect)
	}
	token, _ := lookup(envCollectToken)
	sender, err := collect.NewSender(address, token)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", envCollect, err)
	}
	c := &remote{Sender: sender, name: run, timeout: collectTimeout}
	c.folder, _ = lookup(envName)
	if text, _ := lookup(envCollectTimeout); text != "" {
		if c.timeout, err = time.ParseDuration(text); err != nil || c.timeout <= 0 {
			return nil, fmt.Errorf("%s: %q is no time: give how long it is tried, such as 5m", envCollectTimeout, text)
		}
	}
	return c, nil
}

// process is what this process says of itself to a collector.
func (r *run) process(name string) collect.Process {
	p := collect.Process{Run: r.remote.name, Name: name, Instance: r.Instance()}
	p.Processes, _ = r.Processes()
	if r.segment != nil {
		p.Segment, p.Sequence = r.segment.Of, r.segment.Sequence
	}
	return p
}

// announce says to the collector that this process goes on, until the test has ended.
func (r *run) announce() {
	if r.remote == nil {
		return
	}
	name := r.remote.folder
	if name == "" {
		name = r.defaultName(r.Started)
	}
	go func() {
		for warned := false; ; {
			attempt, done := context.WithTimeout(r.going, sayInterval)
			err := r.remote.Here(attempt, r.process(name))
			done()
			if refused := (*collect.RefusedError)(nil); errors.As(err, &refused) {
				r.logger.Errorf("%s: %v; the results would not be collected", envCollect, err)
				return
			} else if err != nil && r.going.Err() == nil && !warned {
				r.logger.Warnf("%s: no collector yet: %v; results are sent when the test has ended", envCollect, err)
				warned = true
			}
			select {
			case <-time.After(sayInterval):
			case <-r.going.Done():
				return
			}
		}
	}()
}

// unsent is a result that is to go to the collector.
type unsent struct {
	result *result.Result
	ledger *account.Ledger
}

// send sends the results to the collector, if there is one. What it has is not lost, wherever else it could not be written.
func (r *run) send() {
	done := r.reported.Load()
	if r.remote == nil || done == nil || done.unsent == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), r.remote.timeout)
	defer cancel()
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	u := done.unsent
	err := r.remote.Send(ctx, r.process(u.result.Name), func(w io.Writer) error { return report.Pack(w, u.result, u.ledger) }, func(err error) {
		r.logger.Warnf("the results cannot be collected yet: %v; trying again for up to %v", err, r.remote.timeout)
	})
	now := &reported{folder: done.folder, err: done.err, sent: err == nil}
	switch {
	case err == nil && done.err != nil:
		r.logger.Warnf("%v; the collector has all of them", done.err)
		now.err = nil
	case err != nil && done.folder != "":
		now.err = errors.Join(done.err, fmt.Errorf("the results were not collected: %w\nthey are in %s", err, done.folder))
	case err != nil:
		now.err = errors.Join(done.err, fmt.Errorf("the results were not collected: %w", err))
	}
	r.reported.Store(now)
}
