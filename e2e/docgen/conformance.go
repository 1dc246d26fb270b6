package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest"
)

const (
	recorded = ".cache/conformance.jsonl" // what the last `make test` found; a line for each driver and server
	kept     = "docs/conformance.json"    // for the documents
)

// record keeps the outcomes of the last tests, if any: for each driver the run that proved the
// most.
func record(repository string) error {
	text, err := os.ReadFile(filepath.Join(repository, recorded)) //gosec:disable G304 G703 -- in this repository
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("conformance: %w", err)
	}
	best, err := outcomes(repository)
	if err != nil {
		return err
	}
	seen, names := map[string]bool{}, map[string]bool{}
	for _, d := range driver.Drivers() { // the kit's own tests are in the file too
		names[d.Name] = true
	}
	for line := range bytes.Lines(text) {
		var o drivertest.Outcome
		if err := json.Unmarshal(line, &o); err != nil {
			return fmt.Errorf("conformance: %w", err)
		}
		if !names[o.Driver] {
			continue
		}
		if before, ok := best[o.Driver]; !ok || !seen[o.Driver] || o.Passed > before.Passed {
			best[o.Driver] = o
		}
		seen[o.Driver] = true
	}
	byName := func(a, b drivertest.Outcome) int { return cmp.Compare(a.Driver, b.Driver) }
	all := slices.SortedFunc(maps.Values(best), byName)
	text, err = json.MarshalIndent(all, "", "  ")
	if err != nil {
		return fmt.Errorf("conformance: %w", err)
	}
	path := filepath.Join(repository, kept)
	return os.WriteFile(path, append(text, '\n'), 0o644) //gosec:disable G306 G703 -- a public document
}

// outcomes reads the kept outcomes, by driver.
func outcomes(repository string) (map[string]drivertest.Outcome, error) {
	text, err := os.ReadFile(filepath.Join(repository, kept)) //gosec:disable G304 G703 -- in this repository
	if errors.Is(err, os.ErrNotExist) {
		return map[string]drivertest.Outcome{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("conformance: %w", err)
	}
	var all []drivertest.Outcome
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("conformance: %w", err)
	}
	byDriver := map[string]drivertest.Outcome{}
	for _, o := range all {
		byDriver[o.Driver] = o
	}
	return byDriver, nil
}

func conformance(proven map[string]drivertest.Outcome, name string) string {
	o, ok := proven[name]
	if !ok {
		return "not proven on a real server"
	}
	text := fmt.Sprintf("%d passed", o.Passed)
	if o.Failed > 0 {
		text += fmt.Sprintf(", **%d failed**", o.Failed)
	}
	if n := len(o.NotProven); n > 0 {
		text += fmt.Sprintf(", %d not proven", n)
	}
	if o.On != "" {
		text += ", on " + o.On
	}
	return text
}

// provenOn names the server on which the conformance kit passed.
func provenOn(proven map[string]drivertest.Outcome, name string) string {
	o, ok := proven[name]
	switch {
	case !ok:
		return "own double"
	case o.On != "" && !strings.HasPrefix(o.On, "a server"): // such a server is the product
		server, _, _ := strings.Cut(o.On, ",")
		return server
	}
	return "real server"
}
