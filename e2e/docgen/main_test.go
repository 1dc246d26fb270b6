package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestFilesAreAsTheCodeSays(t *testing.T) {
	files, err := current("../..")
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range files {
		text, err := os.ReadFile(filepath.Join("../..", path))
		if err != nil {
			t.Fatal(err)
		}
		if string(text) != want {
			t.Errorf("%s is behind the code: run `make generate`", path)
		}
	}
}
