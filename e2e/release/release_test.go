package release

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"

	"github.com/xk6-broker/xk6-broker/e2e/harness"
)

const home = "github.com/xk6-broker/xk6-broker"

// repository is a copy of this checkout, with a remote one to push to.
type repository struct {
	t      *testing.T
	folder string
}

// copied commits what is in this checkout, be it committed or not, to a repository without tags. Its changelog has two sections.
func copied(t *testing.T) repository {
	t.Helper()
	checkout, err := filepath.Abs(harness.Repo())
	if err != nil {
		t.Fatal(err)
	}
	r := repository{t, t.TempDir()}
	remote := t.TempDir()
	r.git("init", "--quiet", "--bare", remote)
	r.git("init", "--quiet", "--initial-branch=main")
	r.git("remote", "add", "origin", remote)
	for _, setting := range []string{"user.name=a maintainer", "user.email=maintainer@example.org", "commit.gpgsign=false", "tag.gpgsign=false"} {
		name, value, _ := strings.Cut(setting, "=")
		r.git("config", name, value)
	}
	r.git("--work-tree="+checkout, "add", "--all")
	r.git("checkout-index", "--all")
	r.write("CHANGELOG.md", "# Changelog\n\n## Unreleased\n\n- What is new.\n\n## v0.0.1 - 2026-01-02\n\n- What was.\n")
	r.git("add", "--all")
	r.git("commit", "--quiet", "--message=a checkout")
	return r
}

func (r repository) git(args ...string) string {
	r.t.Helper()
	return r.must(exec.Command("git", args...))
}

// must runs a command in the repository, and gives what it printed.
func (r repository) must(cmd *exec.Cmd) string {
	r.t.Helper()
	cmd.Dir = r.folder
	said, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("%v: %v\n%s", cmd.Args, err, said)
	}
	return string(said)
}

