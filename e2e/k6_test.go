// Package e2e runs k6 as its users do, on real brokers if there are any, and compares what k6 reports with what can be known otherwise. What needs an idle machine, breaks
// servers, or takes long is in a folder of its own, and a part of make test-full.
package e2e

import (
	"strings"
	"testing"

	"github.com/xk6-broker/xk6-broker/e2e/harness"
)

// Most of these tests wait for a k6 that waits itself.
func TestMain(m *testing.M) { harness.Main(m, "8") }

func TestVersionListsTheExtensions(t *testing.T) {
	out := harness.K6(t, nil, "version").Stdout
	for _, want := range []string{"broker [subcommand]", "k6/x/broker [js]", "k6/x/broker/nats [js]", "k6/x/broker/nats-jetstream [js]"} {
		if !strings.Contains(out, "/extensions/xk6-broker "+harness.Version(t)+", "+want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}
