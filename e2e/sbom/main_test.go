package main

import (
	"bytes"
	"os"
	"runtime/debug"
	"slices"
	"testing"

	"github.com/CycloneDX/cyclonedx-go"
)

// The document has what this binary was built with, and is the same each time.
func TestABinarysModules(t *testing.T) {
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var first, second bytes.Buffer
	for _, out := range []*bytes.Buffer{&first, &second} {
		if err := write(out, []string{"v1.2.3", binary}); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("two documents of one binary differ")
	}
	var bom cyclonedx.BOM
	if err := cyclonedx.NewBOMDecoder(&first, cyclonedx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	if it := bom.Metadata.Component; it.Version != "v1.2.3" || len((*it.Hashes)[0].Value) != 64 {
		t.Errorf("%+v", it)
	}
	info, ok := debug.ReadBuildInfo()
	if !ok || len(info.Deps) == 0 || len(*bom.Components) != len(info.Deps)+1 {
		t.Fatalf("%d components, and %d modules beside Go's library: %v", len(*bom.Components), len(info.Deps), info)
	}
	for _, m := range info.Deps {
		if !slices.ContainsFunc(*bom.Components, func(c cyclonedx.Component) bool {
			return c.Name == m.Path && c.PackageURL == "pkg:golang/"+m.Path+"@"+m.Version
		}) {
			t.Errorf("%s %s is missing", m.Path, m.Version)
		}
	}
}

func TestWhatStandsInForAModule(t *testing.T) {
	other := &debug.Module{Path: "example.com/fork", Version: "v1.0.1"}
	for _, c := range []struct{ m, want debug.Module }{
		{debug.Module{Path: "example.com/a", Version: "v1.0.0"}, debug.Module{Path: "example.com/a", Version: "v1.0.0"}},
		{debug.Module{Path: "example.com/a", Version: "v1.0.0", Replace: other}, *other},
		{debug.Module{Path: "example.com/a", Version: "v0.0.0", Replace: &debug.Module{Path: "./extensions/a"}}, debug.Module{Path: "example.com/a", Version: "v1.2.3"}},
	} {
		if got := built(&c.m, "v1.2.3"); *got != c.want {
			t.Errorf("%+v, want %+v", *got, c.want)
		}
	}
}

func TestWhatIsNoBinary(t *testing.T) {
	if err := write(&bytes.Buffer{}, []string{"v1.2.3", "main.go"}); err == nil {
		t.Error("a text has modules")
	}
}
