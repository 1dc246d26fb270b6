// Package lies is a collection of experiments on a real server. Each provokes a falsehood of a load
// test and reads the tool's verdict.
package lies

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/xk6-broker/xk6-broker/e2e/summary"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/proxy"
)

// Lie is one of the experiments.
type Lie struct {
	Name   string // the falsehood
	How    string // the provocation
	script string
	env    []string
	before string                              // a script that runs first, to its end
	during func(context.Context, *Scene) error // called while the script runs
	Naive  Naive
	Code   string // of a reason or note that the verdict must have
	Why    string // the variant of the code; "" for any
	Valid  bool   // the verdict is still valid
	Fails  bool   // k6's exit code must not be 0
}

// Naive is a number of the result that is true and misleads.
type Naive struct {
	Label string
	Value func(*Outcome) string
}

// Scene is an experiment under way.
type Scene struct {
	Process *os.Process
	Proxy   *proxy.Proxy // between k6 and the server
	URL     string       // of the server
	topic   string
}

// Outcome is the outcome of an experiment.
type Outcome struct {
	Code   int // k6's exit code
	Output string
	Result summary.Summary
}

// Quantile returns a percentile of a trend of the first topic as text.
func (o *Outcome) Quantile(trend string, q float64) string {
	h := o.trend(trend)
	if h == nil {
		return "–"
	}
	return milliseconds(h.Quantile(q))
}

func (o *Outcome) trend(name string) *summary.Histogram {
	for _, t := range o.Result.Topics {
		if h := t.Trends[name]; h != nil {
			return h
		}
	}
	return nil
}

func milliseconds(ns int64) string {
	d := time.Duration(ns)
	switch {
	case d >= 10*time.Millisecond:
		return d.Round(time.Millisecond).String()
	case d >= time.Millisecond:
		return d.Round(100 * time.Microsecond).String()
	}
	return d.Round(10 * time.Microsecond).String()
}

// Verdict returns the tool's verdict as text.
func (o *Outcome) Verdict() string {
	v := o.Result.Verdict
	switch {
	case !v.Valid:
		return "not valid"
	case v.UpTo > 0:
		return fmt.Sprintf("valid up to p%g", 100*v.UpTo)
	}
	return "valid"
}

// Topic begins the names of the experiments' topics.
const Topic = "lie-"

// limit bounds an experiment.
const limit = 3 * time.Minute

const head = `
import broker from 'k6/x/broker';
const url = __ENV.BROKER_URL, topic = __ENV.TOPIC;
export function handleSummary(data) { return { [__ENV.OUTCOME]: JSON.stringify(broker.result()) }; }
`

// Run does an experiment with a k6 binary on a JetStream server.
func Run(k6, url string, lie Lie) (*Outcome, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	scheme, rest, _ := strings.Cut(url, "://")
	p, err := proxy.Listen(rest)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", lie.Name, err)
	}
	defer p.Close() //nolint:errcheck // nothing is lost with it
	dir, err := os.MkdirTemp("", "xk6-broker-lies-")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", lie.Name, err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder
	s := &Scene{Proxy: p, URL: url, topic: fmt.Sprintf("%s%d", Topic, time.Now().UnixNano())}
	out := filepath.Join(dir, "outcome.json")
	env := append(os.Environ(), "K6_NO_USAGE_REPORT=true", "OUTCOME="+out, "TOPIC="+s.topic,
		"BROKER_URL="+scheme+"://"+p.Addr(), "DIRECT="+url)
	env = append(env, lie.env...)
	start := func(name, text string) (*exec.Cmd, *strings.Builder, error) {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(head+text), 0o600); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", lie.Name, err)
		}
		output := &strings.Builder{}
		cmd := exec.CommandContext(ctx, k6, "run", "--quiet", path) //gosec:disable G204 -- a k6 that was built here
		cmd.Env, cmd.Stdout, cmd.Stderr = env, output, output
		return cmd, output, nil
	}
	if lie.before != "" {
		cmd, output, err := start("before.js", lie.before)
		if err != nil {
			return nil, err
		}
		if err := cmd.Run(); err != nil {
			return nil, fmt.Errorf("%s: the script before: %w\n%s", lie.Name, err, output)
		}
	}
	cmd, output, err := start("script.js", lie.script)
	if err != nil {
		return nil, err
	}
	code, err := lie.play(ctx, cmd, s)
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", lie.Name, err, output)
	}
	o := &Outcome{Code: code, Output: output.String()}
	text, err := os.ReadFile(out) //gosec:disable G304 -- a result of k6
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", lie.Name, err, output)
	}
	if err := json.Unmarshal(text, &o.Result); err != nil {
		return nil, fmt.Errorf("%s: %w", lie.Name, err)
	}
	return o, nil
}

// play runs a k6 to its end, with during beside it, and returns its exit code.
func (l Lie) play(ctx context.Context, cmd *exec.Cmd, s *Scene) (code int, err error) {
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	s.Process = cmd.Process
	done := make(chan error, 1)
	during, stop := context.WithCancel(ctx)
	go func() {
		if l.during == nil {
			done <- nil
			return
		}
		done <- l.during(during, s)
	}()
	ended := cmd.Wait()
	stop()
	if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
		return 0, err
	}
	if exit := (*exec.ExitError)(nil); errors.As(ended, &exit) {
		return exit.ExitCode(), nil
	}
	return 0, ended
}
