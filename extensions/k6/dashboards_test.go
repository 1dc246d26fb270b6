package main

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

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/proxy"
)

// dashboard is as much of a Grafana dashboard as its queries need.
type dashboard struct {
	Title       string
	Annotations struct {
		List []struct {
			Name   string
			Target struct{ Query, TextColumn string }
		}
	}
	Templating struct {
		List []variable
	}
	Panels []struct {
		ID          int
		Title, Type string
		Datasource  struct{ UID string }
		Targets     []struct{ Query, ResultFormat string }
	}
}

type variable struct {
	Name, Type, Query, AllValue string
	Multi                       bool
}

func readDashboards(t *testing.T) map[string]dashboard {
	t.Helper()
	paths, err := filepath.Glob("../../grafana/dashboards/*.json")
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

// Panels find the data source that is provisioned, and it is the database that k6 writes to.
func TestDashboardsNameTheProvisionedDataSource(t *testing.T) {
	text, err := os.ReadFile("../../grafana/provisioning/datasources/influxdb.yml")
	if err != nil {
		t.Fatal(err)
	}
	for name, d := range readDashboards(t) {
		for _, p := range d.Panels {
			if p.Type != "row" && !strings.Contains(string(text), "uid: "+p.Datasource.UID+"\n") {
				t.Errorf("%s, %s: there is no data source %q", name, p.Title, p.Datasource.UID)
			}
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
func (d dashboard) variables(t *testing.T, db database, from, to time.Time, choose func(variable, []string) []string) map[string][]string {
	t.Helper()
	values := map[string][]string{}
	for _, v := range d.Templating.List {
		found := strings.Split(v.Query, ",")
		if v.Type == "query" {
			found = nil
			for _, s := range db.query(t, resolve(v.Query, values, from, to)) {
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
	db := newDatabase(t)
	broker := external(t, "BROKER_URL_NATS_JETSTREAM")
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
	from := time.Now()
	fail := time.AfterFunc(6*time.Second, func() { p.Refuse(true); p.Cut() })
	heal := time.AfterFunc(7*time.Second, func() { p.Refuse(false) })
	defer fail.Stop()
	defer heal.Stop()
	const text = `
const conn = broker.connect(__ENV.BROKER_URL, { drainTimeout: '5s' });
const p = conn.producer('dashboards'), c = conn.consumer('dashboards', { group: 'workers' });
const settles = conn.features.settle.length > 0;
export const options = {
  scenarios: {
    consume: { executor: 'per-vu-iterations', exec: 'consume' },
    produce: { executor: 'per-vu-iterations', exec: 'produce', startTime: '1s' },
  },
  tags: { testid: __ENV.TESTID },
};
export async function setup() { if (settles) await conn.createTopic('dashboards', { storage: 'memory' }); }
export async function produce() {
  broker.mark('here it begins');
  await p.produce({ rate: 1000, duration: '8s' });
}
export async function consume() {
  if (settles) {
    const some = await c.receive({ max: 5, wait: '5s' });
    await c.nack(some, { requeue: true });
  }
  await c.consume({ duration: '11s', work: settles ? '1.2ms' : '0s' }).catch(() => {});
}
`
	_, first := runToOutcome(t, text, db.out(), "TESTID=broken", "BROKER_URL="+strings.Replace(broker, host, p.Addr(), 1))
	_, second := runToOutcome(t, text, db.out(), "TESTID=other (1)", "BROKER_URL=embedded-nats:")
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
					found[i] = regexp.QuoteMeta(value)
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
					} else if len(db.query(t, resolved)) == 0 {
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
