package harness

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	_ "github.com/xk6-broker/xk6-broker" // every driver
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// Required reports whether an absent broker fails the tests that need it.
func Required() bool { return os.Getenv("BROKER_REQUIRE") == "all" }

// URL returns the URL of a real broker from the environment, or skips the test.
func URL(t *testing.T, env string) string {
	t.Helper()
	url := os.Getenv(env)
	if url == "" {
		if Required() {
			t.Fatalf("%s is not set", env)
		}
		t.Skipf("%s is not set", env)
	}
	return url
}

// URLs returns the brokers to run on: the embedded ones and the ones that the environment names,
// one for each driver that receives. A run on a stand-in proves nothing for the broker.
func URLs(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{"embedded JetStream": "embedded:", "embedded NATS": "embedded-nats:"}
	names := map[string]string{"mongodb's stand-in": "mongodb-standin", "kurrentdb's stand-in": "kurrentdb-standin"}
	for _, d := range driver.Drivers() {
		if d.Features.Start == 0 {
			continue // it only sends
		}
		names[d.Name] = d.Name
	}
	var native []string
	if Required() {
		native = BrokerNames(t, "native")
	}
	for broker, name := range names {
		env := "BROKER_URL_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
		if url := os.Getenv(env); url != "" {
			all[broker] = url
		} else if Required() && !onlyContained(t, native, name) {
			t.Errorf("%s is not set", env)
		}
	}
	return all
}

// onlyContained reports whether a broker comes as a container only.
func onlyContained(t *testing.T, native []string, name string) bool {
	t.Helper()
	return slices.Contains(BrokerNames(t), name) && !slices.Contains(native, name)
}

// BrokerNames returns the names that scripts/broker prints.
func BrokerNames(t *testing.T, which ...string) []string {
	t.Helper()
	out, err := exec.Command(Repo("scripts/broker"), append([]string{"names"}, which...)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(out))
}
