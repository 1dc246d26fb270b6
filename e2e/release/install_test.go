package release

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"

	"github.com/xk6-broker/xk6-broker/e2e/harness"
	"github.com/xk6-broker/xk6-broker/e2e/summary"
)

// xk6Version is the xk6 that users are thought to have.
const xk6Version = "v1.4.9"

// A released k6 is what strangers have of this repository: xk6 builds it from tags, which no replace line and no checkout helps.
func TestInstallsByXk6(t *testing.T) {
	const version = "v0.99.0"
	repo := copied(t)
	repo.release("--tag", version)
	strangers := stranger{t, append(os.Environ(),
		"GOPROXY="+moduleProxy(t, offered(t, repo, version)), "GONOSUMDB="+goEnv(t, "GONOSUMDB")+","+home, "GOWORK=off",
		// Modules of this name must be in no cache that outlives the test. The build cache knows packages by module and version where paths are trimmed.
		"GOMODCACHE="+t.TempDir(), "GOFLAGS="+goEnv(t, "GOFLAGS")+" -modcacherw -trimpath",
		"CGO_ENABLED=0", // as xk6 does
	), tool(t, "go.k6.io/xk6", xk6Version)}
	core, kafka, nats := home+"/extensions/xk6-broker", home+"/extensions/xk6-kafka", home+"/extensions/xk6-nats"

	t.Run("everything", func(t *testing.T) {
		k6 := strangers.builds(t, home+"@"+version)
		said := harness.Run(t, k6, nil, "version").Stdout
		for _, want := range []string{"k6 " + required(t), version + ", k6/x/broker [js]", version + ", k6/x/broker/kafka [js]", version + ", broker [subcommand]"} {
			if !strings.Contains(said, want) {
				t.Errorf("no %q in\n%s", want, said)
			}
		}
		if says := talks(t, k6); says != version {
			t.Errorf("its results are of %q", says)
		}
	})
	t.Run("the core and Kafka", func(t *testing.T) {
		k6 := strangers.builds(t, core+"@"+version, kafka+"@"+version)
		if out := harness.Run(t, k6, nil, "run", "--quiet", harness.Script(t, connecting("kafka://127.0.0.1:1"))); out.Code != 0 {
			t.Errorf("it does not know kafka: %s", out)
		}
		out := harness.Run(t, k6, nil, "run", "--quiet", harness.Script(t, connecting("embedded:")))
		if want := `no driver for scheme \"embedded\": this k6 knows kafka`; out.Code == 0 || !strings.Contains(out.Stderr, want) {
			t.Errorf("not %s but %s", want, out)
		}
	})
	t.Run("drivers before the core", func(t *testing.T) {
		talks(t, strangers.builds(t, nats+"@"+version, kafka+"@"+version, core+"@"+version))
	})
	t.Run("a checkout that nobody has released", func(t *testing.T) {
		here, plain := copied(t).folder, strangers
		plain.env = append(os.Environ(), "GOWORK=off", "GOFLAGS="+goEnv(t, "GOFLAGS")+" -trimpath", "CGO_ENABLED=0")
		talks(t, plain.builds(t, core+"="+here+"/extensions/xk6-broker", nats+"="+here+"/extensions/xk6-nats"))
	})
	t.Run("xk6 lint", func(t *testing.T) {
		// What it asks gosec `make lint` asks, of all modules; govulncheck needs a database from the network.
		lint := exec.Command(strangers.xk6, "lint", "--preset=community", "--disable=security,vulnerability")
		lint.Env = strangers.env
		t.Log(repo.must(lint))
	})
}

// stranger has Go, xk6 and a module proxy.
type stranger struct {
	t   *testing.T
	env []string
	xk6 string
}

// builds is `xk6 build --with ...`, and gives the k6.
func (s stranger) builds(t *testing.T, with ...string) string {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command(s.xk6, "build")
	for _, each := range with {
		cmd.Args = append(cmd.Args, "--with", each)
	}
	cmd.Env, cmd.Dir = s.env, dir
	said, err := cmd.CombinedOutput()
	if err != nil {
		verbose := exec.Command(s.xk6, append(cmd.Args[1:], "--verbose")...) // it keeps what Go said to itself
		verbose.Env, verbose.Dir = cmd.Env, cmd.Dir
		more, _ := verbose.CombinedOutput()
		t.Fatalf("%v: %v\n%s\n%s", cmd.Args, err, said, more)
	}
	if strings.Contains(string(said), "conflicting") {
		t.Errorf("the modules want different versions of k6:\n%s", said)
	}
	return filepath.Join(dir, "k6")
}

