//go:build unix

package sweep

import (
	"os/exec"
	"syscall"
)

// ofItsOwn gives a process its own group, and has the whole group be interrupted where the context ends: a shell's children too.
func ofItsOwn(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
}

func shell(command string) []string { return []string{"sh", "-c", command} }
