// Command sbom writes which modules are in a binary, as a CycloneDX document: go run ./sbom VERSION BINARY >FILE. What the document says comes
// from the binary alone, so that of the same binary it is the same.
package main

import (
	"cmp"
	"crypto/sha256"
	"debug/buildinfo"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"

	"github.com/CycloneDX/cyclonedx-go"
)

func main() {
	if err := write(os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func write(out io.Writer, args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("wants a version and a binary, not %q", args)
	}
	version, binary := args[0], args[1]
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(binary) //gosec:disable G304 G703 -- the binary that was asked about
	if err != nil {
		return err
	}
	application := component(cyclonedx.ComponentTypeApplication, info.Main.Path, version)
	application.Hashes = &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: fmt.Sprintf("%x", sha256.Sum256(content))}}
	components := []cyclonedx.Component{component(cyclonedx.ComponentTypeLibrary, "stdlib", strings.TrimPrefix(info.GoVersion, "go"))}
	for _, m := range info.Deps {
		m = built(m, version)
		components = append(components, component(cyclonedx.ComponentTypeLibrary, m.Path, m.Version))
	}
	var refs []string
	for _, c := range components {
		refs = append(refs, c.BOMRef)
	}
	bom := cyclonedx.NewBOM()
	bom.Metadata = &cyclonedx.Metadata{Component: &application}
	bom.Components = &components
	bom.Dependencies = &[]cyclonedx.Dependency{{Ref: application.BOMRef, Dependencies: &refs}}
	return cyclonedx.NewBOMEncoder(out, cyclonedx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom, cyclonedx.SpecVersion1_6)
}

// built is the module that was compiled in: another in its place, or one of the same checkout, which has the version of the whole.
func built(m *debug.Module, version string) *debug.Module {
	if m.Replace != nil && strings.HasPrefix(m.Replace.Path, "./") {
		return &debug.Module{Path: m.Path, Version: version}
	}
	return cmp.Or(m.Replace, m)
}

// component is a module of Go.
func component(what cyclonedx.ComponentType, path, version string) cyclonedx.Component {
	purl := "pkg:golang/" + path + "@" + version
	return cyclonedx.Component{Type: what, Name: path, Version: version, PackageURL: purl, BOMRef: purl}
}
