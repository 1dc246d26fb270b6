// Command sbom writes the modules of a binary as a CycloneDX document: go run ./sbom VERSION BINARY
// >FILE. The document depends on the binary only.
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
	content, err := os.ReadFile(binary) //gosec:disable G304 G703 -- the given binary
	if err != nil {
		return err
	}
	application := component(cyclonedx.ComponentTypeApplication, info.Main.Path, version)
	sum := fmt.Sprintf("%x", sha256.Sum256(content))
	application.Hashes = &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: sum}}
	stdlib := component(cyclonedx.ComponentTypeLibrary, "stdlib", strings.TrimPrefix(info.GoVersion, "go"))
	components := []cyclonedx.Component{stdlib}
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
	encoder := cyclonedx.NewBOMEncoder(out, cyclonedx.BOMFileFormatJSON).SetPretty(true)
	return encoder.EncodeVersion(bom, cyclonedx.SpecVersion1_6)
}

// built returns the compiled module: a replacement, or one of the same checkout, with the binary's
// version.
func built(m *debug.Module, version string) *debug.Module {
	if m.Replace != nil && strings.HasPrefix(m.Replace.Path, "./") {
		return &debug.Module{Path: m.Path, Version: version}
	}
	return cmp.Or(m.Replace, m)
}

// component returns a module of Go.
func component(kind cyclonedx.ComponentType, path, version string) cyclonedx.Component {
	purl := "pkg:golang/" + path + "@" + version
	return cyclonedx.Component{Type: kind, Name: path, Version: version, PackageURL: purl, BOMRef: purl}
}
