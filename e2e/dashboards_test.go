package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/e2e/harness"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/proxy"
)

// dashboard is as much of a Grafana dashboard as its queries need.
type dashboard struct {
	Title       string
	Tags        []string
	Links       []link
	Annotations struct {
		List []struct {
			Name       string
			Datasource datasource
			Target     struct{ Query, TextColumn string }
		}
	}
	Templating struct {
		List []variable
	}
	Panels []panel
}

type link struct {
	Type                  string
	Tags                  []string
	KeepTime, IncludeVars bool
}

type panel struct {
	ID          int
	Title, Type string
	Datasource  datasource
	Targets     []struct {
		Query, ResultFormat string
		Datasource          datasource
	}
	FieldConfig struct{ Defaults struct{ Unit string } }
}

type datasource struct{ Type, UID string }

type variable struct {
	Name, Type, Query, AllValue string
	Datasource                  *datasource
	Multi, IncludeAll           bool
}

func readDashboards(t *testing.T) map[string]dashboard {
	t.Helper()
	paths, err := filepath.Glob("../grafana/dashboards/*.json")
	if err != nil || len(paths) < 2 {
		t.Fatal("no dashboards", err)
	}
	all := map[string]dashboard{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var d dashboard
		if err := json.Unmarshal(text, &d); err != nil {
			t.Fatal(path, err)
		}
		all[strings.TrimSuffix(filepath.Base(path), ".json")] = d
	}
	return all
}

// Everything asks the data source that the variable "source" says, which is the one that is provisioned unless somebody chooses another.
func TestDashboardsAskTheDataSourceThatIsChosen(t *testing.T) {
	text, err := os.ReadFile("../grafana/provisioning/datasources/influxdb.yml")
	if err != nil {
		t.Fatal(err)
	}
	for name, d := range readDashboards(t) {
		kind := ""
		asked := map[string]datasource{}
		for _, v := range d.Templating.List {
			if v.Type == "datasource" && v.Name == "source" {
				kind = v.Query
			}
			if v.Datasource != nil {
				asked["variable "+v.Name] = *v.Datasource
			}
		}
		if kind == "" || !strings.Contains(string(text), "type: "+kind+"\n") || !strings.Contains(string(text), "isDefault: true\n") {
			t.Errorf("%s: no default data source of the type %q is provisioned", name, kind)
		}
		for _, a := range d.Annotations.List {
			asked["annotation "+a.Name] = a.Datasource
		}
		for _, p := range d.Panels {
			if p.Type == "row" {
				continue
			}
			asked["panel "+p.Title] = p.Datasource
			for i, target := range p.Targets {
				asked[fmt.Sprintf("panel %s, query %d", p.Title, i)] = target.Datasource
			}
		}
		for what, source := range asked {
			if source != (datasource{kind, "${source}"}) {
				t.Errorf("%s, %s asks %+v", name, what, source)
			}
		}
	}
}

// From each dashboard a link leads to every other, with the time range and the variables, which have the same names there.
func TestDashboardsLeadToOneAnother(t *testing.T) {
	all := readDashboards(t)
	names := func(d dashboard) (names []string) {
		for _, v := range d.Templating.List {
			names = append(names, v.Name)
		}
		return names
	}
	shared := []string{"source", "testid", "driver", "topic", "scenario", "group", "quantile"}
	for name, d := range all {
		for other, to := range all {
			if other == name {
				continue
			}
			if !slices.ContainsFunc(d.Links, func(l link) bool {
				return l.Type == "dashboards" && l.KeepTime && l.IncludeVars && len(l.Tags) == 1 && slices.Contains(to.Tags, l.Tags[0])
			}) {
				t.Errorf("no link leads from %s to %s", name, other)
			}
		}
		for _, v := range shared {
			if !slices.Contains(names(d), v) {
				t.Errorf("%s has no variable %s", name, v)
			}
		}
	}
}

