package bench

import (
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"
)

func shell(script string) func() *exec.Cmd {
	return func() *exec.Cmd { return exec.Command("sh", "-c", script) }
}

// TestTool has a second's worth of messages take the longer the smaller the rate is that was said.
func TestTool(t *testing.T) {
	const pattern = `rate ([\d.]+)/s`
	for name, c := range map[string]struct {
		script string
		rate   Rate
		took   time.Duration
	}{
		"best":                      {"echo rate 5/s; echo rate 20.0/s; echo nothing; echo rate 10/s", Best(pattern, 0), 5 * time.Second},
		"last":                      {"echo rate 5/s; echo rate 20/s; echo rate 10/s >&2", Last(pattern), 10 * time.Second},
		"one that goes on is ended": {"while echo rate 50/s; do sleep 0.01; done", Best(pattern, 3), 2 * time.Second},
		"first so many":             {"echo rate 5/s; echo rate 10/s; echo rate 20/s; exec sleep 100", Best(pattern, 2), 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			took, err := Tool(name, 100, shell(c.script), c.rate).Run()
			if err != nil || took != c.took {
				t.Errorf("took %v (%v), want %v", took, err, c.took)
			}
		})
	}
}

func TestToolThatFails(t *testing.T) {
	for name, c := range map[string]struct{ script, want string }{
		"says nothing":            {"echo hello", "hello"},
		"says a rate and fails":   {"echo rate 5/s; exit 3", "exit status 3"},
		"says that nothing moved": {"echo rate 0/s", "no rate"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Tool(name, 100, shell(c.script), Last(`rate ([\d.]+)/s`)).Run(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}

// TestToolLeftOut has a tool that fails in its second round, beside the measure.
func TestToolLeftOut(t *testing.T) {
	t.Setenv("BENCH_TABLE", "")
	turns := 0
	var rows []Row
	testing.Benchmark(func(b *testing.B) {
		turns = 0
		rows = Case{Name: "case", Messages: 100, Loops: []Loop{
			{Name: "raw", Run: func() (time.Duration, error) { return time.Second, nil }},
			{Name: "tool", Tool: true, Run: func() (time.Duration, error) {
				if turns++; turns > 1 {
					return 0, errors.New("no more")
				}
				return time.Second, nil
			}},
			{Name: engineLoop, Run: func() (time.Duration, error) { return 2 * time.Second, nil }},
		}}.Compare(b)
	})
	if len(rows) != 2 || rows[0].Ratio != 1 || rows[1].Ratio != 0.5 || turns != 2 {
		t.Errorf("after %d turns of the tool the rows are %+v", turns, rows)
	}
}
