package pods

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/grafana/k6-operator/api/v1alpha1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/xk6-broker/xk6-broker/e2e/harness"
	"github.com/xk6-broker/xk6-broker/e2e/manifests"
	"github.com/xk6-broker/xk6-broker/e2e/summary"
)

// kubernetes is a cluster with k6-operator and the image xk6-broker:dev, with what deploy/kubernetes/setup makes of it.
type kubernetes struct {
	t      *testing.T
	prefix string
}

// cluster is the one that BROKER_KUBECTL is for, a command such as "kubectl" with the words that choose it: `make test-full PART=kubernetes` starts one.
func cluster(t *testing.T) *kubernetes {
	t.Helper()
	if os.Getenv("BROKER_KUBECTL") == "" {
		t.Skip("BROKER_KUBECTL is not set")
	}
	k := &kubernetes{t, fmt.Sprintf("t%d", time.Now().Unix())}
	k.must("apply", "-k", manifests.Setup)
	k.must("rollout", "status", "deployment/nats", "--timeout", "2m")
	return k
}

// kubectl runs it to its end.
func (k *kubernetes) kubectl(args ...string) (string, error) {
	words := append(strings.Fields(os.Getenv("BROKER_KUBECTL")), args...)
	said, err := exec.CommandContext(k.t.Context(), words[0], words[1:]...).CombinedOutput() //gosec:disable G204 -- what the environment says
	return string(said), err
}

func (k *kubernetes) must(args ...string) string {
	k.t.Helper()
	said, err := k.kubectl(args...)
	if err != nil {
		k.t.Fatalf("kubectl %v: %v\n%s", args, err, said)
	}
	return said
}

// get reads an object; false where there is none.
func (k *kubernetes) get(kind, name string, object any) bool {
	k.t.Helper()
	said, err := k.kubectl("get", kind, name, "-o", "json")
	if err == nil {
		if err := json.Unmarshal([]byte(said), object); err != nil {
			k.t.Fatal(err)
		}
	}
	return err == nil
}

// stored is how many messages the cluster's NATS has, as its own monitoring says.
func (k *kubernetes) stored() int64 {
	k.t.Helper()
	var pods corev1.PodList
	if !k.get("pods", "--selector=app=nats", &pods) {
		k.t.Fatal("the pods cannot be listed")
	}
	pods.Items = slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil })
	if len(pods.Items) != 1 {
		k.t.Fatalf("%d pods of NATS", len(pods.Items))
	}
	said := k.must("get", "--raw", fmt.Sprintf("/api/v1/namespaces/%s/pods/%s:8222/proxy/jsz", pods.Items[0].Namespace, pods.Items[0].Name))
	var jetstream struct{ Messages int64 }
	if err := json.Unmarshal([]byte(said), &jetstream); err != nil {
		k.t.Fatalf("%v: %s", err, said)
	}
	return jetstream.Messages
}

// deployed is a run of its own: the folder of a run with other words in it.
type deployed struct {
	*kubernetes
	name string
}

func (k *kubernetes) deploy(suffix string, words ...string) *deployed {
	k.t.Helper()
	d := &deployed{k, "test-" + k.prefix + "-" + suffix}
	k.must("apply", "-k", manifests.Rewritten(k.t, append([]string{`"-1"`, "-" + k.prefix + "-" + suffix}, words...)...))
	k.t.Cleanup(func() {
		if k.t.Failed() {
			for _, what := range [][]string{{"get", "pods,jobs,testruns", "-o", "wide"}, {"logs", "job/" + d.name, "--tail", "50"}, {"logs", "-l", "k6_cr=" + d.name, "--tail", "50"}} {
				said, _ := k.kubectl(what...)
				k.t.Logf("kubectl %v\n%s", what, said)
			}
		}
	})
	return d
}

// until waits for what a cluster does in its own time.
func (d *deployed) until(what string, is func() bool) {
	d.t.Helper()
	for end := time.Now().Add(3 * time.Minute); !is(); time.Sleep(200 * time.Millisecond) {
		if time.Now().After(end) {
			d.t.Fatalf("%s: %s did not come to pass", d.name, what)
		}
	}
}

// ended waits for the end of the coordinator's Job, and says whether it is complete and what it said.
func (d *deployed) ended() (complete bool, said string) {
	d.t.Helper()
	d.until("the end", func() bool {
		var job batchv1.Job
		return d.get("job", d.name, &job) && slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool {
			complete = c.Type == batchv1.JobComplete
			return c.Status == corev1.ConditionTrue && (complete || c.Type == batchv1.JobFailed)
		})
	})
	return complete, d.must("logs", "job/"+d.name)
}

