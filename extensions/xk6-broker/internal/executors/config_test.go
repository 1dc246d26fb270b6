package executors

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.k6.io/k6/v2/lib"
)

func TestMistakesAreNamed(t *testing.T) {
	for options, want := range map[string]string{
		`{}`: `option "rate" is missing`,
		`{"rate":0,"duration":"5s","preAllocatedVUs":1}`:                                              `option "rate"`,
		`{"rate":-5,"duration":"5s","preAllocatedVUs":1}`:                                             `option "rate": -5 per 1s`,
		`{"rate":5,"preAllocatedVUs":1}`:                                                              `option "duration" is missing`,
		`{"rate":5,"duration":"100ms","preAllocatedVUs":1}`:                                           `lasts 100ms, which is less than 1s`,
		`{"rate":5,"duration":"5s"}`:                                                                  `option "preAllocatedVUs" is missing`,
		`{"rate":5,"duration":"5s","preAllocatedVUs":-1}`:                                             `option "preAllocatedVUs": -1`,
		`{"rate":5,"duration":"5s","preAllocatedVUs":0}`:                                              `no VU`,
		`{"rate":5,"duration":"5s","preAllocatedVUs":5,"maxVUs":4}`:                                   `option "maxVUs": 4 is less than preAllocatedVUs, 5`,
		`{"rate":5,"duration":"5s","preAllocatedVUs":5,"timeUnit":"0s"}`:                              `option "timeUnit"`,
		`{"rate":5,"duration":"5s","preAllocatedVUs":5,"arrivals":"bursty"}`:                          `option "arrivals": "bursty" is not one of constant, poisson`,
		`{"rate":5,"duration":"5s","preAllocatedVUs":5,"seed":3}`:                                     `option "seed" is given, but is only for arrivals: 'poisson'`,
		`{"rate":5,"duration":"5s","preAllocatedVUs":5,"arrivals":"poisson","seed":-3}`:               `option "seed": -3`,
		`{"rate":5,"duration":"5s","preAllocatedVUs":5,"maxQueue":0}`:                                 `option "maxQueue": 0`,
		`{"rate":5,"duration":"5s","preAllocatedVUs":5,"startRate":0}`:                                `option "startRate"`,
		`{"rate":5,"stages":[{"target":5,"duration":"5s"}],"preAllocatedVUs":5}`:                      `option "stages" excludes "rate"`,
		`{"duration":"5s","stages":[{"target":5,"duration":"5s"}],"preAllocatedVUs":5}`:               `option "stages" excludes "rate" and "duration"`,
		`{"stages":[{"target":5}],"preAllocatedVUs":5}`:                                               `stage 1 needs a target and a duration`,
		`{"stages":[{"target":5,"duration":"1s"},{"target":-5,"duration":"1s"}],"preAllocatedVUs":5}`: `option "stages[1].target": -5`,
		`{"stages":[{"target":0,"duration":"5s"}],"preAllocatedVUs":5}`:                               `option "stages"`,
		`{"rate":5,"duration":"5s","preAllocatedVUs":5,"gracefulStop":"-1s"}`:                         `gracefulStop`,
		`{"rate":5,"duration":"5s","preAllocatedVUs":5,"startTime":"-1s"}`:                            `startTime`,
		`{"rate":5,"duration":"5s","preAllocatedVUs":5,"arivals":"poisson"}`:                          `executor open-arrival-rate: json: unknown field "arivals"`,
		`{"rate":"many","duration":"5s","preAllocatedVUs":5}`:                                         `scenario orders`,
	} {
		var all []string
		c, err := lib.GetParsedExecutorConfig("orders", Type, []byte(options))
		if err != nil {
			all = append(all, err.Error())
		} else {
			for _, err := range c.Validate() {
				all = append(all, err.Error())
			}
		}
		if got := strings.Join(all, "; "); !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", options, got, want)
		}
	}
}

const everything = `{"executor":"open-arrival-rate","startTime":"3s","gracefulStop":"7s","env":{"A":"b"},"exec":"produce","tags":{"team":"a"},
	"startRate":0.5,"timeUnit":"2s","stages":[{"duration":"10s","target":100}],"arrivals":"poisson","seed":42,
	"preAllocatedVUs":5,"maxVUs":20,"maxQueue":500}`

// An archive holds the options as JSON.
func TestOptionsSurviveAnArchive(t *testing.T) {
	for _, options := range []string{everything, `{"executor":"open-arrival-rate","rate":5,"duration":"5s","preAllocatedVUs":5}`} {
		c := parse(t, options)
		text, err := json.Marshal(map[string]any{"orders": c})
		if err != nil {
			t.Fatal(err)
		}
		var again lib.ScenarioConfigs
		if err := json.Unmarshal(text, &again); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(lib.ExecutorConfig(c), again["orders"]) {
			t.Errorf("%s becomes %s", options, text)
		}
	}
}

func TestDescriptionAndRequirements(t *testing.T) {
	half := tuple(t, "0:1/2", "0,1/2,1")
	for _, c := range []struct {
		options string
		et      *lib.ExecutionTuple
		want    string
		steps   []lib.ExecutionStep
	}{
		{
			everything, tuple(t, "", ""),
			"up to 50.00 iterations/s for 10s (VUs: 5-20)",
			[]lib.ExecutionStep{{PlannedVUs: 5, MaxUnplannedVUs: 15}, {TimeOffset: 17 * time.Second}},
		},
		{
			`{"rate":300,"timeUnit":"1m","duration":"1m","preAllocatedVUs":4}`, half,
			"up to 2.50 iterations/s for 1m0s (VUs: 2-2)",
			[]lib.ExecutionStep{{PlannedVUs: 2}, {TimeOffset: 90 * time.Second}},
		},
		{
			`{"rate":1,"duration":"1s","preAllocatedVUs":4}`, tuple(t, "1/2:1", "0,1/2,1"), // its only arrival is the other segment's
			"up to 0.50 iterations/s for 1s (VUs: 2-2)",
			[]lib.ExecutionStep{{}, {TimeOffset: 31 * time.Second}},
		},
	} {
		config := parse(t, c.options)
		if got := config.GetDescription(c.et); got != c.want {
			t.Errorf("described as\n%s\nwant\n%s", got, c.want)
		}
		if got := config.GetExecutionRequirements(c.et); !reflect.DeepEqual(got, c.steps) {
			t.Errorf("%s needs %+v, want %+v", c.options, got, c.steps)
		}
	}
}
