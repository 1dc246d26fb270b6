package harness

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// Database is a test's own database of a real InfluxDB.
type Database struct{ server, Name string }

// NewDatabase creates a database. A server whose URL has a password is an InfluxDB 2: the password
// is a token, and databases are buckets.
func NewDatabase(t *testing.T) Database {
	t.Helper()
	d := Database{URL(t, "BROKER_URL_INFLUXDB"), fmt.Sprintf("test_%d", time.Now().UnixNano())}
	if d.URL(t).User != nil {
		d.makeBucket(t)
		return d
	}
	d.execute(t, "CREATE DATABASE "+d.Name) // k6 does it too if it can
	t.Cleanup(func() { d.execute(t, "DROP DATABASE "+d.Name) })
	return d
}

// URL returns the server's address.
func (d Database) URL(t *testing.T) *url.URL {
	t.Helper()
	u, err := url.Parse(d.server)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// makeBucket creates a bucket of the database's name, which InfluxDB 2 uses as that database.
func (d Database) makeBucket(t *testing.T) {
	t.Helper()
	var organizations struct{ Orgs []struct{ ID string } }
	d.api(t, http.MethodGet, "orgs", nil, &organizations)
	if len(organizations.Orgs) == 0 {
		t.Fatal("InfluxDB has no organization")
	}
	var bucket struct{ ID string }
	d.api(t, http.MethodPost, "buckets", map[string]string{"orgID": organizations.Orgs[0].ID, "name": d.Name}, &bucket)
	t.Cleanup(func() { d.api(t, http.MethodDelete, "buckets/"+bucket.ID, nil, nil) })
}

// api calls the API of InfluxDB 2.
func (d Database) api(t *testing.T, method, path string, body, answer any) {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	u := d.URL(t)
	// Without a context: a test's own has ended when it cleans up.
	request, err := http.NewRequest(method, "http://"+u.Host+"/api/v2/"+path, bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	token, _ := u.User.Password()
	request.Header.Set("Authorization", "Token "+token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close() //nolint:errcheck // read to its end
	if response.StatusCode/100 != 2 {
		t.Fatalf("%s %s: %s", method, path, response.Status)
	}
	if answer != nil {
		if err := json.NewDecoder(response.Body).Decode(answer); err != nil {
			t.Fatal(err)
		}
	}
}

func (d Database) execute(t *testing.T, statement string) {
	t.Helper()
	response, err := http.PostForm(d.server+"/query", url.Values{"q": {statement}})
	if err != nil {
		t.Fatal(err)
	}
	if err := response.Body.Close(); err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", statement, response.Status, err)
	}
}

// Out makes k6 write into the database.
func (d Database) Out() string { return "K6_OUT=influxdb=" + d.server + "/" + d.Name }

// Series is a series in InfluxDB's answer.
type Series struct {
	Name    string
	Tags    map[string]string
	Columns []string
	Values  [][]any
}

// Query runs an InfluxQL query and returns its series.
func (d Database) Query(t *testing.T, q string) []Series {
	t.Helper()
	response, err := http.Get(d.server + "/query?" + url.Values{"db": {d.Name}, "q": {q}, "epoch": {"ms"}}.Encode())
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close() //nolint:errcheck // read to its end
	var answer struct {
		Error   string
		Results []struct {
			Error  string
			Series []Series
		}
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		t.Fatalf("%s: %v", q, err)
	}
	if answer.Error != "" || len(answer.Results) != 1 || answer.Results[0].Error != "" {
		t.Fatalf("%s: %+v", q, answer)
	}
	return answer.Results[0].Series
}

// Sum adds up a counter.
func (d Database) Sum(t *testing.T, metric string) (total float64, stored bool) {
	t.Helper()
	return d.Total(t, "sum", metric, "")
}

// Total applies a function of InfluxQL to a metric; tags are a submetric's, or empty.
func (d Database) Total(t *testing.T, function, metric, tags string) (total float64, stored bool) {
	t.Helper()
	q := fmt.Sprintf(`SELECT %s("value") FROM %q`, function, metric)
	if tags != "" {
		q += " WHERE " + conditions(tags)
	}
	for _, s := range d.Query(t, q) {
		total, stored = s.Values[0][1].(float64)
	}
	return total, stored
}

// conditions turns the tags of a submetric, "a:b,c:d", into an InfluxQL condition.
func conditions(tags string) string {
	var all []string
	for pair := range strings.SplitSeq(tags, ",") {
		name, value, _ := strings.Cut(pair, ":")
		all = append(all, fmt.Sprintf(`%q = '%s'`, name, value))
	}
	return strings.Join(all, " AND ")
}

// SameCounts compares every counter of the module, and k6's own of data, with the database, and the
// number of samples of each trend.
func (d Database) SameCounts(t *testing.T, o Outcome) (checked int) {
	t.Helper()
	for name, metric := range o.Metrics {
		count, isCount := metric.Values["count"]
		_, isCounter := metric.Values["rate"]
		metric, tags, _ := strings.Cut(strings.TrimSuffix(name, "}"), "{")
		if !isCount || !(strings.HasPrefix(metric, "broker_") || strings.HasPrefix(metric, "data_")) {
			continue
		}
		function := "count" // of a trend
		if isCounter {
			function = "sum"
		}
		if stored, _ := d.Total(t, function, metric, tags); stored != count {
			t.Errorf("%s: k6 counted %.0f, InfluxDB holds %.0f", name, count, stored)
		}
		if isCounter {
			checked++
		}
	}
	return checked
}
