package processes

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/grafana/k6-operator/api/v1alpha1"
	"github.com/grafana/k6-operator/pkg/resources/jobs"
	"github.com/grafana/k6-operator/pkg/types"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/xk6-broker/xk6-broker/e2e/harness"
	"github.com/xk6-broker/xk6-broker/e2e/manifests"
	"github.com/xk6-broker/xk6-broker/e2e/summary"
)

// startedApart is about how long after one another the operator's starter starts the processes.
const startedApart = 100 * time.Millisecond

// operated are the processes of a TestRun as k6-operator runs them, here: with the commands and the environment that its own code makes of it, each
// paused until it is told to go on, one after the other.
type operated struct {
	t       *testing.T
	run     *v1alpha1.TestRun
	env     []string // of this machine, which goes before what the TestRun says
	here    *strings.Replacer
	running []*operatedProcess
}

type operatedProcess struct {
	name, api string
	cmd       *exec.Cmd
	out, err  bytes.Buffer
	ended     chan struct{}
	end       error
}

// operate starts all processes of a TestRun, and has them go on.
func operate(t *testing.T, testRun *v1alpha1.TestRun, env ...string) *operated {
	t.Helper()
	scenarios, err := filepath.Abs(harness.Repo("scenarios"))
	if err != nil {
		t.Fatal(err)
	}
	o := &operated{t: t, run: testRun, env: env, here: strings.NewReplacer("/home/k6/scenarios/", scenarios+"/")}
	for index := range int(testRun.Spec.Parallelism) {
		job, err := jobs.NewRunnerJob(testRun, index+1, nil)
		if err != nil {
			t.Fatal(err)
		}
		o.start(job)
	}
	for _, p := range o.running {
		p.await(t)
	}
	for i, p := range o.running {
		if i > 0 {
			time.Sleep(startedApart) // as the starter does
		}
		p.resume(t)
	}
	return o
}

// start starts the process of a Job.
func (o *operated) start(job *batchv1.Job) {
	o.t.Helper()
	p := &operatedProcess{name: job.Name, api: loopback(o.t), ended: make(chan struct{})}
	container := job.Spec.Template.Spec.Containers[0]
	command := append([]string{}, container.Command...)
	for i, word := range command {
		command[i] = o.here.Replace(strings.ReplaceAll(word, "0.0.0.0:6565", p.api))
	}
	folder := o.t.TempDir() // where the binary has the name that it has in the image
	if err := os.Symlink(harness.Binary, filepath.Join(folder, "k6")); err != nil {
		o.t.Fatal(err)
	}
	p.cmd = exec.Command(command[0], command[1:]...)
	p.cmd.Env = append(os.Environ(), "PATH="+folder+":"+os.Getenv("PATH"), "HOSTNAME="+job.Spec.Template.Spec.Hostname, "BROKER_REPORT_DIR="+o.t.TempDir())
	p.cmd.Env = append(append(p.cmd.Env, environment(container.Env, labels(job))...), o.env...)
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.err
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a shell and k6
	if err := p.cmd.Start(); err != nil {
		o.t.Fatal(err)
	}
	o.t.Cleanup(func() { p.signal(syscall.SIGKILL); <-p.ended })
	go func() { p.end = p.cmd.Wait(); close(p.ended) }()
	o.running = append(o.running, p)
}

// signal sends a signal to the process, as the kubelet does.
func (p *operatedProcess) signal(s syscall.Signal) {
	select {
	case <-p.ended:
	default:
		_ = syscall.Kill(-p.cmd.Process.Pid, s)
	}
}

// labels are those that Kubernetes gives the pod of a job.
func labels(job *batchv1.Job) map[string]string {
	all := map[string]string{"job-name": job.Name}
	for name, value := range job.Spec.Template.Labels {
		all[name] = value
	}
	return all
}

// environment is what the kubelet makes of a container's.
func environment(vars []corev1.EnvVar, labels map[string]string) []string {
	var all, earlier []string
	for _, v := range vars {
		value := strings.NewReplacer(earlier...).Replace(v.Value)
		if v.ValueFrom != nil {
			value = labels[strings.TrimSuffix(strings.TrimPrefix(v.ValueFrom.FieldRef.FieldPath, "metadata.labels['"), "']")]
		}
		all, earlier = append(all, v.Name+"="+value), append(earlier, "$("+v.Name+")", value)
	}
	return all
}