// Latencies of open and closed loops are never in one panel, nor in one query.
func TestDashboardsKeepTheLoopsApart(t *testing.T) {
	looped := regexp.MustCompile(`broker_(publish|e2e|request|failed|delivery)_|"trend" =~? ['/^(]*(publish|e2e|request|failed|delivery)_`)
	loop := regexp.MustCompile(`"loop" = '(open|closed)'`)
	seen := map[string]bool{}
	for name, d := range readDashboards(t) {
		for _, p := range d.Panels {
			loops := map[string]bool{}
			for _, target := range p.Targets {
				if !looped.MatchString(target.Query) {
					continue
				}
				asked := loop.FindStringSubmatch(target.Query)
				if asked == nil {
					t.Errorf("%s, %s asks for both loops: %s", name, p.Title, target.Query)
					continue
				}
				loops[asked[1]], seen[asked[1]] = true, true
			}
			if len(loops) > 1 {
				t.Errorf("%s, %s shows both loops", name, p.Title)
			}
		}
	}
	if !seen["open"] || !seen["closed"] {
		t.Errorf("of the loops only %v are shown", seen)
	}
}

// Units are as people write them; Grafana's "counts per second" are not.
func TestDashboardsHaveUnits(t *testing.T) {
	for name, d := range readDashboards(t) {
		for _, p := range d.Panels {
			unit := p.FieldConfig.Defaults.Unit
			if known := slices.Contains([]string{"ms", "Bps", "percentunit", "locale"}, unit) || strings.HasPrefix(unit, "suffix:"); known ||
				p.Type == "row" || p.Type == "table" {
				continue
			}
			t.Errorf("%s, %s has the unit %q", name, p.Title, unit)
		}
	}
}

// resolve puts values for the variables and Grafana's own ones, as Grafana does: several values of a variable are an alternation.
func resolve(query string, values map[string][]string, from, to time.Time) string {
	for name, chosen := range values {
		text := chosen[0]
		if len(chosen) > 1 {
			text = "(" + strings.Join(chosen, "|") + ")"
		}
		query = regexp.MustCompile(`\$`+name+`\b`).ReplaceAllLiteralString(query, text)
	}
	return strings.NewReplacer(
		"$timeFilter", fmt.Sprintf("time >= %dms AND time <= %dms", from.UnixMilli(), to.UnixMilli()),
		"$__interval_ms", "2000", "$__interval", "2s",
	).Replace(query)
}

// variables asks for the values of each variable in turn, for a variable may depend on those before it, and chooses among them.
func (d dashboard) variables(t *testing.T, db harness.Database, from, to time.Time, choose func(variable, []string) []string) map[string][]string {
	t.Helper()
	values := map[string][]string{}
	for _, v := range d.Templating.List {
		found := strings.Split(v.Query, ",")
		for i, option := range found { // "name : value", or a value
			_, value, named := strings.Cut(option, " : ")
			if named {
				found[i] = value
			}
		}
		switch v.Type {
		case "datasource":
			continue
		case "query":
			found = nil
			for _, s := range db.Query(t, resolve(v.Query, values, from, to)) {
				for _, row := range s.Values {
					found = append(found, row[1].(string))
				}
			}
		}
		if len(found) == 0 {
			t.Fatalf("%s: the variable %s has no value", d.Title, v.Name)
		}
		slices.Sort(found)
		values[v.Name] = choose(v, slices.Compact(found))
	}
	return values
}

