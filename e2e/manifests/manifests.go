// Package manifests reads deploy/kubernetes by kustomize.
package manifests

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/grafana/k6-operator/api/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/xk6-broker/xk6-broker/e2e/harness"
)

// Setup is the folder applied once, Run the folder of a test.
var (
	Setup = harness.Repo("deploy/kubernetes/setup")
	Run   = harness.Repo("deploy/kubernetes/run")
)

// Manifests are objects of Kubernetes, as `kubectl apply -k` sends them.
type Manifests struct {
	TestRun     v1alpha1.TestRun
	Coordinator batchv1.Job
	Claim       corev1.PersistentVolumeClaim
	Deployments map[string]appsv1.Deployment
	Services    map[string]corev1.Service
	Text        map[string][]byte // by kind, of the last one
}

// Kustomized runs kustomize on folders. An unknown field of Kubernetes fails the test.
func Kustomized(t *testing.T, folders ...string) *Manifests {
	t.Helper()
	m := &Manifests{
		Deployments: map[string]appsv1.Deployment{}, Services: map[string]corev1.Service{}, Text: map[string][]byte{},
	}
	for _, folder := range folders {
		objects, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range objects.Resources() {
			text := []byte(object.MustYaml())
			m.Text[object.GetKind()] = text
			switch object.GetKind() {
			case "TestRun":
				m.TestRun = Decode[v1alpha1.TestRun](t, text)
			case "Job":
				m.Coordinator = Decode[batchv1.Job](t, text)
			case "PersistentVolumeClaim":
				m.Claim = Decode[corev1.PersistentVolumeClaim](t, text)
			case "Deployment":
				m.Deployments[object.GetName()] = Decode[appsv1.Deployment](t, text)
			case "Service":
				m.Services[object.GetName()] = Decode[corev1.Service](t, text)
			default:
				t.Errorf("unexpected kind %s", object.GetKind())
			}
		}
	}
	return m
}

// Decode reads an object by its type of Kubernetes.
func Decode[T any](t *testing.T, text []byte) T {
	t.Helper()
	var object T
	if err := yaml.UnmarshalStrict(text, &object); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return object
}

// Rewritten returns a copy of the folder of a run with words replaced.
func Rewritten(t *testing.T, words ...string) string {
	t.Helper()
	folder := t.TempDir()
	if err := os.CopyFS(folder, os.DirFS(Run)); err != nil {
		t.Fatal(err)
	}
	for pair := range slices.Chunk(words, 2) {
		found := false
		for _, name := range harness.Names(t, folder) {
			path := filepath.Join(folder, name)
			before := string(harness.Read(t, path))
			after := strings.ReplaceAll(before, pair[0], pair[1])
			found = found || after != before
			if err := os.WriteFile(path, []byte(after), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if !found {
			t.Fatalf("no %q in %s", pair[0], Run)
		}
	}
	return folder
}
