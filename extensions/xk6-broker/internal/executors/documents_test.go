package executors

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.k6.io/k6/v2/lib"
)

var (
	row  = regexp.MustCompile("(?m)^\\| (`[^|]+`) \\| ([^|]*) \\|")
	code = regexp.MustCompile("`([^`]+)`")
)

// The table of an executor's options has all that there are, and their defaults.
func TestTheOptionsOfExecutorsAreAsTheCodeSays(t *testing.T) {
	text, err := os.ReadFile("../../../../docs/load-models.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []struct {
		name    string
		options any    // of which the names are asked
		needed  string // options, as JSON, without which there is no scenario
		more    map[string]string
	}{
		{Type, Config{Stages: []Stage{{}}}, `"rate":5,"duration":"5s","preAllocatedVUs":5`, map[string]string{
			"startRate": `"stages":[{"target":0.5,"duration":"5s"}],"preAllocatedVUs":5`,
			"seed":      `"rate":5,"duration":"5s","preAllocatedVUs":5,"arrivals":"poisson"`,
		}},
		{ConsumersType, ConsumersConfig{}, `"tags":{}`, nil},
		{ProducersType, ProducersConfig{}, `"maxDuration":"1m"`, nil},
	} {
		_, section, ok := strings.Cut(string(text), "\n## "+e.name+"\n")
		if !ok {
			t.Fatalf("nothing on %s", e.name)
		}
		section, _, _ = strings.Cut(section, "\n## ")
		documented := map[string]string{}
		for _, found := range row.FindAllStringSubmatch(section, -1) {
			for _, name := range code.FindAllStringSubmatch(found[1], -1) {
				documented[name[1]] = found[2]
			}
		}
		if got, want := slices.Sorted(maps.Keys(documented)), optionsOf(t, e.options); !slices.Equal(got, want) {
			t.Errorf("the options of %s are\n%v\nand in its table are\n%v", e.name, want, got)
		}
		for name, value := range documented {
			given, ok := strings.CutPrefix(value, "`")
			if !ok {
				continue
			}
			given = strings.TrimSuffix(given, "`")
			if !json.Valid([]byte(given)) {
				given = fmt.Sprintf("%q", given)
			}
			needed := e.more[name]
			if needed == "" {
				needed = e.needed
			}
			without, with := described(t, e.name, needed), described(t, e.name, needed+fmt.Sprintf(`,%q:%s`, name, given))
			if with != without {
				t.Errorf("%s: %s is not %s where it is not given: %s; and with it %s", e.name, name, given, without, with)
			}
		}
	}
}

// optionsOf gives the names of the options that a config is read from.
func optionsOf(t *testing.T, config any) []string {
	t.Helper()
	text, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]any{"options": nil} // left out where it is empty
	if err := json.Unmarshal(text, &names); err != nil {
		t.Fatal(err)
	}
	delete(names, "executor") // which it is the table of
	return slices.Sorted(maps.Keys(names))
}

// described says all that k6 does with a scenario of these options.
func described(t *testing.T, executor, options string) string {
	t.Helper()
	c, err := lib.GetParsedExecutorConfig("scenario", executor, []byte("{"+options+"}"))
	if err != nil {
		t.Fatal(err)
	}
	if errs := c.Validate(); len(errs) > 0 {
		t.Fatalf("%s: %v", options, errs)
	}
	whole, err := lib.NewExecutionTuple(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(c.GetDescription(whole), c.GetExec(), c.GetStartTime(), c.GetGracefulStop(), c.GetExecutionRequirements(whole))
}
