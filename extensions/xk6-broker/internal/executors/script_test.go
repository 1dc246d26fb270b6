package executors

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/schedule"
)

func arrivals(scenarios string, flags ...string) k6 {
	return k6{
		args: append([]string{"run", "--quiet"}, append(flags, "testdata/arrivals.js")...),
		env:  map[string]string{"SCENARIOS": scenarios},
	}
}

// Scripts see the due times of package pace, in several scenarios at once, each from its own start.
func TestScriptsSeeExactDueTimes(t *testing.T) {
	t.Parallel()
	r := arrivals(`{
		"a":{"executor":"open-arrival-rate","rate":200,"duration":"2s","preAllocatedVUs":5,"arrivals":"poisson","seed":9},
		"b":{"executor":"open-arrival-rate","startRate":10,"stages":[{"target":100,"duration":"2s"}],"preAllocatedVUs":3,"startTime":"500ms","exec":"other"},
		"c":{"executor":"constant-vus","vus":1,"duration":"1s"}}`).with("WORK", "2").run(t)
	if r.exit != 0 {
		t.Fatalf("exit code %d\n%s", r.exit, r.output)
	}
	per := func(n int64) schedule.Rate { return schedule.Rate{Events: n, Per: time.Second} }
	for name, arrivals := range map[string]schedule.Schedule{
		"a": schedule.Poisson(schedule.Constant(per(200), 2*time.Second), 9),
		"b": schedule.Ramp(per(10), schedule.Stage{Target: per(100), Duration: 2 * time.Second}),
	} {
		first, _ := arrivals.At(0)
		marks := r.of(name)
		for n, m := range marks {
			due, ok := arrivals.At(uint64(n))
			if !ok || m.Index != uint64(n) || m.Iteration != m.Index || m.Due-marks[0].Due != int64(due-first) || m.Started < m.Due || m.At < m.Started {
				t.Fatalf("%s: arrival %d is %+v, want it due %v after the first", name, n, m, due-first)
			}
		}
		if due, more := arrivals.At(uint64(len(marks))); more {
			t.Errorf("%s: %d arrivals, the next is due at %v", name, len(marks), due)
		}
	}
	if late := r.of("b")[0].Due - r.of("a")[0].Due; late < int64(400*time.Millisecond) {
		t.Errorf("the second scenario began %v after the first", time.Duration(late))
	}
	for _, m := range r.of("c") {
		if m.Due != 0 {
			t.Errorf("an iteration of constant-vus has an arrival: %+v", m)
		}
	}
	if len(r.of("c")) == 0 || len(r.Totals) != 2 || r.Totals[0].Started != uint64(len(r.of("a"))) {
		t.Errorf("totals %+v", r.Totals)
	}
}

func (k k6) with(name, value string) k6 {
	k.env[name] = value
	return k
}

// of gives a scenario's iterations in the order of their arrivals.
func (r *result) of(scenario string) (list []mark) {
	for _, m := range r.Marks {
		if m.Scenario == scenario {
			list = append(list, m)
		}
	}
	slices.SortStableFunc(list, func(a, b mark) int { return cmp.Compare(a.Index, b.Index) })
	return list
}

// Three VUs that need 20 ms serve 150 arrivals a second, and get 300: what is due in two seconds takes four.
func TestNothingIsDroppedUnderOverload(t *testing.T) {
	t.Parallel()
	r := arrivals(`{"slow":{"executor":"open-arrival-rate","rate":300,"duration":"2s","preAllocatedVUs":3}}`).with("WORK", "20").run(t)
	list := r.of("slow")
	if r.exit != 0 || len(list) != 600 || r.Totals[0].Unserved != 0 {
		t.Fatalf("exit code %d, %d of 600 arrivals, %+v\n%s", r.exit, len(list), r.Totals, r.output)
	}
	for n, m := range list {
		// Arrival n cannot start before its predecessors are through; a machine that is slow makes it later still.
		least := int64(n/3)*20*ms - (m.Due - list[0].Due)
		if m.Index != uint64(n) || m.At-m.Due < least {
			t.Fatalf("arrival %d started %v after it was due, and cannot have before %v", n, time.Duration(m.At-m.Due), time.Duration(least))
		}
	}
	if !strings.Contains(r.output, "Insufficient VUs") {
		t.Errorf("nothing says that there are too few VUs:\n%s", r.output)
	}
}

