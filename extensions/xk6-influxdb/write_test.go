package influxdb_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

func kindOf(t *testing.T, err error) driver.Kind {
	t.Helper()
	d, unknown := driver.Lookup("influxdb")
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

// producer is one for a new measurement of the server, unless the URL is another's.
func producer(t *testing.T, url string, options map[string]any) (p driver.Producer, topic string) {
	t.Helper()
	if url == "" {
		t.Skip("no BROKER_URL_INFLUXDB")
	}
	c, a, err := open(t, url, options)
	if err != nil {
		t.Fatal(err)
	}
	values, err := a.Resolve(driver.OnProducer, nil)
	if err != nil {
		t.Fatal(err)
	}
	topic = fmt.Sprintf("t%012x", rand.Uint64()>>16)
	if p, err = c.NewProducer(t.Context(), driver.ProducerConfig{Topic: topic, Window: 1000, Workers: 4, Options: values}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close(context.Background()) })
	return p, topic
}

func send(t *testing.T, p driver.Producer, b driver.Batch) []error {
	t.Helper()
	errs := make([]error, len(b))
	p.Send(t.Context(), b, func(i int, err error) { errs[i] = err })
	return errs
}

func bodies(all ...string) driver.Batch {
	b := make(driver.Batch, len(all))
	for i := range b {
		b[i].Body = []byte(all[i])
	}
	return b
}

