package bench

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// ToolRounds is how many rounds another program takes part in.
const ToolRounds = 3

// toolPatience is how long another program may take to say its rate: most are given time to get warm.
const toolPatience = 2 * time.Minute

// Tool is a loop of another program, such as a broker's own load generator. rate reads the messages per second out of what the
// program says of itself, so that its start does not count; when it has them the program need not go on, and is ended.
func Tool(name string, messages int, command func() *exec.Cmd, rate func(output io.Reader) (float64, error)) Loop {
	return Loop{Name: name, Tool: true, Run: func() (time.Duration, error) {
		perSecond, err := listen(command(), rate)
		if err != nil {
			return 0, err
		}
		return time.Duration(float64(messages) / perSecond * float64(time.Second)), nil
	}}
}

// After has something be done before each turn of a loop, which is not timed: of a tool nothing is but what it says itself.
func (l Loop) After(prepare func() error) Loop {
	run := l.Run
	l.Run = func() (time.Duration, error) {
		if err := prepare(); err != nil {
			return 0, fmt.Errorf("before it: %w", err)
		}
		return run()
	}
	return l
}

// listen runs a program until it ends or its rate is known. Where it fails, reading what it says does.
func listen(cmd *exec.Cmd, rate func(output io.Reader) (float64, error)) (float64, error) {
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
	late := time.AfterFunc(toolPatience, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	var said strings.Builder
	perSecond, err := rate(io.TeeReader(output, &said))
	_ = cmd.Process.Kill() // it may have ended
	_ = output.Close()
	<-ended
	if err == nil && perSecond <= 0 {
		err = errors.New("it said no rate")
	}
	if err != nil {
		return 0, fmt.Errorf("%s: %w\n%s", cmd.Path, err, said.String())
	}
	return perSecond, nil
}

// Program gives commands that run a tool, which a variable of the environment names, or else its name on PATH. It is false, and says
// why, where there is none.
func Program(tb testing.TB, variable, name string) (command func(args ...string) *exec.Cmd, ok bool) {
	tb.Helper()
	path := os.Getenv(variable)
	if path == "" {
		var err error
		if path, err = exec.LookPath(name); err != nil {
			tb.Logf("without the broker's own tool: %s names none, and %v", variable, err)
			return nil, false
		}
	}
	return func(args ...string) *exec.Cmd { return exec.Command(path, args...) }, true //gosec:disable G204 G702 -- the broker's own tool
}

// Java gives commands that run the main class of a tool with the jars in the folder that a variable of the environment names. It
// is false, and says why, where there are none or no Java.
func Java(tb testing.TB, variable string) (command func(class string, args ...string) *exec.Cmd, ok bool) {
	tb.Helper()
	folder := os.Getenv(variable)
	if folder == "" {
		tb.Logf("without the broker's own tool: %s names no folder of jars", variable)
		return nil, false
	}
	java, err := exec.LookPath("java")
	if err != nil {
		tb.Logf("without the broker's own tool: %v", err)
		return nil, false
	}
	home := tb.TempDir() // where some write logs
	return func(class string, args ...string) *exec.Cmd {
		return exec.Command(java, append([]string{"-Xmx512m", "-Duser.home=" + home, "-cp", filepath.Join(folder, "*"), class}, args...)...) //gosec:disable G204 G702 -- the broker's own tool
	}, true
}
