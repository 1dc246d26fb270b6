package main

import (
	"os"
	"time"
	_ "unsafe" // for go:linkname
)

// epochUnix is the start of the process by its clock. A test adds this file to k6's source to
// simulate a machine whose clock is ahead by SKEW.
//
//go:linkname epochUnix github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver.epochUnix
var epochUnix int64

func init() {
	ahead, err := time.ParseDuration(os.Getenv("SKEW"))
	if err != nil {
		panic(err)
	}
	epochUnix += int64(ahead)
}
