package bench

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// ToolRounds is how many rounds another program takes part in.
const ToolRounds = 3

// Tool is a loop of another program, such as a broker's own load generator. rate reads the messages per second out of what the
// program says of itself, so that its start does not count.
func Tool(name string, messages int, command func() *exec.Cmd, rate func(output string) (float64, error)) Loop {
	return Loop{Name: name, Tool: true, Run: func() (time.Duration, error) {
		cmd := command()
		said, err := cmd.CombinedOutput()
		if err != nil {
			return 0, fmt.Errorf("%s: %w\n%s", cmd.Path, err, said)
		}
		perSecond, err := rate(string(said))
		if err != nil || perSecond <= 0 {
			return 0, fmt.Errorf("%s said no rate (%w):\n%s", cmd.Path, err, said)
		}
		return time.Duration(float64(messages) / perSecond * float64(time.Second)), nil
	}}
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
	return func(class string, args ...string) *exec.Cmd {
		return exec.Command(java, append([]string{"-Xmx512m", "-cp", filepath.Join(folder, "*"), class}, args...)...) //gosec:disable G204 G702 -- the broker's own tool
	}, true
}