// wait waits until all processes have ended.
func (o *operated) wait() []harness.Result {
	o.t.Helper()
	deadline := time.After(2 * time.Minute)
	var all []harness.Result
	for _, p := range o.running {
		select {
		case <-p.ended:
		case <-deadline:
			o.t.Fatalf("%s did not end", p.name)
		}
		harness.NoRace(o.t, p.end, p.err.String())
		r := harness.Result{Stdout: p.out.String(), Stderr: p.err.String()}
		if exit := (*exec.ExitError)(nil); errors.As(p.end, &exit) {
			r.Code = exit.ExitCode()
		} else if p.end != nil {
			o.t.Fatal(p.end)
		}
		all = append(all, r)
	}
	return all
}

// await waits until the process says that it is paused, as the operator waits for its service.
func (p *operatedProcess) await(t *testing.T) {
	t.Helper()
	until(t, func() bool {
		select {
		case <-p.ended:
			t.Fatalf("%s: %v\n%s%s", p.name, p.end, &p.out, &p.err)
		default:
		}
		response, err := http.Get("http://" + p.api + "/v1/status")
		if err != nil {
			return false
		}
		defer func() { _ = response.Body.Close() }()
		var status types.StatusAPIRequest
		return json.NewDecoder(response.Body).Decode(&status) == nil && status.Data.Attributes.Paused
	})
}

// resume sends what the starter's curl does.
func (p *operatedProcess) resume(t *testing.T) {
	t.Helper()
	body, err := json.Marshal(types.StatusAPIRequest{Data: types.StatusAPIRequestData{ID: "default", Type: "status"}})
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, "http://"+p.api+"/v1/status", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if said, _ := io.ReadAll(response.Body); response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s %s", p.name, response.Status, said)
	}
}

// until waits for a condition.
func until(t *testing.T, is func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for !is() {
		select {
		case <-ctx.Done():
			t.Fatal("it did not come to pass within a minute")
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// loopback is an address that nobody listens at.
func loopback(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// coordinatedBy runs the coordinator of a Job here, and gives its address and what waits for its end, its result with it.
func coordinatedBy(t *testing.T, job *batchv1.Job, more ...string) (address string, wait func() (harness.Result, *summary.Summary)) {
	t.Helper()
	address = loopback(t)
	results := t.TempDir()
	here := strings.NewReplacer("0.0.0.0:6464", address, "/results/$(RUN)", filepath.Join(results, job.Name), "$(RUN)", job.Name)
	var args []string
	for _, arg := range job.Spec.Template.Spec.Containers[0].Args {
		args = append(args, here.Replace(arg))
	}
	var ended sync.WaitGroup
	var r harness.Result
	ended.Go(func() {
		r = harness.K6(t, environment(job.Spec.Template.Spec.Containers[0].Env, labels(job)), append(args, more...)...)
	})
	return address, func() (harness.Result, *summary.Summary) {
		t.Helper()
		ended.Wait()
		whole, err := summary.Read(filepath.Join(results, job.Name))
		if err != nil {
			t.Fatal(err, r)
		}
		return r, whole
	}
}

// What is deployed, by the operator's own arguments, is as a whole what one process is, to the message.
func TestProcessesOfTheOperatorAreOneTest(t *testing.T) {
	t.Parallel()
	m := manifests.Kustomized(t, manifests.Run)
	unique := fmt.Sprintf("operator-%d", time.Now().UnixNano())
	settings := []string{"BROKER_URL=" + harness.URL(t, "BROKER_URL_NATS_JETSTREAM"), "RATE=600", "DURATION=5s", "ARRIVALS=poisson", "KEYS=7", "CONSUMERS=3"}
	m.TestRun.Name, m.Coordinator.Name = unique, unique

	address, wait := coordinatedBy(t, &m.Coordinator, "--allow-invalid")
	processes := operate(t, &m.TestRun, append(settings, "TOPIC="+unique, "BROKER_COORDINATOR=http://"+address)...)
	for _, r := range processes.wait() {
		if r.Code != 0 {
			t.Error(r)
		}
	}
	r, whole := wait()
	if r.Code != 0 {
		t.Fatal(r)
	}
	dir := t.TempDir()
	if r := harness.K6(t, append(settings, "TOPIC="+unique+"-alone", "BROKER_REPORT_DIR="+dir, "BROKER_REPORT_NAME=alone"), "run", "--quiet", harness.Quick); r.Code != 0 {
		t.Fatal(r)
	}
	alone, err := summary.Read(filepath.Join(dir, "alone"))
	if err != nil {
		t.Fatal(err)
	}
	harness.Same(t, whole, alone)
}
