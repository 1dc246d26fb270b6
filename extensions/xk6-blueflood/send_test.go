package blueflood_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// TestPoints looks at what goes over the wire: one request for a batch, a metric for each message, the value as it is written.
func TestPoints(t *testing.T) {
	f := newFake(t)
	p, topic := producer(t, f.url, map[string]any{"metrics": 3, "producerName": "me", "ttl": "90s", "unit": "°C"})
	before := time.Now().UnixMilli()
	if err := errors.Join(send(t, p, bodies("1", "-2.5", "3e3", "4", " 5"))...); kindOf(t, err) != driver.Rejected {
		t.Errorf("a body that begins with a space: %v", err)
	}
	if err := errors.Join(send(t, p, bodies("6 \n"))...); err != nil {
		t.Error(err)
	}
	if len(f.requests) != 2 || len(f.requests[0]) != 4 {
		t.Fatalf("%+v", f.requests)
	}
	all := slices.Concat(f.requests...)
	for i, want := range []struct {
		metric int
		value  float64
	}{{0, 1}, {1, -2.5}, {2, 3000}, {0, 4}, {2, 6}} {
		got := all[i]
		if got.MetricName != fmt.Sprintf("%s.me.%d", topic, want.metric) || got.MetricValue != want.value || got.TTLInSeconds != 90 || got.Unit != "°C" ||
			got.CollectionTime < before || got.CollectionTime > time.Now().Add(time.Minute).UnixMilli() {
			t.Errorf("point %d: %+v", i, got)
		}
	}
	if all[0].CollectionTime == all[3].CollectionTime {
		t.Error("two points of one metric have one time: the second takes the first one's place")
	}
}

// TestSizes sends how long bodies are.
func TestSizes(t *testing.T) {
	f := newFake(t)
	p, _ := producer(t, f.url, map[string]any{"value": "size"})
	if err := errors.Join(send(t, p, bodies("", "text", "\xff\x00"))...); err != nil {
		t.Fatal(err)
	}
	for i, want := range []float64{0, 4, 2} {
		if got := f.requests[0][i].MetricValue; got != want {
			t.Errorf("%v, want %v", got, want)
		}
	}
}

// TestWhatMakesNoPoint is refused by itself, and the rest of the batch is sent.
func TestWhatMakesNoPoint(t *testing.T) {
	f := newFake(t)
	p, _ := producer(t, f.url, nil)
	b := bodies("text", "", "NaN", "Infinity", "0x10", "1_000", "1e400", "1 2", `"1"`, "true", "null", "[1]", "01", "1"+strings.Repeat("0", 100), "7")
	b = append(b, driver.Message{Body: []byte("1"), Headers: []driver.Header{{Name: "a"}}})
	for i, err := range send(t, p, b) {
		want := driver.Rejected
		switch i {
		case len(b) - 1:
			want = driver.Unsupported
		case len(b) - 2:
			want = ""
		default:
			if !strings.Contains(fmt.Sprint(err), `option "value"`) {
				t.Errorf("%q: %v", b[i].Body, err)
			}
		}
		if kindOf(t, err) != want {
			t.Errorf("%q: kind %q: %v", b[i].Body, kindOf(t, err), err)
		}
	}
	if len(f.requests) != 1 || len(f.requests[0]) != 1 {
		t.Errorf("%+v", f.requests)
	}
}

// TestTooLarge refuses a batch that the server would never answer.
func TestTooLarge(t *testing.T) {
	f := newFake(t)
	p, _ := producer(t, f.url, nil)
	for i, err := range send(t, p, numbers(10_000)) {
		if kindOf(t, err) != driver.Rejected || !strings.Contains(err.Error(), "too large") || !strings.Contains(err.Error(), "1048576") ||
			!strings.Contains(err.Error(), `option "maxRequest"`) {
			t.Fatalf("message %d: %v", i, err)
		}
	}
	if len(f.requests) != 0 {
		t.Errorf("%d requests were sent", len(f.requests))
	}
	if err := errors.Join(send(t, p, numbers(5000))...); err != nil {
		t.Error(err)
	}
}

