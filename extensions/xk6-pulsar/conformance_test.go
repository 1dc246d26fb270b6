package pulsar

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest"
	"go.uber.org/goleak"
)

// The client's goroutine that looks for messages whose time is over ends when it looks next, up to sendTimeout after its producer, and the one that
// connects a producer again never does where the client itself closed the producer, as that of a deleted topic.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/apache/pulsar-client-go/pulsar.(*partitionProducer).runEventsLoop.func1"),
		goleak.IgnoreAnyFunction("github.com/apache/pulsar-client-go/pulsar.(*partitionProducer).failTimeoutMessages"))
}

// harness is for a server of scripts/broker: the client connects to the address that it advertises, so that no proxy can stand in front of it.
// It is frozen as a process, and the system breaks its connections.
func harness(name, variable string) drivertest.Harness {
	h := drivertest.Harness{Driver: name, URL: os.Getenv(variable), HeaderBytes: true, NoProxy: true, Batches: true}
	if h.URL == "" {
		return h
	}
	if testing.Short() {
		// Others use the server too. A goroutine of the client, for whose end the kit waits, ends with sendTimeout, which is 30 s by default.
		h.URL += "&sendTimeout=10s"
		return h
	}
	h.Freeze = func(t testing.TB) func() {
		command(t, "../../scripts/broker", "pause", "pulsar")
		return func() { command(t, "../../scripts/broker", "resume", "pulsar") }
	}
	// The client's goroutines race where it connects again: TestReconnectsWithoutTheRaceDetector.
	if _, err := exec.LookPath("ss"); !raced && (err == nil || os.Getenv("BROKER_REQUIRE") != "") {
		h.Cut = func(t testing.TB) { cut(t, h.URL) }
	}
	return h
}

// The client writes a producer's name and its sequence again when it connects again, while it reads them to send: harmless, as they stay what they
// are, but races. So what breaks connections runs in a process that nobody watches for them.
func TestReconnectsWithoutTheRaceDetector(t *testing.T) {
	if testing.Short() {
		t.Skip("part of make test-full")
	}
	if !raced || os.Getenv("BROKER_URL_PULSAR") == "" {
		t.Skip("the tests of this process prove it, or there is no server")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	child := exec.CommandContext(ctx, "go", "test", "-count=1", "-run", "Conforms/Reconnect|Restart", ".")
	child.Env = append(os.Environ(), "GOFLAGS=", "BROKER_CONFORMANCE=")
	if out, err := child.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// cut resets every connection to the server, and prints them. Where ss may not, it says so and succeeds all the same.
func cut(t testing.TB, url string) {
	t.Helper()
	address, err := driver.ParseURL(url, nil)
	if err != nil {
		t.Fatal(err)
	}
	server := host(address)
	if out := command(t, "ss", "-K", "-H", "-t", "-n", "state", "established", "dst", server); !strings.Contains(out, server[strings.LastIndex(server, ":"):]) {
		t.Fatalf("ss broke no connection to %s, which takes CAP_NET_ADMIN: %s", server, out)
	}
}

func command(t testing.TB, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}

func TestPulsarConforms(t *testing.T) {
	drivertest.Run(t, harness("pulsar", "BROKER_URL_PULSAR"))
}

func TestPulsarFailoverConforms(t *testing.T) {
	drivertest.Run(t, harness("pulsar-failover", "BROKER_URL_PULSAR_FAILOVER"))
}

// host is the host and port of an address's URL.
func host(a *driver.Address) string {
	_, behind, _ := strings.Cut(a.String(), "://")
	return behind
}

func TestStrangers(t *testing.T) { drivertest.Strangers(t, "pulsar://127.0.0.1:1") }
