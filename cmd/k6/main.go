// Command k6 is k6 with every broker driver of this repository in it.
package main

import (
	"go.k6.io/k6/v2/cmd"

	_ "github.com/xk6-broker/xk6-broker"
)

func main() { cmd.Execute() }
