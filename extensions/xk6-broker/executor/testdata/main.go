// This file stands in for the main of the k6 of the tests, which needs the executor and nothing else.
package main

import (
	"go.k6.io/k6/v2/cmd"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/executor"
)

func main() {
	executor.Register()
	cmd.Execute()
}