func TestMaxQueueFailsTheTest(t *testing.T) {
	t.Parallel()
	r := arrivals(`{"slow":{"executor":"open-arrival-rate","rate":1000,"duration":"30s","preAllocatedVUs":1,"maxQueue":200}}`).with("WORK", "60000").run(t)
	want := regexp.MustCompile(`[0-9]+ arrivals are due and not started, more than option \\"maxQueue\\" allows, which is 200; 1 of 1 VUs are busy`)
	if r.exit != 108 || !want.MatchString(r.output) {
		t.Errorf("exit code %d\n%s", r.exit, r.output)
	}
	if len(r.Totals) != 1 || r.Totals[0].Unserved < 201 || r.Totals[0].Started != 1 {
		t.Errorf("totals %+v", r.Totals)
	}
}

func TestGracefulStopInK6(t *testing.T) {
	t.Parallel()
	r := arrivals(`{"slow":{"executor":"open-arrival-rate","rate":100,"duration":"1s","preAllocatedVUs":1,"gracefulStop":"500ms"}}`).with("WORK", "100").run(t)
	if n := len(r.of("slow")); r.exit != 0 || n < 2 || n > 15 || !strings.Contains(r.output, "were never started") {
		t.Errorf("exit code %d, %d iterations\n%s", r.exit, n, r.output)
	}
	if tot := r.Totals[0]; tot.Due != 100 || tot.Started+tot.Unserved != 100 || tot.Started != uint64(len(r.of("slow"))) {
		t.Errorf("totals %+v", tot)
	}
}

func TestExecTestAbort(t *testing.T) {
	t.Parallel()
	r := k6{
		args: []string{"run", "--quiet", "testdata/abort.js"},
		env:  map[string]string{"SCENARIOS": `{"a":{"executor":"open-arrival-rate","rate":100,"duration":"1m","preAllocatedVUs":2}}`},
	}.run(t)
	if r.exit != 108 || !strings.Contains(r.output, "that is enough") {
		t.Errorf("exit code %d\n%s", r.exit, r.output)
	}
}

func TestASignalEndsTheTest(t *testing.T) {
	t.Parallel()
	k := arrivals(`{"a":{"executor":"open-arrival-rate","rate":100,"duration":"1m","preAllocatedVUs":2,"maxVUs":5}}`).with("WORK", "5")
	var start time.Time // of k6, which may have to be built first
	k.begun = func(p *os.Process) {
		start = time.Now()
		time.AfterFunc(2*time.Second, func() { _ = p.Signal(syscall.SIGINT) })
	}
	r := k.run(t)
	if r.exit != 105 || time.Since(start) > 30*time.Second {
		t.Errorf("exit code %d after %v\n%s", r.exit, time.Since(start), r.output)
	}
	if len(r.Totals) != 1 || r.Totals[0].Due == 0 || r.Totals[0].Due > 1000 {
		t.Errorf("totals %+v", r.Totals)
	}
}

// Processes with one segment each have together the arrivals of the whole.
func TestSegmentsInK6(t *testing.T) {
	t.Parallel()
	const scenarios = `{"a":{"executor":"open-arrival-rate","rate":301,"duration":"1s","preAllocatedVUs":5}}`
	seen := map[uint64]int64{}
	for _, segment := range []string{"0:1/4", "1/4:1/2", "1/2:1"} {
		r := arrivals(scenarios, "--execution-segment", segment, "--execution-segment-sequence", "0,1/4,1/2,1").run(t)
		list := r.of("a")
		if r.exit != 0 || len(list) == 0 {
			t.Fatalf("segment %s: exit code %d\n%s", segment, r.exit, r.output)
		}
		for _, m := range list {
			if _, twice := seen[m.Index]; twice {
				t.Errorf("arrival %d comes twice", m.Index)
			}
			seen[m.Index] = m.Due - list[0].Due + int64(list[0].Index)*int64(time.Second)/301
		}
	}
	for n := range uint64(301) {
		if got, want := seen[n], int64(n)*int64(time.Second)/301; got < want-1 || got > want+1 {
			t.Errorf("arrival %d is due at %d, want %d", n, got, want)
		}
	}
	if len(seen) != 301 {
		t.Errorf("%d arrivals of 301", len(seen))
	}
}

