package blueflood_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// sentPoint is what a request has of a point.
type sentPoint struct {
	MetricName     string
	CollectionTime int64
	MetricValue    float64
	TTLInSeconds   int64
	Unit           string
}

// fake is a server that answers as Blueflood was seen to, for what the real one does not do at a test's will.
type fake struct {
	url      string
	requests [][]sentPoint

	mu     sync.Mutex
	stored map[string]map[int64]bool
	// ingest answers requests that have points, instead of storing all; it is true where it has.
	ingest func(w http.ResponseWriter, points []sentPoint) bool
	away   bool // the store: known metrics are confirmed and lost, others are refused, and there are no points
	known  map[string]bool
}

func newFake(t *testing.T) *fake {
	t.Helper()
	f := &fake{stored: map[string]map[int64]bool{}, known: map[string]bool{}}
	s := httptest.NewServer(http.HandlerFunc(f.serve))
	t.Cleanup(s.Close)
	host := strings.TrimPrefix(s.URL, "http://")
	f.url = "blueflood://" + host + "/tenant?queryAddress=" + host
	return f
}

func (f *fake) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	f.mu.Lock()
	defer f.mu.Unlock()
	switch r.URL.Path {
	case "/v2.0/tenant/ingest":
		f.take(w, body)
	case "/v2.0/tenant/views":
		f.view(w, r, body)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func (f *fake) take(w http.ResponseWriter, body []byte) {
	var points []sentPoint
	err := json.Unmarshal(body, &points)
	switch {
	case err != nil:
		refuse(w, http.StatusBadRequest, `{"message":"Cannot parse content"}`)
		return
	case len(points) == 0:
		refuse(w, http.StatusBadRequest, `{"message":"No valid metrics"}`)
		return
	}
	f.requests = append(f.requests, points)
	if f.ingest != nil && f.ingest(w, points) {
		return
	}
	for _, p := range points {
		if f.away && !f.known[p.MetricName] {
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = io.WriteString(w, "Persisted failed for metrics")
			return
		}
	}
	for _, p := range points {
		if f.known[p.MetricName] = true; !f.away {
			f.store(p)
		}
	}
}

func (f *fake) store(p sentPoint) {
	if f.stored[p.MetricName] == nil {
		f.stored[p.MetricName] = map[int64]bool{}
	}
	f.stored[p.MetricName][p.CollectionTime] = true
}

// refuse answers with entries.
func refuse(w http.ResponseWriter, status int, entries ...string) {
	w.WriteHeader(status)
	_, _ = io.WriteString(w, `{"errors":[`+strings.Join(entries, ",")+`]}`)
}

func (f *fake) view(w http.ResponseWriter, r *http.Request, body []byte) {
	var names []string
	from, _ := strconv.ParseInt(r.URL.Query().Get("from"), 10, 64)
	to, _ := strconv.ParseInt(r.URL.Query().Get("to"), 10, 64)
	if json.Unmarshal(body, &names) != nil || len(names) > 100 || to <= from || r.URL.Query().Get("resolution") != "FULL" {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	type data struct {
		Timestamp int64   `json:"timestamp"`
		Average   float64 `json:"average"`
	}
	type metric struct {
		Metric string `json:"metric"`
		Data   []data `json:"data"`
	}
	answer := struct {
		Metrics []metric `json:"metrics"`
	}{}
	for _, name := range names {
		m := metric{Metric: name}
		for at := range f.stored[name] {
			if !f.away && at >= from && at <= to {
				m.Data = append(m.Data, data{at, 1})
			}
		}
		answer.Metrics = append(answer.Metrics, m)
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// set changes what the server does.
func (f *fake) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func kindOf(t *testing.T, err error) driver.Kind {
	t.Helper()
	d, unknown := driver.Lookup("blueflood")
	if unknown != nil {
		t.Fatal(unknown)
	}
	return d.KindOf(err)
}

// open connects, with options of any scope.
func open(t *testing.T, url string, options map[string]any) (driver.Conn, *driver.Address, error) {
	t.Helper()
	a, err := driver.ParseURL(url, options)
	if err != nil {
		t.Fatal(err)
	}
	c, err := a.Open(t.Context(), "test")
	if err == nil {
		t.Cleanup(func() { _ = c.Close(context.Background()) })
	}
	return c, a, err
}

// producer is one of a topic of its own.
func producer(t *testing.T, url string, options map[string]any) (p driver.Producer, topic string) {
	t.Helper()
	if url == "" {
		t.Skip("no BROKER_URL_BLUEFLOOD")
	}
	c, a, err := open(t, url, options)
	if err != nil {
		t.Fatal(err)
	}
	values, err := a.Resolve(driver.OnProducer, nil)
	if err != nil {
		t.Fatal(err)
	}
	topic = fmt.Sprintf("test%d", topics.Add(1))
	if p, err = c.NewProducer(t.Context(), driver.ProducerConfig{Topic: topic, Window: 10_000, Workers: 8, Options: values}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close(context.Background()) })
	return p, topic
}

// topics counts the topics of all tests.
var topics atomic.Int64

func send(t *testing.T, p driver.Producer, b driver.Batch) []error {
	t.Helper()
	errs := make([]error, len(b))
	p.Send(t.Context(), b, func(i int, err error) { errs[i] = err })
	return errs
}

// bodies are messages.
func bodies(all ...string) driver.Batch {
	b := make(driver.Batch, len(all))
	for i := range b {
		b[i].Body = []byte(all[i])
	}
	return b
}

// numbers are n messages.
func numbers(n int) driver.Batch {
	b := make(driver.Batch, n)
	for i := range b {
		b[i].Body = strconv.AppendInt(nil, int64(i), 10)
	}
	return b
}
