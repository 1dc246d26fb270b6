// Command k6 is k6 with every broker driver of this repository in it.
package main

import "go.k6.io/k6/v2/cmd"

func main() { cmd.Execute() }