func TestAScriptOfOtherProtocols(t *testing.T) {
	t.Parallel()
	var requests atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		requests.Add(1)
		time.Sleep(10 * time.Millisecond)
	}))
	defer server.Close()
	summary := filepath.Join(t.TempDir(), "summary.json")
	r := k6{args: []string{"run", "--quiet", "--summary-export", summary, "testdata/http.js"}, env: map[string]string{"URL": server.URL}}.run(t)
	if r.exit != 0 || requests.Load() != 100 {
		t.Fatalf("exit code %d, %d requests\n%s", r.exit, requests.Load(), r.output)
	}
	var written struct {
		Metrics map[string]map[string]any `json:"metrics"`
	}
	text, err := os.ReadFile(summary)
	if err != nil || json.Unmarshal(text, &written) != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	for metric, want := range map[string]float64{"broker_arrivals": 100, "broker_arrivals_unserved": 0, "iterations": 100} {
		if got := written.Metrics[metric]["count"]; got != want {
			t.Errorf("%s is %v, want %v", metric, got, want)
		}
	}
	if written.Metrics["broker_queue_wait"]["max"] == nil || written.Metrics["broker_queue_length"]["value"] == nil {
		t.Errorf("metrics %v", written.Metrics)
	}
}

func TestInspectAndArchive(t *testing.T) {
	t.Parallel()
	const scenarios = `{"a":{"executor":"open-arrival-rate","rate":50,"duration":"1s","preAllocatedVUs":2,"maxVUs":3,"arrivals":"poisson","seed":4}}`
	r := k6{args: []string{"inspect", "--execution-requirements", "-e", "SCENARIOS=" + scenarios, "testdata/arrivals.js"}}.run(t)
	var shown struct {
		Scenarios map[string]map[string]any `json:"scenarios"`
		MaxVUs    int                       `json:"maxVUs"`
		Total     string                    `json:"totalDuration"`
	}
	if err := json.Unmarshal([]byte(r.output), &shown); err != nil || r.exit != 0 {
		t.Fatalf("%v, exit code %d\n%s", err, r.exit, r.output)
	}
	if a := shown.Scenarios["a"]; a["arrivals"] != "poisson" || a["rate"] != 50.0 || a["seed"] != 4.0 || shown.MaxVUs != 3 || shown.Total != "31s" {
		t.Errorf("inspected as %+v", shown)
	}
	archive := filepath.Join(t.TempDir(), "test.tar")
	r = k6{args: []string{"archive", "-O", archive, "-e", "SCENARIOS=" + scenarios, "testdata/arrivals.js"}}.run(t)
	if r.exit != 0 {
		t.Fatalf("exit code %d\n%s", r.exit, r.output)
	}
	ran := k6{args: []string{"run", "--quiet", archive}}.run(t)
	arrivals := schedule.Poisson(schedule.Constant(schedule.Rate{Events: 50, Per: time.Second}, time.Second), 4)
	if n := uint64(len(ran.of("a"))); ran.exit != 0 || n == 0 || n != schedule.Until(arrivals, time.Second) {
		t.Errorf("exit code %d, %d arrivals, want %d\n%s", ran.exit, n, schedule.Until(arrivals, time.Second), ran.output)
	}
}

// A test that was started paused has its due times from when it is resumed.
func TestPaused(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	_ = listener.Close()
	k := arrivals(`{"a":{"executor":"open-arrival-rate","rate":100,"duration":"1s","preAllocatedVUs":2}}`, "--paused", "--address", address)
	k.begun = func(*os.Process) { resume(t, address) }
	r := k.run(t)
	list := r.of("a")
	if r.exit != 0 || len(list) != 100 {
		t.Fatalf("exit code %d, %d arrivals\n%s", r.exit, len(list), r.output)
	}
	if lag := list[0].Started - list[0].Due; lag > int64(time.Second) {
		t.Errorf("the first arrival was due %v before it started", time.Duration(lag))
	}
}

// resume waits until k6 says that it is paused, lets 2 s pass, which must not count, and resumes it.
func resume(t *testing.T, address string) {
	t.Helper()
	url := "http://" + address + "/v1/status"
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		if response, err := http.Get(url); err == nil {
			line, _ := bufio.NewReader(response.Body).ReadString(0)
			_ = response.Body.Close()
			if strings.Contains(line, `"paused":true`) && strings.Contains(line, `"vus-max":2`) {
				break
			}
		}
		if time.Now().After(deadline) {
			t.Error("k6 never was paused")
			return
		}
	}
	time.Sleep(2 * time.Second)
	body := strings.NewReader(fmt.Sprintf(`{"data":{"type":"status","id":"default","attributes":{"paused":%t}}}`, false))
	request, err := http.NewRequest(http.MethodPatch, url, body)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Errorf("%v, %v", response, err)
		return
	}
	_ = response.Body.Close()
	http.DefaultClient.CloseIdleConnections()
}
