package studies

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/grafana/sobek"
)

// Load evaluates a study's file, an ES module by k6's own JavaScript engine, and understands what it exports. The file has __ENV and SCALE, and may
// import other files by relative paths; there is nothing else, for a study is data.
func Load(path string, env map[string]string, scale float64) (*Study, error) {
	modules := modules{known: map[string]sobek.ModuleRecord{}, paths: map[any]string{}}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	record, err := modules.load(absolute)
	if err != nil {
		return nil, err
	}
	if err := record.Link(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	vm := sobek.New()
	environment := environment{vm, env, map[string]bool{}}
	if err := errors.Join(vm.Set("__ENV", vm.NewDynamicObject(environment)), vm.Set("SCALE", scale)); err != nil {
		return nil, err
	}
	if err := settled(vm.CyclicModuleRecordEvaluate(record, modules.resolve)); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	exported := vm.NamespaceObjectFor(record).Get("study")
	if exported == nil || sobek.IsUndefined(exported) {
		return nil, fmt.Errorf("%s: it exports no study: a study's file has `export const study = { title: ..., tests: [...] }`", path)
	}
	study, err := understand(vm, exported)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	study.Folder, study.Environment = filepath.Dir(absolute), environment.values()
	return study, nil
}

func settled(p *sobek.Promise) error {
	switch p.State() {
	case sobek.PromiseStateFulfilled:
		return nil
	case sobek.PromiseStateRejected:
		return fmt.Errorf("%s", p.Result())
	}
	return errors.New("it waits for something, and a study has nothing to wait for")
}

// modules finds the files that a study imports.
type modules struct {
	known map[string]sobek.ModuleRecord
	paths map[any]string
}

func (m *modules) resolve(from any, specifier string) (sobek.ModuleRecord, error) {
	if !strings.HasPrefix(specifier, "./") && !strings.HasPrefix(specifier, "../") {
		return nil, fmt.Errorf("import of %q: a study imports files by relative paths only, such as ./common.js", specifier)
	}
	return m.load(filepath.Join(filepath.Dir(m.paths[from]), filepath.FromSlash(specifier)))
}

func (m *modules) load(path string) (sobek.CyclicModuleRecord, error) {
	if known, ok := m.known[path].(sobek.CyclicModuleRecord); ok {
		return known, nil
	}
	text, err := os.ReadFile(path) //gosec:disable G304 -- a file of the user's
	if err != nil {
		return nil, fmt.Errorf("no study: %w", err)
	}
	record, err := sobek.ParseModule(path, string(text), m.resolve)
	if err != nil {
		return nil, fmt.Errorf("no study: %w", err)
	}
	m.known[path], m.paths[record] = record, path
	return record, nil
}
