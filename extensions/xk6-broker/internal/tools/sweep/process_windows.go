package sweep

import (
	"os/exec"
	"syscall"
)

// ofItsOwn gives a process its own group, which Ctrl-C of the console does not reach. Windows has no interrupt for one process, so that it is killed
// where the context ends.
func ofItsOwn(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

func shell(command string) []string { return []string{"cmd", "/C", command} }
