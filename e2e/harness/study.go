package harness

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// StudyFile writes a study's file, in which SCENARIOS is the path to the scenarios of the repository.
func StudyFile(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	to, err := filepath.Rel(dir, Repo("scenarios"))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "study.js")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(text, "SCENARIOS", filepath.ToSlash(to))), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
