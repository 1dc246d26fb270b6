package k6

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

func declarations(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../../../types/index.d.ts")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var (
	exported   = regexp.MustCompile(`(?m)^  export function (\w+)\(`)
	ofDefault  = regexp.MustCompile(`(?m)^  const broker: \{(.*)\};$`)
	typeOf     = regexp.MustCompile(`(\w+): typeof (\w+)`)
	interfaced = regexp.MustCompile(`(?m)^    (?:readonly )?(\w+)\??[:(]`)
)

// The types for scripts have just the functions that the module exports, and its objects just the
// members.
func TestTheTypesHaveWhatTheModuleHas(t *testing.T) {
	text := declarations(t)
	s := newScript(t)
	var functions []string
	for _, found := range exported.FindAllStringSubmatch(text, -1) {
		functions = append(functions, found[1])
	}
	same(t, "the functions", functions, slices.Collect(maps.Keys(s.exports.Named)))

	same(t, "the default export", functions, s.rt.ToValue(s.exports.Default).ToObject(s.rt).Keys())
	var ofBroker []string
	for _, found := range typeOf.FindAllStringSubmatch(ofDefault.FindString(text), -1) {
		if found[1] != found[2] {
			t.Errorf("broker.%s is declared as %s", found[1], found[2])
		}
		ofBroker = append(ofBroker, found[1])
	}
	same(t, "the type of the default export", ofBroker, functions)

	objects, _ := s.begin().mustRun(`
		const conn = broker.connect('memory:'), p = conn.producer('t'), c = conn.consumer('t', { group: 'g', start: 'earliest' });
		await conn.createTopic('t');
		const receipt = await p.send('a'), [message] = await c.receive(), produced = await p.produce({ count: 1 }), consumed = await c.consume({ count: 1 });
		const proof = await p.ready(), driver = broker.drivers()[0];
		return Object.entries({
			Connection: conn, Features: conn.features, Producer: p, Consumer: c, Proof: proof, Receipt: receipt, Message: message, Produced: produced,
			Consumed: consumed, DriverInfo: driver,
		}).map(([name, object]) => [name, ...Object.keys(object)]);`).([]any)
	if len(objects) == 0 {
		t.Fatal("no objects")
	}
	for _, object := range objects {
		var names, declared []string
		for _, name := range object.([]any) {
			names = append(names, name.(string))
		}
		_, body, found := strings.Cut(text, "export interface "+names[0]+" {\n")
		if !found {
			t.Errorf("index.d.ts has no %s", names[0])
			continue
		}
		body, _, _ = strings.Cut(body, "\n  }\n")
		for _, found := range interfaced.FindAllStringSubmatch(body, -1) {
			declared = append(declared, found[1])
		}
		same(t, names[0], declared, names[1:])
	}
}

// same holds the names that are declared against those that are there.
func same(t *testing.T, what string, declared, there []string) {
	t.Helper()
	slices.Sort(declared)
	slices.Sort(there)
	if declared, there = slices.Compact(declared), slices.Compact(there); !slices.Equal(declared, there) {
		t.Errorf("%s: declared are\n%v, and there are\n%v", what, declared, there)
	}
}

// The types for scripts have just the options that the code knows, of each call that takes some.
func TestTheTypesHaveTheOptionsThatTheCodeKnows(t *testing.T) {
	text := declarations(t)
	const all = `const conn = broker.connect('memory://h', {}), waits = broker.connect('waits://h'), p = conn.producer('t'), c = conn.consumer('t', { group: 'g' });`
	for what, calls := range map[string][]string{
		"ConnectOptions":  {`broker.connect('memory://h', { zzz: 1 })`},
		"ProducerOptions": {`conn.producer('t', { zzz: 1 })`, `waits.producer('t', { zzz: 1 })`, `broker.connect('subject://h').producer('t', { zzz: 1 })`},
		"ConsumerOptions": {`conn.consumer('t', { zzz: 1 })`},
		"TopicOptions":    {`conn.createTopic('t', { zzz: 1 })`},
		"ProduceOptions":  {`await p.produce({ zzz: 1 })`},
		"Payload":         {`await p.produce({ count: 1, payload: { zzz: 1 } })`},
		"ConsumeOptions":  {`await c.consume({ zzz: 1 })`},
		"receive(":        {`await c.receive({ zzz: 1 })`},
		"nack(":           {`await c.nack([], { zzz: 1 })`},
		"request(":        {`await p.request('x', { zzz: 1 })`},
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
		declared := declaredIn(t, text, what)
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

// declaredIn are the optional members of an interface, of an object type, or of the options in a
// method's parameters.
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
