package js

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// The types for scripts have just the options that the code knows, of each call that takes some.
func TestTheTypesHaveTheOptionsThatTheCodeKnows(t *testing.T) {
	text, err := os.ReadFile("../../../../index.d.ts")
	if err != nil {
		t.Fatal(err)
	}
	const all = `const conn = broker.connect('memory://h', {}), waits = broker.connect('waits://h'), p = conn.producer('t'), c = conn.consumer('t', { group: 'g' });`
	for what, calls := range map[string][]string{
		"ConnectOptions":  {`broker.connect('memory://h', { zzz: 1 })`},
		"ProducerOptions": {`conn.producer('t', { zzz: 1 })`, `waits.producer('t', { zzz: 1 })`},
		"ConsumerOptions": {`conn.consumer('t', { zzz: 1 })`},
		"TopicOptions":    {`conn.createTopic('t', { zzz: 1 })`},
		"ProduceOptions":  {`await p.produce({ zzz: 1 })`},
		"Payload":         {`await p.produce({ count: 1, payload: { zzz: 1 } })`},
		"ConsumeOptions":  {`await c.consume({ zzz: 1 })`},
		"bodies(":         {`broker.bodies('f', { zzz: 1 })`},
		"receive(":        {`await c.receive({ zzz: 1 })`},
		"nack(":           {`await c.nack([], { zzz: 1 })`},
		"request(":        {`await p.request('x', { zzz: 1 })`},
		"ReportOptions":   {`broker.checkReport({ zzz: 1 })`},
	} {
		known := map[string]bool{}
		for _, call := range calls {
			_, err := newScript(t).begin().run(all + call)
			if err == nil || !strings.Contains(err.Error(), "known are ") {
				t.Fatalf("%s: %v", call, err)
			}
			_, list, _ := strings.Cut(err.Error(), "known are ")
			for _, name := range strings.FieldsFunc(list, func(r rune) bool { return strings.ContainsRune(", \n", r) }) {
				known[name] = true
			}
		}
		for _, d := range driver.Drivers() { // the drivers' own
			for _, o := range d.Options {
				delete(known, o.Name)
			}
		}
		declared := declaredIn(t, string(text), what)
		for name := range known {
			if !slices.Contains(declared, name) {
				t.Errorf("%s: index.d.ts lacks %q", what, name)
			}
		}
		for _, name := range declared {
			if !known[name] {
				t.Errorf("%s: index.d.ts has %q, which the code does not know: %v", what, name, known)
			}
		}
	}
}

var member = regexp.MustCompile(`(?m)^ *(\w+)\?:|[{;] (\w+)\?:`)

// declaredIn are the optional members of an interface, of an object type, or of the options in a method's parameters.
func declaredIn(t *testing.T, text, what string) (names []string) {
	t.Helper()
	begin := "export interface " + what
	if strings.ContainsAny(what, "({") {
		begin = what
	}
	_, rest, ok := strings.Cut(text, begin)
	if strings.HasSuffix(what, "(") { // in its last parameter
		_, rest, _ = strings.Cut(rest, "options?: {")
	}
	if !ok {
		t.Fatalf("index.d.ts has no %s", what)
	}
	end := "\n  }\n"
	switch {
	case strings.HasSuffix(what, "("):
		end = "\n"
	case strings.HasSuffix(what, "{"):
		end = "};"
	}
	body, _, _ := strings.Cut(rest, end)
	depth := 0
	flat := strings.Map(func(r rune) rune { // what is nested is another type's
		if r == '{' {
			depth++
		}
		if r == '}' {
			depth--
		}
		if depth > 1 {
			return ' '
		}
		return r
	}, body)
	if !strings.HasSuffix(what, "(") && !strings.HasSuffix(what, "{") {
		body = flat
	}
	for _, found := range member.FindAllStringSubmatch(body, -1) {
		names = append(names, found[1]+found[2])
	}
	return names
}
