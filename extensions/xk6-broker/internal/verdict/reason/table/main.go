// Command table prints the documentation's table of reasons, for docgen.
package main

import (
	"fmt"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason"
)

func main() { fmt.Print(reason.Markdown()) }
