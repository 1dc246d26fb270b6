package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestDocumentsAreAsTheCodeSays(t *testing.T) {
	proven, err := outcomes("../../..")
	if err != nil {
		t.Fatal(err)
	}
	for path, tables := range documents(proven) {
		text, err := os.ReadFile(filepath.Join("../../..", path))
		if err != nil {
			t.Fatal(err)
		}
		want, err := render(string(text), tables)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if string(text) != want {
			t.Errorf("%s is behind the code: run `make generate`", path)
		}
	}
}