// result copies the whole's results, as docs/several-machines.md says.
func (d *deployed) result() *summary.Summary {
	d.t.Helper()
	d.must("apply", "-f", harness.Repo("deploy/kubernetes/results.yaml"))
	d.must("wait", "--for=condition=Ready", "pod/results", "--timeout", "2m")
	folder := filepath.Join(d.t.TempDir(), d.name)
	d.must("cp", "results:/results/"+d.name, folder)
	d.must("delete", "pod", "results")
	if _, err := os.Stat(filepath.Join(folder, summary.Page)); err != nil {
		d.t.Error(err)
	}
	whole, err := summary.Read(folder)
	if err != nil {
		d.t.Fatal(err)
	}
	return whole
}

// short is a run that is over soon, and does not fail where the machine is busy with other things.
var short = []string{"value: 30s", "value: 10s", "coordinator, --processes", "coordinator, --allow-invalid, --processes"}

// As it is deployed the whole has the account of one process, to the message.
func TestKubernetesRunsOneTest(t *testing.T) {
	d := cluster(t).deploy("whole", "coordinator, --processes", "coordinator, --allow-invalid, --processes")
	complete, said := d.ended()
	t.Log(said)
	if !complete {
		t.Fatal("the coordinator's job failed")
	}
	dir := t.TempDir()
	settings := []string{"RATE=1000", "DURATION=30s"} // those of deploy/kubernetes/run
	if r := harness.K6(t, append(settings, "BROKER_URL=embedded:", "BROKER_REPORT_DIR="+dir, "BROKER_REPORT_NAME=alone"), "run", "--quiet", harness.Quick); r.Code != 0 {
		t.Fatal(r)
	}
	alone, err := summary.Read(filepath.Join(dir, "alone"))
	if err != nil {
		t.Fatal(err)
	}
	harness.Same(t, d.result(), alone)
}

// A pod that is deleted while it runs ends in good order, and what it sent and received is in the whole.
func TestKubernetesKeepsWhatADeletedPodHas(t *testing.T) {
	k := cluster(t)
	before := k.stored()
	d := k.deploy("deleted", short...)
	d.until("the middle of the run", func() bool { return k.stored() >= before+3000 }) // of 10000
	d.must("delete", "pod", "-l", "job-name="+d.name+"-2", "--wait=false")
	complete, said := d.ended()
	t.Log(said)
	whole := d.result()
	g := whole.Topics[0].Groups[0]
	if !complete || g.Lost+g.Why["missing-process"] != 0 || whole.Topics[0].Counts["sent"] >= 10000 || whole.Topics[0].Counts["sent"] < 7000 || whole.Verdict.Valid {
		t.Errorf("complete %v: sent %d, %+v, valid %v", complete, whole.Topics[0].Counts["sent"], g.Account, whole.Verdict.Valid)
	}
}

// Processes that fail their thresholds are no more than that: the TestRun is finished, and the whole is judged by itself.
func TestKubernetesJudgesTheWhole(t *testing.T) {
	d := cluster(t).deploy("thresholds", append(short, "--no-thresholds", "--quiet", "lost > 0", "received > 1000")...)
	complete, said := d.ended()
	t.Log(said)
	if complete || !strings.Contains(said, "received > 1000") {
		t.Errorf("a whole that fails is complete: %v", complete)
	}
	d.until("the end of the TestRun", func() bool {
		var run v1alpha1.TestRun
		return d.get("testrun", d.name, &run) && run.Status.Stage == "finished"
	})
	failed := int32(0)
	for i := range 3 {
		var runner batchv1.Job
		if !d.get("job", fmt.Sprintf("%s-%d", d.name, i+1), &runner) {
			t.Errorf("there is no runner %d", i+1)
		}
		failed += runner.Status.Failed
	}
	if failed != 2 { // the third has the consumer, and so knows what was lost
		t.Errorf("%d runners failed", failed)
	}
	if whole := d.result(); whole.Topics[0].Counts["sent"] != 10000 || whole.Topics[0].Groups[0].Lost != 0 {
		t.Errorf("%+v", whole.Topics[0].Groups[0])
	}
}

// Where no process ever starts, the coordinator says so in its time.
func TestKubernetesWithoutItsImage(t *testing.T) {
	d := cluster(t).deploy("image", "select: {kind: TestRun}", "select: {kind: None}", "--timeout, 10m", "--timeout, 20s")
	complete, said := d.ended()
	t.Log(said)
	if complete || !strings.Contains(said, "no process sent its results") {
		t.Errorf("complete %v:\n%s", complete, said)
	}
	d.must("delete", "testrun", d.name)
}
