//go:build unix

package cells

import (
	"os/exec"
	"syscall"
)

// isolate gives a process its own group, which the terminal's Ctrl-C does not reach. The end of its
// context interrupts the group.
func isolate(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
}