// talks has a k6 send and receive, on the embedded broker, and gives the version that its results are of.
func talks(t *testing.T, k6 string) string {
	t.Helper()
	results := t.TempDir()
	if out := harness.Run(t, k6, []string{"BROKER_REPORT_DIR=" + results}, "run", "--quiet", harness.Script(t, `
		import broker from 'k6/x/broker';
		import { check } from 'k6';
		const conn = broker.connect('embedded:');
		const sends = conn.producer('greetings');
		const receives = conn.consumer('greetings', { group: 'all', start: 'earliest' });
		export const options = { iterations: 3, thresholds: { checks: ['rate==1'], 'broker_settled{outcome:ack}': ['count==3'], broker_lost: ['count==0'] } };
		export async function setup() { await conn.createTopic('greetings'); }
		export default async function () {
			await sends.send('hello ' + __ITER);
			const [message] = await receives.receive({ max: 1, wait: '10s' });
			check(message, { 'comes back': (m) => m.text() === 'hello ' + __ITER });
			await receives.ack(message);
		}
		export { handleSummary } from 'k6/x/broker';`)); out.Code != 0 {
		t.Fatalf("%s", out)
	}
	folders, err := filepath.Glob(filepath.Join(results, "*"))
	if err != nil || len(folders) != 1 {
		t.Fatalf("results are in %v, %v", folders, err)
	}
	result, err := summary.Read(folders[0])
	if err != nil {
		t.Fatal(err)
	}
	return result.Environment["xk6-broker"]
}

// connecting is a script that connects, which opens nothing.
func connecting(url string) string {
	return "import broker from 'k6/x/broker'; broker.connect('" + url + "'); export default function () {}"
}

// required is the version of k6 that this repository requires.
func required(t *testing.T) string {
	t.Helper()
	for _, each := range (repository{t, harness.Repo()}).goMods()["."].Require {
		if each.Mod.Path == "go.k6.io/k6/v2" {
			return each.Mod.Version
		}
	}
	t.Fatal("go.mod requires no k6")
	return ""
}

// offered lays the tagged modules out as a file system of a module proxy has them, and gives the folder.
func offered(t *testing.T, repo repository, version string) string {
	t.Helper()
	dir := t.TempDir()
	for _, tag := range strings.Fields(repo.git("tag")) {
		folder := strings.TrimSuffix(strings.TrimSuffix(tag, version), "/")
		goMod := repo.git("show", tag+":"+strings.TrimPrefix(folder+"/go.mod", "/"))
		path, err := module.EscapePath(modfile.ModulePath([]byte(goMod)))
		if err != nil {
			t.Fatal(err)
		}
		files := repository{t, filepath.Join(dir, path, "@v")}
		if err := os.MkdirAll(files.folder, 0o700); err != nil {
			t.Fatal(err)
		}
		files.write("list", version+"\n")
		files.write(version+".info", `{"Version": "`+version+`"}`)
		files.write(version+".mod", goMod)
		archive, err := os.Create(filepath.Join(files.folder, version+".zip"))
		if err != nil {
			t.Fatal(err)
		}
		err = zip.CreateFromVCS(archive, module.Version{Path: modfile.ModulePath([]byte(goMod)), Version: version}, repo.folder, tag, folder)
		if err != nil {
			t.Fatal(err)
		}
		if err := archive.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// moduleProxy serves this repository's modules from a folder, and all others from this machine's cache or else from where it gets its modules.
// It is one address, as most users have: xk6 asks the proxy itself, and takes no list.
func moduleProxy(t *testing.T, dir string) string {
	t.Helper()
	elsewhere := ""
	for _, each := range strings.FieldsFunc(goEnv(t, "GOPROXY"), func(r rune) bool { return r == ',' || r == '|' }) {
		if strings.HasPrefix(each, "http") {
			elsewhere = strings.TrimSuffix(each, "/")
			break
		}
	}
	cache := filepath.Join(goEnv(t, "GOMODCACHE"), "cache/download")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch path := filepath.FromSlash(r.URL.Path); {
		case strings.HasPrefix(r.URL.Path, "/"+home):
			http.FileServer(http.Dir(dir)).ServeHTTP(w, r)
		case exists(filepath.Join(cache, path)) && !strings.HasSuffix(path, "/@v/list"): // the cache's list is of what it has
			http.ServeFile(w, r, filepath.Join(cache, path))
		case elsewhere != "":
			http.Redirect(w, r, elsewhere+r.URL.EscapedPath(), http.StatusTemporaryRedirect)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func exists(file string) bool {
	info, err := os.Stat(file)
	return err == nil && info.Mode().IsRegular()
}

// goEnv is a setting of Go on this machine.
func goEnv(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.Command("go", "env", name).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// tool builds the command that a module is, at a version, and gives its path. `go install` would ask for the module's other versions, too.
func tool(t *testing.T, path, version string) string {
	t.Helper()
	in := repository{t, t.TempDir()}
	in.must(exec.Command("go", "mod", "init", "tool"))
	in.must(exec.Command("go", "mod", "edit", "-require="+path+"@"+version))
	in.must(exec.Command("go", "build", "-mod=mod", path))
	return filepath.Join(in.folder, filepath.Base(path))
}
