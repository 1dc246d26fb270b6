// Package processes has tests of several processes of k6. It is a part of make test-full.
package processes

import (
	"testing"

	"github.com/xk6-broker/xk6-broker/e2e/harness"
)

func TestMain(m *testing.M) { harness.Main(m, "4") }
