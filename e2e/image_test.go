package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/xk6-broker/xk6-broker/e2e/harness"
)

var (
	byDigest    = regexp.MustCompile(`:\d+\.\d+\.\d+(-[a-z]+)?@sha256:[0-9a-f]{64}$`)
	byCommit    = regexp.MustCompile(`^[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)
	ofWorkflows = regexp.MustCompile(`(?m)(uses|container|image|go-version): ([^,\n}]+)`)
)

// goVersion is that of the image's builder, which has the Go that the module wants.
func goVersion(t *testing.T) string {
	t.Helper()
	builder := regexp.MustCompile(`golang:(\d+\.\d+)(\.\d+)`).FindStringSubmatch(text(t, "Dockerfile"))
	module := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(text(t, "go.mod"))
	if builder == nil || module == nil || builder[1] != module[1] {
		t.Fatalf("the image is built by %v, and the module wants %v", builder, module)
	}
	return builder[1] + builder[2]
}

func TestDockerfile(t *testing.T) {
	goVersion(t)
	instructions := regexp.MustCompile(`(?m)^(FROM|COPY|USER) +(?:--platform=\S+ )?(.*)$`).FindAllStringSubmatch(text(t, "Dockerfile"), -1)
	ignored := strings.Split(text(t, ".dockerignore"), "\n")
	stages, user := 0, ""
	for _, i := range instructions {
		words := strings.Fields(i[2])
		switch i[1] {
		case "FROM":
			stages, user = stages+1, ""
			if !byDigest.MatchString(words[0]) {
				t.Errorf("FROM %s has no whole version or no digest", words[0])
			}
		case "COPY":
			if strings.HasPrefix(words[0], "--from=") {
				continue
			}
			for _, from := range words[:len(words)-1] {
				if _, err := os.Stat(filepath.Join("..", from)); err != nil || !slices.Contains(ignored, "!"+from) {
					t.Errorf("COPY %s: it is ignored, or not there: %v", from, err)
				}
			}
		case "USER":
			user = words[0]
		}
	}
	if stages < 2 || user != "12345:12345" { // by number, which is how Kubernetes knows that it is not root
		t.Errorf("%d stages, the last runs as %q", stages, user)
	}
}

// What the workflows run is what somebody has looked at: actions by commit, images by digest, and the Go that the image is built with.
func TestWorkflowsArePinned(t *testing.T) {
	workflows, err := filepath.Glob("../.github/workflows/*.yml")
	if err != nil || len(workflows) == 0 {
		t.Fatal("no workflows", err)
	}
	version := goVersion(t)
	for _, workflow := range workflows {
		name := filepath.Join(".github/workflows", filepath.Base(workflow))
		found := ofWorkflows.FindAllStringSubmatch(text(t, name), -1)
		if len(found) == 0 {
			t.Errorf("%s uses nothing", name)
		}
		for _, one := range found {
			what, of := one[1], strings.TrimSpace(one[2])
			if what == "container" { // in one line
				what = "image"
			}
			switch {
			case what == "uses" && !strings.HasPrefix(of, "./") && !byCommit.MatchString(of),
				what == "image" && !byDigest.MatchString(of),
				what == "image" && strings.HasPrefix(of, "golang:") && !strings.HasPrefix(of, "golang:"+version+"-"),
				what == "go-version" && of != version:
				t.Errorf("%s: %s", name, one[0])
			}
		}
	}
}

// Every broker that docker-compose.yml has alone is tested in its container, by tests that there are.
func TestWorkflowTestsEveryContainer(t *testing.T) {
	want := []string{"influxdb"} // it comes without a profile
	for _, service := range composed(t, "*").Services {
		for _, profile := range service.Profiles {
			if !strings.Contains(profile, "-") && !slices.Contains(want, profile) {
				want = append(want, profile)
			}
		}
	}
	slices.Sort(want)
	var got []string
	line := regexp.MustCompile(`(?m)^ +- \{ broker: (\S+), module: (\S+), tests: '([^'/]+)`)
	for _, m := range line.FindAllStringSubmatch(text(t, ".github/workflows/ci.yml"), -1) {
		got = append(got, m[1])
		files, err := filepath.Glob("../extensions/" + m[2] + "/*_test.go")
		if err != nil {
			t.Fatal(err)
		}
		chosen, found := regexp.MustCompile(m[3]), false
		for _, file := range files {
			for _, test := range regexp.MustCompile(`(?m)^func (Test\w*)`).FindAllStringSubmatch(string(harness.Read(t, file)), -1) {
				found = found || chosen.MatchString(test[1])
			}
		}
		if !found {
			t.Errorf("no test of %s is called %s", m[2], m[3])
		}
	}
	slices.Sort(got)
	if got = slices.Compact(got); !slices.Equal(got, want) {
		t.Errorf("tested in their containers are %v, and there are %v", got, want)
	}
}
