package truth

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/e2e/harness"
)

const probed = `
import broker from 'k6/x/broker';
const size = 1000;
const conn = broker.connect(__ENV.LINK || 'embedded-nats:');
const p = conn.producer('probed');
const c = conn.consumer('probed', { group: 'workers' });
const rate = Number(__ENV.RATE), duration = __ENV.DURATION;
export const options = { scenarios: {
  consume: { executor: 'consumers', exec: 'consume' },
  produce: { executor: 'per-vu-iterations', exec: 'produce', maxDuration: '2m' },
} };
export async function setup() { await conn.createTopic('probed'); }
export async function produce() { await p.produce({ rate, duration, payload: { size } }); }
export async function consume() { await c.consume({}); }
export { handleSummary } from 'k6/x/broker';
`

// NATS behind a link that carries so many bytes a second: what is found is within 5 % of what the link carries, by arithmetic.
func TestTheCapacityOfALink(t *testing.T) {
	t.Parallel()
	address, err := url.Parse(harness.URL(t, "BROKER_URL_NATS"))
	if err != nil {
		t.Fatal(err)
	}
	const limit, size = 600_000, 1000
	link := narrow(t, address.Host, limit)
	// One percent beyond that, a median of 60 ms is what has piled up half-way through a probe.
	carries := limit / float64(len(fmt.Sprintf("PUB probed %d\r\n", size))+size+len("\r\n"))
	folder := filepath.Join(t.TempDir(), "study")
	cmd := exec.CommandContext(t.Context(), harness.Binary, "x", "broker", "capacity", harness.Script(t, probed), "--objective", "e2e_latency p50 < 60ms", "--from", "300", "--to", "2000",
		"--probe", "8s", "--warmup", "1s", "--out", folder)
	cmd.Env = append(os.Environ(), "K6_NO_USAGE_REPORT=true", "LINK=nats://"+link)
	out, err := cmd.CombinedOutput()
	harness.NoRace(t, err, string(out))
	found := regexp.MustCompile(`The capacity is between RATE=(\d+) and (\d+)`).FindSubmatch(out)
	if found == nil {
		if bytes.Contains(out, []byte(": generator (")) {
			t.Fatalf("this machine is too busy for it:\n%s", out)
		}
		t.Fatalf("%v\n%s", err, out)
	}
	low, _ := strconv.ParseFloat(string(found[1]), 64)
	high, _ := strconv.ParseFloat(string(found[2]), 64)
	if middle := (low + high) / 2; high > 1.2*low || math.Abs(middle/carries-1) > 0.05 {
		t.Errorf("%v to %v, and the link carries %.1f:\n%s", low, high, carries, out)
	}
	t.Logf("%v to %v, and the link carries %.1f", low, high, carries)
	table, err := os.ReadFile(filepath.Join(folder, "cells.csv"))
	if err != nil || strings.Count(string(table), ",met,") < 5 {
		t.Errorf("%v: %s", err, table)
	}
}

// narrow starts a link to target that carries so many bytes a second towards it, over all connections together, and returns its address.
func narrow(t *testing.T, target string, bytesPerSecond float64) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	link := &pace{bytesPerSecond: bytesPerSecond}
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", target)
			if err != nil {
				_ = client.Close()
				continue
			}
			copyAll := func(to io.WriteCloser, from io.Reader) {
				_, _ = io.Copy(to, from)
				_ = to.Close()
			}
			go copyAll(client, server)
			go copyAll(server, io.TeeReader(client, link))
		}
	}()
	return l.Addr().String()
}

// pace is a writer that takes as long as its bytes need, and makes up for up to 50 ms in which it woke late.
type pace struct {
	bytesPerSecond float64
	mu             sync.Mutex
	busy           time.Time
}

func (l *pace) Write(b []byte) (int, error) {
	l.mu.Lock()
	if idle := time.Now().Add(-50 * time.Millisecond); l.busy.Before(idle) {
		l.busy = idle
	}
	l.busy = l.busy.Add(time.Duration(float64(len(b)) / l.bytesPerSecond * float64(time.Second)))
	end := l.busy
	l.mu.Unlock()
	time.Sleep(time.Until(end))
	return len(b), nil
}
