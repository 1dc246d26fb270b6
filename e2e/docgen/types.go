package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

const written = "// Written by `make generate`.\n"

// declarations returns the generated files of types for scripts.
func declarations(repository string) (map[string]string, error) {
	result, err := resultTypes(filepath.Join(repository, "extensions/xk6-broker/internal/report/summary.schema.json"))
	if err != nil {
		return nil, err
	}
	return map[string]string{
		"types/drivers.d.ts": optionTypes(driver.Drivers()),
		"types/result.d.ts":  result,
	}, nil
}

// module returns a file that adds interfaces to the module of the scripts.
func module(interfaces string) string {
	return written + "declare module 'k6/x/broker' {\n" + strings.TrimSuffix(interfaces, "\n") + "}\n"
}

// comment returns a documentation comment; "" without text.
func comment(indent string, lines ...string) string {
	lines = slices.DeleteFunc(lines, func(l string) bool { return l == "" })
	switch len(lines) {
	case 0:
		return ""
	case 1:
		return indent + "/** " + lines[0] + " */\n"
	}
	return indent + "/**\n" + indent + " * " + strings.Join(lines, "\n"+indent+" * ") + "\n" + indent + " */\n"
}

// optionTypes returns an interface for each scope, with the options of all drivers, because only
// the URL names the driver. An option has one type in all scopes, so that an object may have
// several scopes.
func optionTypes(drivers []*driver.Driver) string {
	types, names := map[string][]string{}, map[string]bool{}
	for _, d := range drivers {
		for _, o := range d.Options {
			names[o.Name] = true
			for _, t := range typesOf(o) {
				if !slices.Contains(types[o.Name], t) {
					types[o.Name] = append(types[o.Name], t)
				}
			}
		}
	}
	var b strings.Builder
	for scope, title := range []string{"Connect", "Producer", "Consumer", "Topic", "Message"} {
		fmt.Fprintf(&b, "  export interface Driver%sOptions {\n", title)
		for _, name := range slices.Sorted(maps.Keys(names)) {
			if texts := optionDoc(drivers, 1<<scope, name); len(texts) > 0 {
				fmt.Fprintf(&b, "%s    %s?: %s;\n", comment("    ", texts...), name, strings.Join(types[name], " | "))
			}
		}
		b.WriteString("  }\n\n")
	}
	return module(b.String())
}

// optionDoc returns the texts of the drivers that have an option in a scope, equal texts once.
func optionDoc(drivers []*driver.Driver, scope driver.Scope, name string) []string {
	var texts []string
	by := map[string][]string{}
	for _, d := range drivers {
		o, ok := d.Option(name)
		if !ok || o.Scope&scope == 0 {
			continue
		}
		text := o.Doc
		if o.Type == driver.Enum {
			text += " One of " + strings.Join(o.Allowed, ", ") + "."
		}
		if o.Type == driver.File {
			text += " A path relative to the script, or the file's text."
		}
		if given := defaults(o); given != "" {
			text += " Default: " + given + "."
		}
		if o.Secret {
			text += " Secret: never shown."
		}
		if by[text] == nil {
			texts = append(texts, text)
		}
		by[text] = append(by[text], d.Name)
	}
	for i, text := range texts {
		owners := strings.Join(by[text], ", ")
		if len(by[text]) == len(drivers) {
			owners = "all drivers"
		}
		texts[i] = owners + ": " + strings.ReplaceAll(text, "*/", "* /")
	}
	return texts
}

func typesOf(o driver.Option) []string {
	switch o.Type {
	case driver.Int:
		return []string{"number"}
	case driver.Bool:
		return []string{"boolean"}
	case driver.Duration:
		return []string{"Duration"}
	case driver.Size:
		return []string{"Size"}
	case driver.List:
		return []string{"string", "string[]"}
	case driver.Map:
		return []string{"string", "string[]", "{ [name: string]: string | number | boolean }"}
	case driver.Enum:
		quoted := make([]string, len(o.Allowed))
		for i, word := range o.Allowed {
			quoted[i] = "'" + word + "'"
		}
		return quoted
	case driver.String, driver.File:
	}
	return []string{"string"}
}

