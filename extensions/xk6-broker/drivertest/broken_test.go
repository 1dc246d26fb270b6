package drivertest_test

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/memory"
)

// chosen names in the environment the variant that TestVariant runs the kit on.
const chosen = "FAULTY_VARIANT"

// TestVariant runs the kit on one variant. TestKit calls it, in a process of its own, as most of them are to fail.
func TestVariant(t *testing.T) {
	variants := variants()
	i := slices.IndexFunc(variants, func(v variant) bool { return v.name == os.Getenv(chosen) })
	if i < 0 {
		t.Skipf("%s names no variant", chosen)
	}
	v := variants[i]
	b := memory.New(v.config)
	d := v.broken(b.Driver())
	driver.Register(d)
	h := drivertest.Harness{
		Driver: d.Name, URL: b.URL(), NoProxy: true, HeaderBytes: true, Numbers: v.numbers,
		Freeze: func(testing.TB) func() { return b.Freeze() },
		Cut:    func(testing.TB) { b.Cut() },
	}
	if d.Features.Start == 0 {
		h.Stored = func(_ testing.TB, topic string) []driver.Message { return b.Stored(topic) }
	}
	if len(v.fails) > 0 {
		h.Timeout = time.Second // it is to run out
	}
	drivertest.Run(t, h)
}

// quick are the variants of which there is one for each group of the kit's tests, and whose tests fail at once: -test.short runs these only.
var quick = []string{
	"full", "log", "sends only", "drops one in a thousand", "refuses nothing", "mixes replies up", "loses the key's partition", "starts at the earliest always", "requeues as it acks",
	"confirms early", "confirms early and breaks", "knows no kinds", "deletes what is not there",
}

// TestKit proves that each broken driver fails the tests that are there for it, and that the correct ones pass.
func TestKit(t *testing.T) {
	for _, name := range quick {
		if !slices.ContainsFunc(variants(), func(v variant) bool { return v.name == name }) {
			t.Errorf("%q is no variant", name)
		}
	}
	two := make(chan struct{}, 2)
	for _, v := range variants() {
		t.Run(v.name, func(t *testing.T) {
			if testing.Short() && !slices.Contains(quick, v.name) {
				t.Skip("part of make test-full")
			}
			t.Parallel()
			two <- struct{}{}
			defer func() { <-two }()
			if len(v.fails) == 0 {
				passes(t, v)
				return
			}
			for _, name := range v.fails {
				fails(t, v, name)
			}
		})
	}
}

func passes(t *testing.T, v variant) {
	out, err := run(t, v, "^TestVariant$")
	if err != nil {
		t.Errorf("a correct driver fails: %v\n%s", err, out)
	}
	if n := strings.Count(out, "--- PASS"); n < 40 {
		t.Errorf("%d tests passed, many more should have run:\n%s", n, out)
	}
}

func fails(t *testing.T, v variant, name string) {
	group, test, _ := strings.Cut(rewrite(name), "/")
	out, err := run(t, v, "^TestVariant$/^"+group+"$/^"+regexp.QuoteMeta(test)+"$")
	if err == nil || !strings.Contains(out, "--- FAIL: TestVariant/"+rewrite(name)+" ") {
		t.Errorf("%q passes, or does not run:\n%s", name, out)
	}
	if strings.Contains(out, "panic:") || strings.Contains(out, "DATA RACE") {
		t.Errorf("%q ends the process instead of failing:\n%s", name, out)
	}
}

// rewrite gives a subtest's name as the testing package prints it.
func rewrite(name string) string { return strings.ReplaceAll(name, " ", "_") }

func run(t *testing.T, v variant, pattern string) (string, error) {
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.v", "-test.run", pattern, fmt.Sprintf("-test.short=%v", testing.Short()))
	cmd.Env = append(os.Environ(), chosen+"="+v.name)
	out, err := cmd.CombinedOutput()
	return string(out), err
}
