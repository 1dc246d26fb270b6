package cells

import "os/exec"

// isolate does nothing: Ctrl-C reaches the process, and the end of the context kills it.
func isolate(*exec.Cmd) {}
