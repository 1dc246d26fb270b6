package machine

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// pause is how long the process stands still.
const pause = 200 * time.Millisecond

// observed runs a monitor in a process of its own. It prints "ready" and, after a line of input, the observation until
// it has a standstill.
func observed() {
	w := Start()
	all := w.Interval()
	fmt.Println("ready")
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	eventually(func() bool {
		i := w.Interval()
		all.Hiccups.Merge(i.Hiccups)
		all.To = i.To
		return all.Hiccups.Max() >= int64(pause/2)
	})
	w.Stop()
	_ = json.NewEncoder(os.Stdout).Encode(all)
}

// A process that stands still for 200 ms: one value for each of them, from 200 ms down.
func TestAProcessThatStandsStill(t *testing.T) {
	if testing.Short() {
		t.Skip("part of make test-full")
	}
	if os.Getenv("MONITOR_CHILD") != "" {
		observed()
		return
	}
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestAProcessThatStandsStill$") // itself
	child.Env = append(os.Environ(), "MONITOR_CHILD=yes")
	in, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	pipe, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	out := bufio.NewReader(pipe)
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer child.Wait() //nolint:errcheck // it has said all
	if line, err := out.ReadString('\n'); line != "ready\n" {
		t.Fatalf("%q, %v", line, err)
	}
	if err := child.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	eventually(func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", child.Process.Pid))
		_, state, found := strings.Cut(string(stat), ") ")
		return err == nil && found && state[0] == 'T'
	})
	time.Sleep(pause) // this is how long it stands still
	if err := child.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if _, err := in.Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	text, err := out.ReadBytes('\n')
	if err != nil {
		t.Fatal(err)
	}
	var i Interval
	if err := json.Unmarshal(text, &i); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	length := time.Duration(i.To - i.From)
	t.Logf("%d hiccups in %v, at most %v", i.Hiccups.Count(), length, time.Duration(i.Hiccups.Max()))
	// It had slept for up to a tick when it was stopped, and the least that a tick takes is no hiccup.
	if longest := time.Duration(i.Hiccups.Max()); longest < pause-2*tick || longest > length {
		t.Errorf("the longest hiccup is %v, the process stood still for %v of %v", longest, pause, length)
	}
	half, n := uint64(0), i.Hiccups.Count()
	for v, n := range i.Hiccups.All() {
		if v >= int64(pause/2) {
			half += n
		}
	}
	if half < uint64(pause/2/tick)-2 || n < uint64(pause/tick)-2 || n > uint64(length/tick)+1 {
		t.Errorf("%d hiccups in %v, of which %d of more than half of the standstill", n, length, half)
	}
}
