package sweep

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func planOf(t *testing.T, repeat int, seed uint64, sets ...string) Plan {
	t.Helper()
	p := Plan{Repeat: repeat, Seed: seed}
	for _, text := range sets {
		s, err := ParseSetting(text)
		if err != nil {
			t.Fatal(err)
		}
		p.Settings = append(p.Settings, s)
	}
	return p
}

// Each repetition holds every combination once; no repetition begins before the one before is over; and the order is the seed's, and another in each.
func TestEachRepetitionIsWhole(t *testing.T) {
	p := planOf(t, 6, 1, "RATE=1,2,3", "SIZE=10,20")
	if err := p.Check(); err != nil {
		t.Fatal(err)
	}
	cells := p.Cells()
	if len(cells) != 36 {
		t.Fatalf("%d cells", len(cells))
	}
	orders := map[string]bool{}
	folders := map[string]bool{}
	for repetition := range 6 {
		var order []string
		for i, c := range cells[6*repetition : 6*repetition+6] {
			if c.Repetition != repetition+1 || c.Index != 6*repetition+i+1 {
				t.Errorf("cell %d of repetition %d is number %d of %d", i, repetition+1, c.Index, c.Repetition)
			}
			order = append(order, c.Settings.String())
			folders[c.Folder] = true
		}
		orders[fmt.Sprint(order)] = true
		slices.Sort(order)
		if want := []string{"RATE=1 SIZE=10", "RATE=1 SIZE=20", "RATE=2 SIZE=10", "RATE=2 SIZE=20", "RATE=3 SIZE=10", "RATE=3 SIZE=20"}; !slices.Equal(order, want) {
			t.Errorf("repetition %d holds %q", repetition+1, order)
		}
	}
	if len(orders) < 5 || len(folders) != 36 {
		t.Errorf("%d orders, %d folders", len(orders), len(folders))
	}
	if !reflect.DeepEqual(cells, p.Cells()) {
		t.Error("the same plan has another order")
	}
	if p.Seed = 2; reflect.DeepEqual(cells, p.Cells()) {
		t.Error("another seed has the same order")
	}
}

// Settings that are zipped are one axis of pairs, and the others make a grid with it.
func TestPairs(t *testing.T) {
	p := planOf(t, 1, 1, "URL=a,b", "RATE=1,2", "NAME=A,B")
	p.Zips = [][]string{{"URL", "NAME"}}
	if err := p.Check(); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, v := range p.Combinations() {
		got = append(got, v.String())
	}
	if want := []string{"URL=a NAME=A RATE=1", "URL=a NAME=A RATE=2", "URL=b NAME=B RATE=1", "URL=b NAME=B RATE=2"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func TestMistakesInAPlan(t *testing.T) {
	for _, c := range []struct {
		want   string
		repeat int
		zips   [][]string
		sets   []string
	}{
		{"nothing varies", 1, nil, nil},
		{"--repeat -1: it must be 1 or more", -1, nil, []string{"A=1"}},
		{"--repeat 0", 0, nil, []string{"A=1"}},
		{"A has the value 1 twice", 1, nil, []string{"A=1,2,1"}},
		{"A has an empty value", 1, nil, []string{"A=1,"}},
		{"--set A is given twice", 1, nil, []string{"A=1", "A=2"}},
		{"BROKER_REPORT_DIR is the study's own", 1, nil, []string{"BROKER_REPORT_DIR=x"}},
		{"there is no --set C", 1, [][]string{{"A", "C"}}, []string{"A=1"}},
		{"A has 2 values and B has 3", 1, [][]string{{"A", "B"}}, []string{"A=1,2", "B=1,2,3"}},
		{"name two settings", 1, [][]string{{"A"}}, []string{"A=1,2"}},
		{"B is named twice", 1, [][]string{{"A", "B"}, {"B", "C"}}, []string{"A=1", "B=1", "C=1"}},
		{"more than 100000 cells", 100_000, nil, []string{"A=1,2"}},
		{"has the value nats://u:xxxxx@h twice", 1, nil, []string{"A=nats://u:one@h,nats://u:one@h"}},
	} {
		p := planOf(t, c.repeat, 1, c.sets...)
		p.Zips = c.zips
		if err := p.Check(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: error %v, want %q", c.sets, err, c.want)
		}
	}
	for _, text := range []string{"A", "=1", "A=", `A="1`, "A=1\nB"} {
		if s, err := ParseSetting(text); err == nil {
			t.Errorf("%q: %v", text, s)
		}
	}
	s, err := ParseSetting(`URL="kafka://a:1,b:2",nats://c=d`)
	if err != nil || !slices.Equal(s.Values, []string{"kafka://a:1,b:2", "nats://c=d"}) {
		t.Error(s, err)
	}
}

// What a study shows and writes holds no password; what a process gets does.
func TestNothingShowsASecret(t *testing.T) {
	v := Values{{Name: "URL", Value: "amqp://user:hush@h:1,g:2/v?password=hush&heartbeat=5s"}, {Name: "BROKER_PASSWORD", Value: "hush"}, {Name: "RATE", Value: "5"}}
	if got := v.String(); got != "URL=amqp://user:xxxxx@h:1,g:2/v?password=xxxxx&heartbeat=5s BROKER_PASSWORD=xxxxx RATE=5" {
		t.Error(got)
	}
	if env := strings.Join(v.environment(), " "); strings.Count(env, "hush") != 3 {
		t.Error(env)
	}
	p := planOf(t, 1, 1, "URL=amqp://user:hush@h/", "TOKEN=hush")
	if text := fmt.Sprint(p.Asked()); strings.Contains(text, "hush") {
		t.Error(text)
	}
	for text, want := range map[string]string{
		"jetstream://hush@h:4222":                        "jetstream://xxxxx@h:4222",
		"nats://h:4222/x":                                "nats://h:4222/x",
		"sqs://h?ACCESS_KEY=hush&region=eu&api_key=hush": "sqs://h?ACCESS_KEY=xxxxx&region=eu&api_key=xxxxx",
		"api_key=hush":                                   "api_key=xxxxx",
		"PGPASSWORD='hush hush' psql -c 'select 1'":      "PGPASSWORD=xxxxx psql -c 'select 1'",
		"redis-cli --pass hush flushall":                 "redis-cli --pass xxxxx flushall",
		"KEYS=5,6":                                       "KEYS=5,6",
	} {
		if got := Shown(text); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	args := "-e KAFKA_PASSWORD=hush --env=API_TOKEN=hush -e=X=nats://hush@h --out influxdb=http://u:hush@h/?x=1 -e RATE=5 --vus 5"
	want := "-e KAFKA_PASSWORD=xxxxx --env=API_TOKEN=xxxxx -e=X=nats://xxxxx@h --out influxdb=http://u:xxxxx@h/?x=1 -e RATE=5 --vus 5"
	if got := Shown(args); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
