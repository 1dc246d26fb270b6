package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Of a binary there is the licence of Go, and of each module that is in it, whole; those that are the same are there once.
func TestWhatABinaryIsPassedOnUnder(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "sbom")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", binary, "../sbom").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var out bytes.Buffer
	if err := write(&out, []string{"..", binary}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\nGo 1.", ": LICENSE\n", "\ngithub.com/CycloneDX/cyclonedx-go v", "Copyright 2009 The Go Authors.", "TERMS AND CONDITIONS FOR USE, REPRODUCTION, AND DISTRIBUTION"} {
		if strings.Count(out.String(), want) < 1 {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if n := strings.Count(out.String(), "TERMS AND CONDITIONS FOR USE, REPRODUCTION, AND DISTRIBUTION"); n != 1 {
		t.Errorf("a text is there %d times", n)
	}
	if strings.Contains(out.String(), "github.com/xk6-broker") {
		t.Error("what is in the same checkout is no other's")
	}
}

// What the checkout itself has from elsewhere, as the script that draws the pages' charts, has its notice; and so has what a module took over.
func TestWhatWasTakenOver(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "k6")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-C", "../..", "-buildvcs=false", "-o", binary, "./cmd/k6").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var out bytes.Buffer
	if err := write(&out, []string{"../..", binary}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Leon Sorokin", "gopkg.in/mgo.v2/bson", "GNU AFFERO GENERAL PUBLIC LICENSE"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q", want)
		}
	}
}

func TestWhatIsNoModuleOfTheBinary(t *testing.T) {
	itself, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{nil, {".."}, {"..", "main.go"}, {t.TempDir(), itself}} {
		if err := write(&bytes.Buffer{}, args); err == nil {
			t.Errorf("%q is taken", args)
		}
	}
}
