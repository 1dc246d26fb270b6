//go:build unix

package redis_test

import (
	"syscall"
	"testing"
)

// freeze stops the process, which then answers nothing, and thaw has it go on.
func (s *server) freeze(t testing.TB) { s.signal(t, syscall.SIGSTOP) }
func (s *server) thaw(t testing.TB)   { s.signal(t, syscall.SIGCONT) }
