package cells

import "os/exec"

// isolate does nothing: the end of the context kills the process.
func isolate(*exec.Cmd) {}
