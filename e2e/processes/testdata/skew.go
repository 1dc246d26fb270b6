package main

import (
	"os"
	"time"
	_ "unsafe" // for go:linkname
)

// epochUnix is when the process's clock says that it started. Nobody but a test has a reason to change it: the file is laid over the source of k6 where
// that is built to be a process on a machine whose clock is as far ahead as SKEW says.
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
