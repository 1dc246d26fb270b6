// Package release has tests of releases and of k6 as xk6 builds it. It is a part of make test-full.
package release

import (
	"testing"

	"github.com/xk6-broker/xk6-broker/e2e/harness"
)

func TestMain(m *testing.M) { harness.Main(m, "1") }