// Every query of every panel, annotation and variable finds something in an InfluxDB that two real runs were written to, one of them with a
// broker that breaks off.
func TestEveryQueryOfTheDashboardsFindsSomething(t *testing.T) {
	t.Parallel()
	db := harness.NewDatabase(t)
	broker := harness.URL(t, "BROKER_URL_NATS_JETSTREAM")
	address, err := driver.ParseURL(broker, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, host, _ := strings.Cut(address.String(), "://")
	p, err := proxy.Listen(host)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close() //nolint:errcheck // the test is over
	const text = harness.Pull + `
const conn = broker.connect(__ENV.BROKER_URL, { drainTimeout: '5s' }), core = broker.connect('embedded-nats:');
const p = conn.producer(__ENV.TOPIC), c = conn.consumer(__ENV.TOPIC, { group: 'workers', confirmAcks: true });
const asks = core.producer('questions'), answers = core.consumer('questions', { group: 'answerers' });
const fast = core.producer('closed'), bare = core.producer('closed', { stamp: 'off' }), reader = core.consumer('closed', { group: 'readers' });
const tooLarge = 'x'.repeat(2 << 20); // for the server
export const options = {
  scenarios: {
    consume: { executor: 'per-vu-iterations', exec: 'consume' },
    read: { executor: 'per-vu-iterations', exec: 'read' },
    answer: { executor: 'constant-vus', exec: 'answer', vus: 1, duration: '10s', gracefulStop: '2s' },
    produce: { executor: 'per-vu-iterations', exec: 'produce', startTime: '1s' },
    ask: { executor: 'open-arrival-rate', exec: 'ask', rate: 200, duration: '7s', preAllocatedVUs: 10, startTime: '1s' },
    closed: { executor: 'per-vu-iterations', exec: 'closed', startTime: '1s' },
  },
  tags: { testid: __ENV.TESTID },
};
export async function setup() { await conn.createTopic(__ENV.TOPIC, { storage: 'memory' }); }
export async function produce() {
  broker.mark('here it begins');
  if (__ENV.LEVERS) setTimeout(() => pull('fault'), 4000);
  await p.produce({ rate: 1000, duration: '8s' });
}
export async function consume() {
  const some = await c.receive({ max: 5, wait: '5s' });
  await c.nack(some, { requeue: true });
  await c.consume({ duration: '11s', work: '1.2ms' }).catch(() => {});
}
export async function ask() {
  await asks.request('what?', { timeout: '1s' }).catch(() => {});
  if (__ITER < 3) await asks.send(tooLarge).catch(() => {});
}
export async function answer() {
  for (const m of await answers.receive({ max: 50, wait: '300ms' })) await answers.reply(m, 'that').catch(() => {});
}
export async function closed() {
  await fast.produce({ count: 5000 });
  await bare.send('unaccounted');
  for (let i = 0; i < 40; i++) await asks.request('and?', { timeout: '1s' }).catch(() => {});
  await fast.send(tooLarge).catch(() => {});
}
export async function read() { await reader.consume({ duration: '5s' }); }
`
	topic := "TOPIC=" + db.Name // that no earlier test left anything in
	from := time.Now()
	var first, second harness.Result
	t.Run("runs", func(t *testing.T) {
		t.Run("broken", func(t *testing.T) {
			t.Parallel()
			fault := harness.Levers(t, map[string]func() error{"fault": func() error {
				p.Refuse(true)
				p.Cut()
				time.Sleep(time.Second) // this is how long the broker is away
				p.Refuse(false)
				return nil
			}})
			_, first = harness.RunToOutcome(t, text, db.Out(), topic, "TESTID=broken", fault, "BROKER_URL="+strings.Replace(broker, host, p.Addr(), 1))
		})
		t.Run("other", func(t *testing.T) {
			t.Parallel()
			_, second = harness.RunToOutcome(t, text, db.Out(), topic, "TESTID=other (1)", "BROKER_URL=embedded:")
		})
	})
	to := time.Now()

	everything := func(v variable, found []string) []string {
		if v.AllValue != "" {
			return []string{v.AllValue}
		}
		return found[:1]
	}
	for name, d := range readDashboards(t) {
		for choice, choose := range map[string]func(variable, []string) []string{
			"everything": everything,
			"chosen": func(v variable, found []string) []string {
				for i, value := range found {
					if v.Multi || v.IncludeAll { // as Grafana does
						found[i] = regexp.QuoteMeta(value)
					}
				}
				if v.Multi {
					return found
				}
				return found[:1] // of the runs, the broken one
			},
			"by driver": func(v variable, found []string) []string {
				if v.Name == "by" {
					return []string{"driver"}
				}
				return everything(v, found)
			},
		} {
			t.Run(name+"/"+choice, func(t *testing.T) {
				values := d.variables(t, db, from, to, choose)
				for _, query := range d.queries(t) {
					resolved := resolve(query, values, from, to)
					if rest := regexp.MustCompile(`\$\w+`).FindString(strings.ReplaceAll(resolved, "$/", "")); rest != "" {
						t.Errorf("%s is not known: %s", rest, query)
					} else if len(db.Query(t, resolved)) == 0 {
						t.Errorf("nothing found by %s\nwhich is %s", resolved, query)
					}
				}
			})
		}
	}
	if t.Failed() {
		t.Log(first, second)
	}
}

// queries are those of all panels and annotations.
func (d dashboard) queries(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, p := range d.Panels {
		if p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("%s: %s has no query", d.Title, p.Title)
		}
		for _, target := range p.Targets {
			all = append(all, target.Query)
		}
	}
	for _, a := range d.Annotations.List {
		if !strings.Contains(a.Target.Query, `"`+a.Target.TextColumn+`"`) {
			t.Errorf("%s: %s: there is no column %q", d.Title, a.Name, a.Target.TextColumn)
		}
		all = append(all, a.Target.Query)
	}
	return all
}
