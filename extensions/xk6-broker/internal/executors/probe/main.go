// Command probe is the k6 of the tests of package executors: it has the executors, and k6/x/probe, by which scripts write down when their
// iterations began.
package main

import (
	"go.k6.io/k6/v2/cmd"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/executors"
)

func main() {
	executors.Register()
	cmd.Execute()
}
