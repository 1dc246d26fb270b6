//go:build !unix

package redis_test

import "testing"

func (s *server) freeze(t testing.TB) { t.Skip("a process cannot be stopped here") }
func (s *server) thaw(testing.TB)     {}
