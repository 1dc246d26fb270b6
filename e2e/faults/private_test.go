package faults

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/xk6-broker/xk6-broker/e2e/harness"
)

// Where the ports of brokers begin that are not shared, so that tests may run side by side, counted from BROKER_PORT_OFFSET.
const (
	restartPorts  = 21500
	clusterPorts  = 3300
	pausePorts    = 3900
	securityPorts = 4500
	drainPorts    = 22500
	noAcksPorts   = 23500
)

// private are brokers of a test's own, for tests that break them.
type private struct {
	t    *testing.T
	env  []string
	urls map[string][]string // of each broker, one for each of its drivers
}

// brokers are those of the names that scripts/broker can start here which are wanted.
func brokers(t *testing.T, wanted func(name string) bool) []string {
	t.Helper()
	return slices.DeleteFunc(harness.BrokerNames(t, "native"), func(name string) bool { return !wanted(name) })
}

// start starts brokers apart from those that other tests use. It needs what scripts/test has prepared.
func start(t *testing.T, offset int, names ...string) private {
	t.Helper()
	if os.Getenv("BROKER_REQUIRE") == "" && os.Getenv("BROKER_URL_NATS") == "" {
		t.Skip("no real brokers asked for")
	}
	state, err := os.MkdirTemp("", "xk6-broker-state-") //nolint:usetesting // sockets and logs want a short path
	if err != nil {
		t.Fatal(err)
	}
	shared, err := strconv.Atoi(cmp.Or(os.Getenv("BROKER_PORT_OFFSET"), "0"))
	if err != nil {
		t.Fatal(err)
	}
	p := private{
		t: t, urls: map[string][]string{},
		env: append(os.Environ(), "BROKER_STATE="+filepath.Join(state, "run"), "BROKER_PORT_OFFSET="+strconv.Itoa(shared+offset)),
	}
	t.Cleanup(func() { _ = os.RemoveAll(state) })
	t.Cleanup(func() { p.broker(append([]string{"down"}, names...)...) }) // also those that came up where one does not
	for line := range strings.Lines(p.broker(append([]string{"up"}, names...)...)) {
		if name, url, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			p.urls[name] = append(p.urls[name], url)
		}
	}
	return p
}

// broker runs scripts/broker on the private ones.
func (p private) broker(args ...string) string {
	p.t.Helper()
	out, err := p.run(args...)
	if err != nil {
		p.t.Fatal(err)
	}
	return out
}

// try is broker for any goroutine.
func (p private) try(args ...string) error {
	_, err := p.run(args...)
	return err
}

func (p private) run(args ...string) (string, error) {
	cmd := exec.Command(harness.Repo("scripts/broker"), args...)
	cmd.Env = p.env
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("scripts/broker %v: %w\n%s%s", args, err, out, stderr.String())
	}
	return strings.TrimSpace(string(out)), nil
}

// steady is a load on one topic with one group, which a script that begins with pull and makes p and c ends with. It pulls fault
// when a quarter of the time is over.
const steady = `
const duration = Number(__ENV.SECONDS), rate = Number(__ENV.RATE || 500);
export const options = { scenarios: { all: { executor: 'per-vu-iterations' } } };
export default async function () {
  await c.ready();
  if (__ENV.LEVERS) setTimeout(() => pull('fault'), duration * 250);
  await Promise.all([
    p.produce({ rate, duration: duration + 's' }),
    c.consume({ duration: (duration + 2) + 's', work: __ENV.WORK || '0' }),
  ]);
}
`
