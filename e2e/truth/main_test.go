// Package truth holds what k6 measures against what can be known otherwise. It needs an idle machine, and is a part of make test-full.
package truth

import (
	"testing"

	"github.com/xk6-broker/xk6-broker/e2e/harness"
)

func TestMain(m *testing.M) { harness.Main(m, "1") }
