// Package faults breaks real brokers while k6 runs on them: killed, frozen and cut, clusters, and servers that want credentials. It is a part of make test-full.
package faults

import (
	"testing"

	"github.com/xk6-broker/xk6-broker/e2e/harness"
)

func TestMain(m *testing.M) { harness.Main(m, "4") }