func (r repository) write(name, text string) {
	r.t.Helper()
	if err := os.WriteFile(filepath.Join(r.folder, name), []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// state is what a release changes: branches and tags, the files, and the work trees.
func (r repository) state() string {
	r.t.Helper()
	return r.git("for-each-ref") + r.git("status", "--porcelain") + r.git("worktree", "list")
}

// release runs scripts/release.
func (r repository) release(args ...string) string {
	r.t.Helper()
	return r.must(exec.Command("scripts/release", args...))
}

// goMods are the go.mod files of all modules that require one another, by folder.
func (r repository) goMods() map[string]*modfile.File {
	r.t.Helper()
	mods := map[string]*modfile.File{}
	for _, name := range strings.Fields(r.git("ls-files", "go.mod", "*/go.mod", ":!e2e/kubernetes")) {
		mod, err := modfile.Parse(name, harness.Read(r.t, filepath.Join(r.folder, name)), nil)
		if err != nil {
			r.t.Fatal(err)
		}
		mods[filepath.Dir(name)] = mod
	}
	return mods
}

// A release is a commit and its tags. Until it is asked for nothing is changed; what it prints pushes it.
func TestRelease(t *testing.T) {
	const version = "v0.99.0"
	repo := copied(t)
	before := repo.state()
	shown := repo.release(version)
	if after := repo.state(); after != before {
		t.Errorf("showing it changed\n%s\nto\n%s", before, after)
	}
	said := repo.release("--tag", version)

	var want []string // the tags, those of a module's requirements before its own
	mods := repo.goMods()
	for folder, mod := range mods {
		if folder != "e2e" {
			want = append(want, strings.TrimPrefix(folder+"/"+version, "./"))
		}
		inTree := 0
		for _, required := range mod.Require {
			if strings.HasPrefix(required.Mod.Path, home) {
				inTree++
				if required.Mod.Version != version {
					t.Errorf("%s requires %s", folder, required.Mod)
				}
			}
		}
		if len(mod.Replace) < inTree {
			t.Errorf("%s requires %d modules of the repository, and replaces %d", folder, inTree, len(mod.Replace))
		}
	}
	for _, text := range []string{shown, said} {
		var tags []string
		for _, line := range regexp.MustCompile(`(?m)^tag (.*)$`).FindAllStringSubmatch(text, -1) {
			tags = append(tags, line[1])
		}
		if len(tags) == 0 || tags[0] != "extensions/xk6-broker/"+version || tags[len(tags)-1] != version {
			t.Errorf("the core's tag is not the first, or the root's not the last: %v", tags)
		}
		if slices.Sort(tags); !slices.Equal(tags, slices.Sorted(slices.Values(want))) {
			t.Errorf("the tags are\n%v, not\n%v", tags, want)
		}
	}

	// Where the branch cannot be pushed, no tag is.
	commands := regexp.MustCompile(`(?m)^  git .*push .* &&\n  git push .*$`).FindString(said)
	repo.git("push", "--quiet", "origin", strings.TrimSpace(repo.git("commit-tree", "-m", "another's", "HEAD^{tree}"))+":refs/heads/main")
	repo.must(exec.Command("bash", "-c", "! { "+commands+"\n}"))
	if there := repo.git("ls-remote", "origin"); strings.Contains(there, version) {
		t.Errorf("a part of the release was pushed:\n%s", there)
	}
	repo.git("push", "--quiet", "--force", "origin", "HEAD~:main")
	repo.must(exec.Command("bash", "-c", commands))
	head := strings.TrimSpace(repo.git("rev-parse", "HEAD"))
	pushed := repo.git("ls-remote", "origin", "refs/heads/main", "refs/tags/*")
	for _, ref := range append(want, "main") {
		named := "refs/tags/" + ref + "^{}" // what an annotated tag names
		if ref == "main" {
			named = "refs/heads/main"
		}
		if !strings.Contains(pushed, head+"\t"+named+"\n") {
			t.Errorf("%s is not at %s in\n%s", named, head, pushed)
		}
	}
	if log := string(harness.Read(t, filepath.Join(repo.folder, "CHANGELOG.md"))); strings.Contains(log, "Unreleased") ||
		!regexp.MustCompile(`(?m)^## `+version+` - \d{4}-\d\d-\d\d$`).MatchString(log) {
		t.Errorf("the changelog is\n%s", log)
	}
	if notes := repo.git("tag", "--list", "--format=%(contents)", version); !strings.Contains(notes, "What is new.") || strings.Contains(notes, "What was.") {
		t.Errorf("the root's tag says\n%s", notes)
	}
}

// What is new in a release candidate is in its release, too, whose section is the changelog's.
func TestReleaseAfterItsCandidate(t *testing.T) {
	repo := copied(t)
	// Without a blank line below the heading, which the message of a tag has all the same, and with a space after it, which nobody sees.
	repo.write("CHANGELOG.md", "# Changelog\n\n## Unreleased \n- What is new.\n\n## v0.0.1 - 2026-01-02\n\n- What was.\n")
	repo.git("commit", "--quiet", "--all", "--message=news")
	for _, version := range []string{"v0.99.0-rc.1", "v0.99.0"} {
		repo.release("--tag", version)
		if notes := repo.git("tag", "--list", "--format=%(contents)", version); notes != "xk6-broker "+version+"\n\n- What is new.\n\n" {
			t.Errorf("the root's tag says %q", notes)
		}
		if log := string(harness.Read(t, filepath.Join(repo.folder, "CHANGELOG.md"))); strings.Contains(log, "## Unreleased") != strings.Contains(version, "-") {
			t.Errorf("after %s the changelog is\n%s", version, log)
		}
	}
}

// What cannot be released is told, and nothing is changed.
func TestReleaseMistakes(t *testing.T) {
	repo := copied(t)
	for _, c := range []struct {
		args    []string
		prepare func()
		want    string
	}{
		{args: nil, want: "Usage"},
		{args: []string{"--tagg", "v0.1.0"}, want: `no option "--tagg"`},
		{args: []string{"0.1.0"}, want: `"0.1.0" is no version`},
		{args: []string{"v0.1"}, want: "is no version"},
		{args: []string{"v0.1.0+linux"}, want: "is no version"},
		{args: []string{"v0.1.0-rc.01"}, want: "is no version"},
		{args: []string{"v0.0.0"}, want: "is no release"},
		{args: []string{"v0.1.1-0.20260102030405-0123456789ab"}, want: "pseudo-version"},
		{args: []string{"v2.0.0"}, want: "paths end in /v2"},
		{args: []string{"v0.1.0-rc10"}, want: "rc10 comes before rc9"},
		{args: []string{"v0.1.0"}, prepare: func() { repo.git("tag", "extensions/xk6-nats/v0.1.0") }, want: "the tag extensions/xk6-nats/v0.1.0 exists"},
		{
			args: []string{"v0.1.0"}, want: "git tag --delete extensions/xk6-broker/v0.1.0 extensions/xk6-nats/v0.1.0\n",
			prepare: func() { repo.git("tag", "extensions/xk6-broker/v0.1.0") },
		},
		{args: []string{"v0.9.0-rc.2"}, prepare: func() { repo.git("tag", "v0.9.0-rc.10") }, want: "v0.9.0-rc.2 comes before v0.9.0-rc.10"},
		{args: []string{"v0.10.0-rc.1"}, prepare: func() { repo.git("tag", "v0.10.0") }, want: "v0.10.0-rc.1 comes before v0.10.0"},
		{args: []string{"v0.9.1"}, want: "v0.9.1 comes before v0.10.0"},
		{args: []string{"v0.11.0"}, prepare: func() { repo.write("notes.txt", "") }, want: "not committed: ?? notes.txt"},
		{
			args: []string{"v0.11.0"}, want: "CHANGELOG.md says nothing of this release",
			prepare: func() {
				repo.write("CHANGELOG.md", "# Changelog\n\n## Unreleased\n\n## v0.0.1 - 2026-01-02\n\n- What was.\n")
				repo.git("add", "--all")
				repo.git("commit", "--quiet", "--message=an empty section")
			},
		},
		{args: []string{"v0.11.0"}, prepare: func() { repo.git("checkout", "--quiet", "-b", "feature") }, want: "releases are made on main, and feature is checked out"},
		{args: []string{"v0.11.0"}, prepare: func() { repo.git("checkout", "--quiet", "--detach") }, want: "no branch is checked out"},
	} {
		if c.prepare != nil {
			c.prepare()
		}
		before := repo.state()
		cmd := exec.Command("scripts/release", append([]string{"--tag"}, c.args...)...)
		cmd.Dir = repo.folder
		said, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(said), c.want) {
			t.Errorf("%v: %v, and not %q but\n%s", c.args, err, c.want, said)
		}
		if after := repo.state(); after != before {
			t.Errorf("%v changed\n%s\nto\n%s", c.args, before, after)
		}
	}
}

// The sources of a release, as an archive has them, are no checkout, also where they lie in one of something else.
func TestArchivesAreMadeOfACheckout(t *testing.T) {
	repo := repository{t, t.TempDir()}
	repo.git("init", "--quiet")
	if err := os.CopyFS(filepath.Join(repo.folder, "sources/scripts"), os.DirFS(harness.Repo("scripts"))); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sources/scripts/dist")
	cmd.Dir = repo.folder
	if said, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(said), "this is no checkout") {
		t.Errorf("%v, and it says\n%s", err, said)
	}
}
