package harness

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// StudyFile writes a study's file, with SCENARIOS replaced by the path of the scenarios.
func StudyFile(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	to, err := filepath.Rel(dir, Repo("scenarios"))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "study.js")
	text = strings.ReplaceAll(text, "SCENARIOS", filepath.ToSlash(to))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
