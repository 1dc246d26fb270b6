package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/xk6-broker/xk6-broker/e2e/manifests"
)

// operator is the folder of the k6-operator's source that these tests are built with.
func operator(t *testing.T) (folder, version string) {
	t.Helper()
	said, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}} {{.Version}}", "github.com/grafana/k6-operator").Output()
	if err != nil {
		t.Fatal(err)
	}
	folder, version, _ = strings.Cut(strings.TrimSpace(string(said)), " ")
	return folder, version
}

// testRunSchema is that of the operator's definition of a TestRun; it takes no fields that are not in it, where Kubernetes would drop them.
func testRunSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	folder, _ := operator(t)
	text, err := os.ReadFile(filepath.Join(folder, "config/crd/bases/k6.io_testruns.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var definition struct {
		Spec struct {
			Versions []struct {
				Schema struct{ OpenAPIV3Schema map[string]any }
			}
		}
	}
	if err := yaml.Unmarshal(text, &definition); err != nil {
		t.Fatal(err)
	}
	document := definition.Spec.Versions[0].Schema.OpenAPIV3Schema
	closed(document)
	text, err = yaml.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("testrun", jsonDocument(t, text)); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("testrun")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

func closed(schema map[string]any) {
	if _, ok := schema["properties"]; ok && schema["additionalProperties"] == nil {
		schema["additionalProperties"] = false
	}
	for _, each := range schema {
		if inner, ok := each.(map[string]any); ok {
			closed(inner)
		}
	}
}

func jsonDocument(t *testing.T, text []byte) any {
	t.Helper()
	text, err := yaml.YAMLToJSON(text)
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return document
}

func TestTheTestRunIsOneForTheOperator(t *testing.T) {
	schema, text := testRunSchema(t), manifests.Kustomized(t, manifests.Run).Text["TestRun"]
	if err := schema.Validate(jsonDocument(t, text)); err != nil {
		t.Error(err)
	}
	for was, is := range map[string]string{
		"parallelism: 3":           "parallelism: three",
		"resources:":               "resource:",
		"localFile:":               "file:",
		"runAsUser: 12345":         "runAsUser: root",
		"separate: false":          "separately: false",
		"name: BROKER_COORDINATOR": "nam: BROKER_COORDINATOR",
		"memory: 2Gi":              "memory: much",
		"fieldPath: metadata.":     "path: metadata.",
		"metadata.labels['k6_cr']": "metadata.labels['k6_cr']\n          apiversion: v1",
	} {
		changed := strings.Replace(string(text), was, is, 1)
		if changed == string(text) {
			t.Errorf("no %q in\n%s", was, text)
		} else if schema.Validate(jsonDocument(t, []byte(changed))) == nil {
			t.Errorf("%q is as good as %q", is, was)
		}
	}
}

// What the objects say of one another, and of what is elsewhere, is so.
func TestManifestsFitTogether(t *testing.T) {
	m := manifests.Kustomized(t, manifests.Setup, manifests.Run)
	coordinator := m.Coordinator.Spec.Template
	if m.Coordinator.Name != m.TestRun.Name {
		t.Errorf("the coordinator of %s is that of %s", m.TestRun.Name, m.Coordinator.Name)
	}
	listen := coordinator.Spec.Containers[0].Ports[0].ContainerPort
	for name, from := range map[string]struct {
		labels map[string]string
		port   int32
		asked  string // in the environment of the runners
	}{
		"coordinator": {coordinator.Labels, listen, "BROKER_COORDINATOR=http://coordinator:"},
		"nats":        {m.Deployments["nats"].Spec.Template.Labels, m.Deployments["nats"].Spec.Template.Spec.Containers[0].Ports[0].ContainerPort, "BROKER_URL=jetstream://nats:"},
	} {
		service := m.Services[name].Spec
		if len(service.Selector) != 1 || service.Selector["app"] != from.labels["app"] || service.Ports[0].Port != from.port {
			t.Errorf("%s: %v selects %v at %d", name, service, from.labels, from.port)
		}
		if !slices.ContainsFunc(m.TestRun.Spec.Runner.Env, func(v corev1.EnvVar) bool {
			return regexp.MustCompile("^" + from.asked + `(6464|4222)$`).MatchString(v.Name + "=" + v.Value)
		}) {
			t.Errorf("no %s in %v", from.asked, m.TestRun.Spec.Runner.Env)
		}
	}
	reader := manifests.Decode[corev1.Pod](t, []byte(text(t, "deploy/kubernetes/results.yaml")))
	for _, volumes := range [][]corev1.Volume{coordinator.Spec.Volumes, reader.Spec.Volumes} {
		if len(volumes) != 1 || volumes[0].PersistentVolumeClaim.ClaimName != m.Claim.Name {
			t.Errorf("%v, and the claim is %s", volumes, m.Claim.Name)
		}
	}
	image, inside := "FROM "+reader.Spec.Containers[0].Image+"@", strings.TrimPrefix(m.TestRun.Spec.Script.LocalFile, "/home/k6/")
	if !strings.Contains(text(t, "Dockerfile"), image) || !strings.Contains(text(t, inside), "export const options") {
		t.Errorf("%s or %s is not in the Dockerfile", image, inside)
	}
	if nats := m.Deployments["nats"].Spec.Template.Spec.Containers[0].Image; nats != composed(t, "*").Services["nats"].Image {
		t.Errorf("docker-compose.yml has another one than %s", nats)
	}
	_, version := operator(t)
	if want := "ghcr.io/grafana/k6-operator:starter-" + version; m.TestRun.Spec.Starter.Image != want {
		t.Errorf("the starter is %s, not %s", m.TestRun.Spec.Starter.Image, want)
	}
	for _, where := range []string{"docs/several-machines.md", "scripts/kubernetes"} {
		if !strings.Contains(text(t, where), version) {
			t.Errorf("%s is of another operator than %s", where, version)
		}
	}
}

// What measures has no limit of CPU, and no pod more rights than it needs.
func TestPodsAreAsTheyShouldBe(t *testing.T) {
	m := manifests.Kustomized(t, manifests.Setup, manifests.Run)
	runner, coordinator := m.TestRun.Spec.Runner, m.Coordinator.Spec.Template.Spec
	if _, limited := runner.Resources.Limits[corev1.ResourceCPU]; limited {
		t.Error("the runners' CPU is limited")
	}
	if runner.Resources.Limits.Memory().IsZero() || runner.Resources.Requests.Cpu().IsZero() {
		t.Error("the runners say nothing of what they need")
	}
	if runner.AutomountServiceAccountToken != "false" || *coordinator.AutomountServiceAccountToken || *m.Deployments["nats"].Spec.Template.Spec.AutomountServiceAccountToken {
		t.Error("a pod may speak with Kubernetes, and none has to")
	}
	for _, who := range []*corev1.PodSecurityContext{&runner.SecurityContext, coordinator.SecurityContext} {
		if !*who.RunAsNonRoot || *who.RunAsUser != 12345 {
			t.Errorf("it runs as %v", who)
		}
	}
}

// A user says the name of a run, and the image, in one place each.
func TestARunHasItsNameAndImageInOnePlace(t *testing.T) {
	m := manifests.Kustomized(t, manifests.Rewritten(t, `"-1"`, "-nightly", "newName: xk6-broker, newTag: dev", "newName: registry.example/load/k6, newTag: v7"))
	const image = "registry.example/load/k6:v7"
	if m.TestRun.Name != "test-nightly" || m.Coordinator.Name != m.TestRun.Name || m.TestRun.Spec.Runner.Image != image || m.Coordinator.Spec.Template.Spec.Containers[0].Image != image {
		t.Errorf("%s\n%s", m.Text["TestRun"], m.Text["Job"])
	}
}
