// Package pods has tests of several processes of k6 in a Kubernetes. It is a part of make test-full.
package pods

import (
	"testing"

	"github.com/xk6-broker/xk6-broker/e2e/harness"
)

func TestMain(m *testing.M) { harness.Main(m, "1") }
