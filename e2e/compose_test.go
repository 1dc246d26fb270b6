package e2e

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
)

// composed reads docker-compose.yml as docker compose does, which checks it against the Compose specification.
func composed(t *testing.T, profiles ...string) *types.Project {
	t.Helper()
	options, err := cli.NewProjectOptions([]string{"../docker-compose.yml"}, cli.WithProfiles(profiles))
	if err != nil {
		t.Fatal(err)
	}
	project, err := options.LoadProject(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return project
}

// text reads a file of the repository.
func text(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", path))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// pinned is an image with a whole version. PostgreSQL's have two numbers.
var pinned = regexp.MustCompile(`(:v?\d+\.\d+\.\d+|^postgres:\d+\.\d+)(-[a-z]+)?$`)

func TestComposeServices(t *testing.T) {
	project := composed(t, "*")
	if len(project.Services) < 10 {
		t.Fatalf("%d services", len(project.Services))
	}
	for name, s := range project.Services {
		if s.Build == nil && !pinned.MatchString(s.Image) {
			t.Errorf("%s: the image %q has no whole version", name, s.Image)
		}
		for _, p := range s.Ports {
			if p.HostIP != "127.0.0.1" {
				t.Errorf("%s publishes %s on %q", name, p.Published, p.HostIP)
			}
		}
		for _, v := range s.Volumes {
			if v.Type == types.VolumeTypeBind {
				if _, err := os.Stat(v.Source); err != nil || !v.ReadOnly {
					t.Errorf("%s: %s is writable or not there: %v", name, v.Source, err)
				}
			}
		}
		// Whoever waits is told soon; afterwards nothing is started beside a benchmark.
		if h := s.HealthCheck; h != nil && (h.StartInterval == nil || time.Duration(*h.StartInterval) > 5*time.Second ||
			h.Interval == nil || time.Duration(*h.Interval) < 10*time.Minute) {
			t.Errorf("%s: its health is asked for every %v, and every %v while it starts", name, h.Interval, h.StartInterval)
		}
	}
}

// "docker compose up" starts InfluxDB and Grafana, whose data stay, and a run of k6 that is stored where the dashboards look.
func TestComposeUpShowsARun(t *testing.T) {
	project := composed(t)
	if names := project.ServiceNames(); !slices.Equal(names, []string{"grafana", "influxdb", "k6"}) {
		t.Fatalf("up starts %v", names)
	}
	for name, folder := range map[string]string{"influxdb": "/var/lib/influxdb", "grafana": "/var/lib/grafana"} {
		// scripts/broker removes the volume that has the service's name.
		if !slices.ContainsFunc(project.Services[name].Volumes, func(v types.ServiceVolumeConfig) bool {
			return v.Type == types.VolumeTypeVolume && v.Source == name && v.Target == folder
		}) {
			t.Errorf("the data of %s are in no volume", name)
		}
	}

	k6 := project.Services["k6"]
	out := *k6.Environment["K6_OUT"]
	address, database := path.Split(strings.TrimPrefix(out, "influxdb="))
	source := text(t, "grafana/provisioning/datasources/influxdb.yml")
	for _, want := range []string{"url: " + strings.TrimSuffix(address, "/") + "\n", "dbName: " + database + "\n"} {
		if !strings.Contains(source, want) {
			t.Errorf("k6 writes to %s, and the data source has no %q", out, want)
		}
	}
	if command := k6.Command; !slices.Contains(command, "run") || !strings.Contains(text(t, command[len(command)-1]), "export const options") {
		t.Errorf("k6 %v", command)
	}
	dashboards := text(t, "grafana/provisioning/dashboards/dashboards.yml")
	if !slices.ContainsFunc(project.Services["grafana"].Volumes, func(v types.ServiceVolumeConfig) bool {
		return strings.HasSuffix(v.Source, "/grafana/dashboards") && strings.Contains(dashboards, "path: "+v.Target+"\n")
	}) {
		t.Error("Grafana does not find the dashboards")
	}
}

// Grafana is of the version whose types the dashboards are made with.
func TestComposeHasTheGrafanaOfTheDashboards(t *testing.T) {
	sdk := regexp.MustCompile(`grafana-foundation-sdk": "(\d+\.\d+)\.`).FindStringSubmatch(text(t, "grafana/package.json"))
	if image := composed(t).Services["grafana"].Image; sdk == nil || !strings.HasPrefix(image, "grafana/grafana:"+sdk[1]+".") {
		t.Errorf("the dashboards are made for %v, the image is %s", sdk, image)
	}
}