// TestAnswers has every answer that is not 200: none is a success, and nothing is sent again.
func TestAnswers(t *testing.T) {
	for status, want := range map[int]driver.Kind{
		201: driver.Rejected, 202: driver.Timeout, 204: driver.Rejected, 207: driver.Rejected, 400: driver.Rejected, 401: driver.Denied, 403: driver.Denied,
		413: driver.Rejected, 415: driver.Rejected, 429: driver.Throttled, 500: driver.Rejected, 503: driver.Throttled,
	} {
		f := newFake(t)
		f.ingest = func(w http.ResponseWriter, _ []sentPoint) bool {
			if status == http.StatusNoContent {
				w.WriteHeader(status)
			} else {
				refuse(w, status, `{"metricName":"","message":"the server says"}`)
			}
			return true
		}
		p, _ := producer(t, f.url, nil)
		for i, err := range send(t, p, numbers(2)) {
			if kindOf(t, err) != want || status != http.StatusNoContent && !strings.Contains(fmt.Sprint(err), "the server says") || !strings.Contains(fmt.Sprint(err), strconv.Itoa(status)) {
				t.Errorf("%d, message %d: kind %q: %v", status, i, kindOf(t, err), err)
			}
			if status == http.StatusAccepted && !strings.Contains(fmt.Sprint(err), "may be stored") {
				t.Errorf("202: %v", err)
			}
		}
		if len(f.requests) != 1 {
			t.Errorf("%d: %d requests: nothing is tried again", status, len(f.requests))
		}
	}
}

// TestPartly has an answer that names some of the points: those are rejected, the others confirmed. Where it names what nobody sent, all of them fail.
func TestPartly(t *testing.T) {
	f := newFake(t)
	stranger := false
	f.ingest = func(w http.ResponseWriter, points []sentPoint) bool {
		entries := []string{fmt.Sprintf(`{"metricName":%q,"timestamp":%d,"source":"collectionTime","message":"Out of bounds"}`, points[1].MetricName, points[1].CollectionTime)}
		if stranger {
			entries = append(entries, `{"metricName":"another","timestamp":1,"source":"metricName","message":"may not be empty"}`)
		}
		refuse(w, http.StatusMultiStatus, entries...)
		return true
	}
	p, _ := producer(t, f.url, nil)
	errs := send(t, p, append(bodies("text"), numbers(3)...)) // which makes the places in the request others than in the batch
	for i, want := range []string{"not the text of a number", "", "207 Multi-Status: collectionTime: Out of bounds", ""} {
		if want == "" && errs[i] != nil || want != "" && (kindOf(t, errs[i]) != driver.Rejected || !strings.Contains(errs[i].Error(), want)) {
			t.Errorf("message %d: %v, want %q", i, errs[i], want)
		}
	}
	f.set(func() { stranger = true })
	for i, err := range send(t, p, numbers(3)) {
		if kindOf(t, err) != driver.Rejected {
			t.Errorf("message %d of a batch of which nobody knows what became: %v", i, err)
		}
	}
}

// TestNothingTakesTheOthersPlace sends at once, by several: as many points are stored as were confirmed.
func TestNothingTakesTheOthersPlace(t *testing.T) {
	p, topic := producer(t, serverURL(), map[string]any{"metrics": 20, "producerName": strconv.FormatInt(time.Now().UnixNano(), 36)})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 5 {
				if err := errors.Join(send(t, p, numbers(50))...); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	audit := audited(t, p)
	if audit != (driver.Audit{Confirmed: 2000}) {
		t.Errorf("%s: %+v", topic, audit)
	}
}

func TestOptions(t *testing.T) {
	f := newFake(t)
	c, a, err := open(t, f.url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range []struct {
		topic, option string
		value         any
	}{{"", "topic", nil}, {"a\nb", "topic", nil}, {"\xff", "topic", nil}, {"x", "producerName", "a\tb"}, {"x", "unit", "\x00"}, {"x", "ttl", "175200h"}} {
		given := map[string]any{}
		if of.value != nil {
			given[of.option] = of.value
		}
		values, err := a.Resolve(driver.OnProducer, given)
		if err != nil {
			t.Fatal(err)
		}
		if p, err := c.NewProducer(t.Context(), driver.ProducerConfig{Topic: of.topic, Options: values}); kindOf(t, err) != driver.Rejected || !strings.Contains(fmt.Sprint(err), strconv.Quote(of.option)) {
			t.Errorf("%+v: %v, %v", of, p, err)
		}
	}
	for option, value := range map[string]any{"metrics": 0, "ttl": "1500ms", "value": "number"} {
		if _, err := a.Resolve(driver.OnProducer, map[string]any{option: value}); err == nil || !strings.Contains(err.Error(), strconv.Quote(option)) {
			t.Errorf("%s: %v: %v", option, value, err)
		}
	}
}