// TestNothingTakesTheOthersPlace sends the same message at the same time, many times, by several producers: each is stored.
func TestNothingTakesTheOthersPlace(t *testing.T) {
	first, topic := producer(t, serverURL(), map[string]any{"gzip": true, "tags": "host=a b"})
	same := make([]string, 500)
	for i := range same {
		same[i] = "same"
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if err := errors.Join(send(t, first, bodies(same...))...); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	_, rows := query(t, `SELECT count(body) FROM "`+topic+`" WHERE host = 'a b'`)
	if len(rows) != 1 || fmt.Sprint(rows[0][1]) != "4000" {
		t.Errorf("4000 were confirmed, and stored are %v", rows)
	}
}

// TestFields has bodies that are the fields of a point.
func TestFields(t *testing.T) {
	p, topic := producer(t, serverURL(), map[string]any{"body": "fields"})
	if err := errors.Join(send(t, p, bodies("value=1.5,count=3i", "value=2.5,count=4i"))...); err != nil {
		t.Fatal(err)
	}
	_, rows := query(t, `SELECT sum(value), sum(count) FROM "`+topic+`"`)
	if len(rows) != 1 || fmt.Sprint(rows[0][1:]) != "[4 7]" {
		t.Errorf("%v", rows)
	}
}

// TestPartialWrite sends a field that has another type: of a batch the server stores the others, and all of it fails with its words.
func TestPartialWrite(t *testing.T) {
	p, topic := producer(t, serverURL(), map[string]any{"body": "fields"})
	if err := errors.Join(send(t, p, bodies("value=1"))...); err != nil {
		t.Fatal(err)
	}
	for i, err := range send(t, p, bodies("value=2", `value="text"`, "value=3")) {
		if kindOf(t, err) != driver.Rejected || !strings.Contains(fmt.Sprint(err), "partial write: field type conflict") || !strings.Contains(err.Error(), "has stored other points") {
			t.Errorf("message %d: %v", i, err)
		}
	}
	_, rows := query(t, `SELECT count(value) FROM "`+topic+`"`)
	if len(rows) != 1 || fmt.Sprint(rows[0][1]) != "3" {
		t.Errorf("the server has %v, and stores what it can", rows)
	}
	if err := send(t, p, bodies("no fields"))[0]; kindOf(t, err) != driver.Rejected || !strings.Contains(fmt.Sprint(err), "unable to parse") {
		t.Errorf("what is no line: %v", err)
	}
}

func TestWhatMakesNoPoint(t *testing.T) {
	p, _ := producer(t, serverURL(), nil)
	errs := send(t, p, driver.Batch{
		{Key: []byte("a\nb")}, {Key: []byte(`a\`)}, {Key: []byte("\xff")}, {Headers: []driver.Header{{Name: "a"}}}, {Body: make([]byte, 50_000)}, {Body: []byte("good"), Key: []byte(`a,b=c "d\e`)},
	})
	for i, want := range []driver.Kind{driver.Rejected, driver.Rejected, driver.Rejected, driver.Unsupported, driver.Rejected, ""} {
		if got := kindOf(t, errs[i]); got != want {
			t.Errorf("message %d: kind %q, want %q: %v", i, got, want, errs[i])
		}
	}
	c, a, err := open(t, serverURL(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for topic, tags := range map[string]string{"#a": "", "a\nb": "", "": "", "x": "producer=me", "z": "host="} {
		values, err := a.Resolve(driver.OnProducer, map[string]any{"tags": tags})
		if err != nil {
			t.Fatal(err)
		}
		if p, err := c.NewProducer(t.Context(), driver.ProducerConfig{Topic: topic, Options: values}); kindOf(t, err) != driver.Rejected {
			t.Errorf("topic %q, tags %q: %v, %v", topic, tags, p, err)
		}
	}
}

func TestDatabase(t *testing.T) {
	url := serverURL()
	if url == "" {
		t.Skip("no BROKER_URL_INFLUXDB")
	}
	absent := strings.Replace(url, "/"+database+"?createDatabase=true", "/xk6broker_absent", 1)
	if _, _, err := open(t, absent, nil); kindOf(t, err) != driver.NotFound || !strings.Contains(fmt.Sprint(err), "xk6broker_absent") {
		t.Errorf("a database that is not there: %v", err)
	}
	if _, _, err := open(t, strings.Replace(absent, "xk6broker_absent", "", 1), nil); kindOf(t, err) != driver.Rejected || !strings.Contains(fmt.Sprint(err), `option "database"`) {
		t.Errorf("no database: %v", err)
	}
}

// answering is a server that is an InfluxDB until it is written to.
func answering(t *testing.T, write http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Influxdb-Version", "1.6.7")
		if body, _ := io.ReadAll(r.Body); r.URL.Path == "/write" && (len(body) > 0 || r.Header.Get("Authorization") != "") {
			write(w, r)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(s.Close)
	return "influxdb://" + strings.TrimPrefix(s.URL, "http://") + "/db"
}

// TestAnswers has those that a test does not get from the real server.
func TestAnswers(t *testing.T) {
	for status, want := range map[int]driver.Kind{
		200: driver.Rejected, 400: driver.Rejected, 401: driver.Denied, 403: driver.Denied, 404: driver.NotFound, 413: driver.Rejected, 429: driver.Throttled, 503: driver.Throttled, 500: driver.Timeout,
	} {
		var requests atomic.Int32
		p, _ := producer(t, answering(t, func(w http.ResponseWriter, _ *http.Request) {
			requests.Add(1)
			w.WriteHeader(status)
			_, _ = io.WriteString(w, `{"error":"timeout, the server says"}`)
		}), nil)
		for i, err := range send(t, p, bodies("a", "b")) {
			if kindOf(t, err) != want || !strings.Contains(fmt.Sprint(err), "the server says") {
				t.Errorf("%d, message %d: kind %q: %v", status, i, kindOf(t, err), err)
			}
		}
		if requests.Load() != 1 {
			t.Errorf("%d: %d requests: nothing is tried again", status, requests.Load())
		}
	}
}

func TestDenied(t *testing.T) {
	for _, with := range []string{"user:5ecret@", "token"} {
		url := answering(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"error":"authorization failed"}`)
		})
		if with == "token" {
			url += "?token=5ecret"
		} else {
			url = strings.Replace(url, "://", "://"+with, 1)
		}
		_, _, err := open(t, url, nil)
		if kindOf(t, err) != driver.Denied || strings.Contains(fmt.Sprint(err), "5ecret") {
			t.Errorf("%s: %v", with, err)
		}
	}
}

// TestNoAnswer is given up by the option timeout.
func TestNoAnswer(t *testing.T) {
	p, _ := producer(t, answering(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }), map[string]any{"timeout": "1s"})
	err := send(t, p, bodies("a"))[0]
	if kindOf(t, err) != driver.Timeout || !strings.Contains(fmt.Sprint(err), `option "timeout"`) {
		t.Errorf("kind %q: %v", kindOf(t, err), err)
	}
}
