// Command standin serves the double of a KurrentDB at a host and port until it is killed.
// scripts/broker starts it as kurrentdb-standin.
package main

import (
	"fmt"
	"os"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-kurrentdb/internal/double"
)

func main() {
	if len(os.Args) != 2 {
		fail("usage: standin HOST:PORT")
	}
	s, err := double.Start(double.Config{Address: os.Args[1]})
	if err != nil {
		fail(err)
	}
	fmt.Println("serving at", s.Addr())
	select {}
}

func fail(why any) {
	fmt.Fprintln(os.Stderr, why)
	os.Exit(1)
}
