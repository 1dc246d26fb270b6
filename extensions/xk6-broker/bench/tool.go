package bench

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// toolTimeout bounds how long a tool may take to report its rate. Most tools need time to warm up.
const toolTimeout = 2 * time.Minute

var errNoRate = errors.New("no rate in the output")

// Rate finds a rate in messages per second in the output of a tool.
type Rate = func(output io.Reader) (float64, error)

// Best finds the greatest rate of the first reports, or of all if reports is 0. Each report is a
// line in which the first group of the pattern is the rate.
func Best(pattern string, reports int) Rate { return find(pattern, reports, slices.Max[[]float64]) }

// Last finds the rate of the last report.
func Last(pattern string) Rate {
	return find(pattern, 0, func(rates []float64) float64 { return rates[len(rates)-1] })
}

func find(pattern string, most int, choose func(rates []float64) float64) Rate {
	report := regexp.MustCompile(pattern)
	return func(output io.Reader) (float64, error) {
		var rates []float64
		lines := bufio.NewScanner(output)
		for (most == 0 || len(rates) < most) && lines.Scan() {
			found := report.FindSubmatch(lines.Bytes())
			if found == nil {
				continue
			}
			rate, err := strconv.ParseFloat(string(found[1]), 64)
			if err != nil {
				return 0, err
			}
			rates = append(rates, rate)
		}
		if lines.Err() != nil || len(rates) == 0 {
			return 0, cmp.Or(lines.Err(), errNoRate)
		}
		return choose(rates), nil
	}
}

// Tool is a loop of another program, such as a broker's load generator. Its time follows from the
// rate in the program's output, so that its start does not count. The program is killed then.
func Tool(name string, messages int, command func() *exec.Cmd, rate Rate) Loop {
	return Loop{Name: name, Tool: true, Run: func() (time.Duration, error) {
		perSecond, err := run(command(), rate)
		if err != nil {
			return 0, err
		}
		return time.Duration(float64(messages) / perSecond * float64(time.Second)), nil
	}}
}

// After returns the loop with a preparation before each turn.
func (l Loop) After(prepare func() error) Loop {
	l.Before = prepare
	return l
}

// run runs a program until it ends or has reported its rate.
func run(cmd *exec.Cmd, rate Rate) (float64, error) {
	output, input := io.Pipe()
	cmd.Stdout, cmd.Stderr = input, input
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = input.CloseWithError(cmd.Wait())
	}()
	late := time.AfterFunc(toolTimeout, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	var text strings.Builder
	perSecond, err := rate(io.TeeReader(output, &text))
	_ = cmd.Process.Kill() // it may have ended
	_ = output.Close()
	<-ended
	if err == nil && perSecond <= 0 {
		err = errNoRate
	}
	if err != nil {
		return 0, fmt.Errorf("%s: %w\n%s", cmd.Path, err, text.String())
	}
	return perSecond, nil
}

// Program returns a function that makes commands of a tool. An environment variable may name it,
// otherwise it is on the PATH. If it is missing, ok is false and the reason is logged.
func Program(tb testing.TB, variable, name string) (command func(args ...string) *exec.Cmd, ok bool) {
	tb.Helper()
	path := os.Getenv(variable)
	if path == "" {
		var err error
		if path, err = exec.LookPath(name); err != nil {
			tb.Logf("without %s, which %s can name: %v", name, variable, err)
			return nil, false
		}
	}
	return func(args ...string) *exec.Cmd {
		return exec.Command(path, args...) //gosec:disable G204 G702 -- the broker's own tool
	}, true
}

// Java returns a function that makes commands of a Java tool, whose jars are in the folder that an
// environment variable names. If it is missing, ok is false and the reason is logged.
func Java(tb testing.TB, variable string) (command func(class string, args ...string) *exec.Cmd, ok bool) {
	tb.Helper()
	folder := os.Getenv(variable)
	if folder == "" {
		tb.Logf("without the broker's own tool: set %s to a folder of jars", variable)
		return nil, false
	}
	java, ok := Program(tb, "BENCH_JAVA", "java")
	home := tb.TempDir() // some tools write logs
	return func(class string, args ...string) *exec.Cmd {
		options := []string{"-Xmx512m", "-Duser.home=" + home, "-cp", filepath.Join(folder, "*"), class}
		return java(append(options, args...)...)
	}, ok
}