// schema is the part of JSON Schema that the schema of results uses.
type schema struct {
	Ref         string            `json:"$ref"`
	Defs        map[string]schema `json:"$defs"`
	Type        any               `json:"type"` // a name, or several
	Description string            `json:"description"`
	Required    []string          `json:"required"`
	Properties  map[string]schema `json:"properties"`
	Additional  *schema           `json:"additionalProperties"`
	Items       *schema           `json:"items"`
	Enum        []string          `json:"enum"`
	Const       any               `json:"const"`
}

// resultTypes returns an interface for the result, and one for each named object of its schema.
func resultTypes(path string) (string, error) {
	text, err := os.ReadFile(path) //gosec:disable G304 G703 -- in this repository
	if err != nil {
		return "", fmt.Errorf("schema: %w", err)
	}
	var root schema
	if err := json.Unmarshal(text, &root); err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	var b strings.Builder
	declare := func(name string, s schema) {
		fmt.Fprintf(&b, "%s  export interface %s %s\n\n", comment("  ", s.Description), name, root.object(s, "  "))
	}
	root.Description = "What a run found out, as summary.json holds it: docs/results.md says more of it."
	declare("Result", root)
	for _, name := range slices.Sorted(maps.Keys(root.Defs)) {
		if d := root.Defs[name]; d.Properties != nil {
			declare(interfaceName(name), d)
		}
	}
	return module(b.String()), nil
}

func interfaceName(name string) string { return "Result" + strings.ToUpper(name[:1]) + name[1:] }

// object returns the body of an interface: required properties first, in the schema's order.
func (s schema) object(o schema, indent string) string {
	names := slices.SortedFunc(maps.Keys(o.Properties), func(x, y string) int {
		place := func(name string) int {
			if i := slices.Index(o.Required, name); i >= 0 {
				return i
			}
			return len(o.Required)
		}
		return cmp.Or(cmp.Compare(place(x), place(y)), cmp.Compare(x, y))
	})
	var b strings.Builder
	b.WriteString("{\n")
	for _, name := range names {
		p, optional := o.Properties[name], "?"
		if slices.Contains(o.Required, name) {
			optional = ""
		}
		doc, kind := comment(indent+"  ", p.Description), s.typeOf(p, indent+"  ")
		fmt.Fprintf(&b, "%s%s  %s%s: %s;\n", doc, indent, name, optional, kind)
	}
	return b.String() + indent + "}"
}

// typeOf returns the type of a value; `unknown` for other schemas.
func (s schema) typeOf(v schema, indent string) string {
	switch {
	case v.Ref != "":
		name := strings.TrimPrefix(v.Ref, "#/$defs/")
		if d := s.Defs[name]; d.Properties == nil {
			return s.typeOf(d, indent)
		}
		return interfaceName(name)
	case v.Const != nil:
		return fmt.Sprint(v.Const)
	case v.Enum != nil:
		return "'" + strings.Join(v.Enum, "' | '") + "'"
	case v.Properties != nil:
		return s.object(v, indent)
	case v.Items != nil:
		return "Array<" + s.typeOf(*v.Items, indent) + ">"
	case v.Additional != nil:
		return "{ [name: string]: " + s.typeOf(*v.Additional, indent) + " }"
	}
	var names []string
	all, ok := v.Type.([]any)
	if !ok {
		all = []any{v.Type}
	}
	for _, t := range all {
		switch t {
		case "integer", "number":
			names = append(names, "number")
		case "object":
			names = append(names, "{ [name: string]: unknown }")
		case "string", "boolean", "null":
			names = append(names, fmt.Sprint(t))
		default:
			names = append(names, "unknown")
		}
	}
	return strings.Join(names, " | ")
}
