package coordinator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// saved unpacks results as they are.
func saved(packed *os.File, size int64, folder string, _ Hello) error {
	text, err := io.ReadAll(io.NewSectionReader(packed, 0, size))
	if err != nil {
		return err
	}
	if string(text) == "nonsense" {
		return errors.New("it is no result")
	}
	return errors.Join(os.MkdirAll(folder, 0o700), os.WriteFile(filepath.Join(folder, "result"), text, 0o600))
}

// serve starts a coordinator of so many processes.
func serve(t *testing.T, processes int, timeout time.Duration) (*Server, string) {
	t.Helper()
	s := New(Config{Run: "nightly", Token: "hush", Processes: processes, Timeout: timeout, Dir: t.TempDir(), Tell: func(string) {}, Unpack: saved})
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return s, server.URL
}

// hello is a process without an execution segment.
func hello(instance uint32) Hello { return Hello{Instance: instance, Index: -1} }

func join(t *testing.T, address string, h Hello) *Client {
	t.Helper()
	c, err := Join(t.Context(), address, "hush", h, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// sends packs a text as a result.
func sends(text string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	}
}

func TestServer_ProcessesWithoutSegments_NumberedAndCalled(t *testing.T) {
	_, address := serve(t, 3, time.Minute)
	for i := range 3 {
		if c := join(t, address, hello(uint32(i+10))); c.Welcome != (Welcome{"nightly", i, 3}) { //gosec:disable G115 -- small
			t.Errorf("%d: %+v", i, c.Welcome)
		}
	}
	if again := join(t, address, hello(11)); again.Index != 1 {
		t.Errorf("a process that joins again is %d", again.Index)
	}
}

func TestClient_AllReachAPoint_OneTime(t *testing.T) {
	_, address := serve(t, 3, time.Minute)
	var all sync.WaitGroup
	var at [3]int64
	first := driver.Now()
	for i := range at {
		c := join(t, address, hello(uint32(i+1))) //gosec:disable G115 -- small
		all.Go(func() {
			c.Reach("start")
			var err error
			if at[i], err = c.Await(t.Context(), "start"); err != nil {
				t.Error(err)
			}
			at[i] += c.clocks[0].Offset // by the coordinator's clock
		})
	}
	all.Wait()
	if at[0] != at[1] || at[1] != at[2] || at[0] < first+int64(lead) {
		t.Error(at)
	}
}

func TestClient_ProcessNeverComes_Named(t *testing.T) {
	s, address := serve(t, 2, 20*time.Millisecond)
	c := join(t, address, hello(1))
	c.Reach("start")
	if _, err := c.Await(t.Context(), "start"); err == nil || len(c.Missing()) != 1 || !strings.HasPrefix(c.Missing()[0], "process 2") {
		t.Errorf("%v, %q", err, c.Missing())
	}
	c.Reach("over")
	if _, err := c.Await(t.Context(), "over"); err != nil {
		t.Errorf("it is named again: %v", err)
	}
	late := hello(2)
	if _, err := s.join(&late); err == nil {
		t.Error("a process joined after the others had begun without it")
	}
	if err := c.Upload(t.Context(), sends("one"), nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Wait(t.Context()); err != nil {
		t.Error(err)
	}
	if here, missing := s.Results(); len(here) != 1 || !slices.Equal(missing, []string{"process 2"}) {
		t.Errorf("%q, missing %q", here, missing)
	}
}

// A killed process has no connection: the others outlast it, and the coordinator ends without its results.
func TestServer_ProcessKilled_WaitedForNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{Processes: 2, Timeout: time.Minute, Tell: func(string) {}})
		killed, kill := context.WithCancel(t.Context())
		lasting, end := context.WithCancel(t.Context())
		defer end()
		for i, ctx := range []context.Context{lasting, killed} {
			h := hello(uint32(i + 1)) //gosec:disable G115 -- small
			if _, err := s.join(&h); err != nil {
				t.Fatal(err)
			}
			go s.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodPost, fmt.Sprint("/v1/present?instance=", i+1), nil))
		}
		time.Sleep(time.Hour) // of the bubble's clock: a test may last
		if _, err := s.reach(&arrival{1, "over"}); err != nil {
			t.Fatal(err)
		}
		q := &arrival{1, "over"}
		if a, err := s.await(t.Context(), q); err != nil || a.Reached {
			t.Errorf("%+v while the other goes on, %v", a, err)
		}
		kill()
		if a, err := s.await(t.Context(), q); err != nil || !a.Reached || len(a.Missing) != 0 {
			t.Errorf("%+v, %v", a, err)
		}
		end()
		if err := s.Wait(t.Context()); err != nil {
			t.Error(err)
		}
		if here, missing := s.Results(); len(here) != 0 || len(missing) != 2 {
			t.Errorf("%q, missing %q", here, missing)
		}
	})
}

func TestJoin_BadProcess_Refused(t *testing.T) {
	segment := func(instance uint32, index int, sequence, load string) Hello {
		return Hello{Run: "nightly", Instance: instance, Index: index, Sequence: sequence, Load: load}
	}
	const sequence = "0,1/3,2/3,1"
	for name, c := range map[string]struct {
		token string
		hello Hello
		names string // what the refusal has to name
	}{
		"another token":     {"shout", segment(2, 1, sequence, "load"), "BROKER_COORDINATOR_TOKEN"},
		"no token":          {"", segment(2, 1, sequence, "load"), "BROKER_COORDINATOR_TOKEN"},
		"another run":       {"hush", Hello{Run: "weekly", Instance: 2, Index: 1, Sequence: sequence, Load: "load"}, "weekly"},
		"one index twice":   {"hush", segment(2, 0, sequence, "load"), "process 1"},
		"another load":      {"hush", segment(2, 1, sequence, "other"), "load there, and other here"},
		"another sequence":  {"hush", segment(2, 1, "0,1/2,3/4,1", "load"), "0,1/2,3/4,1"},
		"without a segment": {"hush", hello(2), sequence},
		"more segments":     {"hush", segment(2, 1, "0,1/4,1/2,3/4,1", "load"), "--processes"},
		"an index too many": {"hush", segment(2, 3, sequence, "load"), "--processes"},
		"one more process":  {"hush", segment(9, -1, sequence, "load"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, address := serve(t, 3, time.Minute)
			join(t, address, segment(1, 0, sequence, "load"))
			if name == "one more process" {
				join(t, address, segment(2, 1, sequence, "load"))
				join(t, address, segment(3, 2, sequence, "load"))
			}
			refused := (*RefusedError)(nil)
			if _, err := Join(t.Context(), address, c.token, c.hello, nil); !errors.As(err, &refused) || !strings.Contains(err.Error(), c.names) || strings.Contains(err.Error(), "hush") {
				t.Error(err)
			}
		})
	}
}

func TestJoin_NoCoordinator_TriesUntilTheContextEnds(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close() // nobody has its port now
	ctx, cancel := context.WithCancel(t.Context())
	warned := 0
	_, err := Join(ctx, server.URL, "", hello(1), func(error) { warned++; cancel() })
	if err == nil || warned != 1 {
		t.Errorf("%v after %d warnings", err, warned)
	}
	for _, address := range []string{"", "somewhere", "ftp://127.0.0.1:1", "http://"} {
		if _, err := Join(t.Context(), address, "", hello(1), nil); err == nil {
			t.Errorf("%q is an address", address)
		}
	}
}

func TestServer_BadRequest_Refused(t *testing.T) {
	_, address := serve(t, 2, time.Minute)
	for _, c := range []struct {
		path, body string
		code       int
	}{
		{"/", "", http.StatusNotFound},
		{"/v1/results/1", "", http.StatusNotFound}, // it is no PUT
		{"/v1/join", "{", http.StatusBadRequest},
		{"/v1/join", `{"name":"` + strings.Repeat("x", mostRequest) + `"}`, http.StatusBadRequest},
		{"/v1/reach", `{"instance":7,"point":"start"}`, http.StatusConflict},
		{"/v1/await", `{"instance":7,"point":"start"}`, http.StatusConflict},
		{"/v1/present?instance=7", "", http.StatusConflict},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address+c.path, strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer hush")
		if response, err := http.DefaultClient.Do(r); err != nil {
			t.Error(err)
		} else if _ = response.Body.Close(); response.StatusCode != c.code {
			t.Errorf("%s: %d, want %d", c.path, response.StatusCode, c.code)
		}
	}
}

func TestUpload_SameAgain_OnlyOnce(t *testing.T) {
	s, address := serve(t, 1, time.Minute)
	c := join(t, address, hello(1))
	for range 2 {
		if err := c.Upload(t.Context(), sends("result"), nil); err != nil {
			t.Fatal(err)
		}
	}
	refused := (*RefusedError)(nil)
	if err := c.Upload(t.Context(), sends("another"), nil); !errors.As(err, &refused) {
		t.Error(err)
	}
	if err := s.Wait(t.Context()); err != nil {
		t.Error(err)
	}
	here, missing := s.Results()
	if len(here) != 1 || len(missing) != 0 {
		t.Fatalf("%q, missing %q", here, missing)
	}
	if text, err := os.ReadFile(filepath.Join(here[0], "result")); err != nil || string(text) != "result" {
		t.Errorf("%q, %v", text, err)
	}
}

// What is refused leaves nothing, and the results may still come.
func TestUpload_Damaged_Refused(t *testing.T) {
	for name, c := range map[string]struct {
		body   io.Reader
		length int64
		code   int
	}{
		"too long":  {strings.NewReader("data"), MostUpload + 1, http.StatusRequestEntityTooLarge},
		"truncated": {io.MultiReader(strings.NewReader("da"), iotest.ErrReader(io.ErrUnexpectedEOF)), -1, http.StatusBadRequest},
		"no result": {strings.NewReader("nonsense"), 8, http.StatusUnprocessableEntity},
	} {
		t.Run(name, func(t *testing.T) {
			s, address := serve(t, 1, time.Minute)
			process := join(t, address, hello(1))
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPut, "/v1/results/1", c.body)
			r.ContentLength = c.length
			r.Header.Set("Authorization", "Bearer hush")
			w := httptest.NewRecorder()
			if s.ServeHTTP(w, r); w.Code != c.code {
				t.Errorf("%d: %s", w.Code, w.Body)
			}
			if here, _ := s.Results(); len(here) != 0 {
				t.Errorf("there is %q", here)
			}
			if left, err := os.ReadDir(s.Dir); err != nil || len(left) != 0 {
				t.Errorf("there stays %v, %v", left, err)
			}
			if err := process.Upload(t.Context(), sends("data"), nil); err != nil {
				t.Error(err)
			}
		})
	}
	s, address := serve(t, 1, time.Minute)
	refused := (*RefusedError)(nil)
	if err := join(t, address, hello(1)).Upload(t.Context(), sends("nonsense"), nil); !errors.As(err, &refused) {
		t.Error(err)
	}
	if here, _ := s.Results(); len(here) != 0 {
		t.Errorf("there is %q", here)
	}
}

// An upload that fails on its way is repeated.
func TestUpload_ServerUnavailable_Repeated(t *testing.T) {
	s := New(Config{Processes: 1, Timeout: time.Minute, Dir: t.TempDir(), Tell: func(string) {}, Unpack: saved})
	tries := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			if tries++; tries == 1 {
				http.Error(w, "out of order", http.StatusServiceUnavailable)
				return
			}
		}
		s.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	c := join(t, server.URL, hello(1))
	if err := c.Upload(t.Context(), sends("result"), func(error) {}); err != nil || tries != 2 {
		t.Errorf("%v after %d", err, tries)
	}
}

// The clocks of two processes, one of them a second off, differ by that second give or take their bounds.
func TestClient_ClockOffByASecond_FoundWithinTheBounds(t *testing.T) {
	s, address := serve(t, 2, time.Minute)
	shifted := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/clock" { // by a process whose clock is a second behind, the coordinator's is that much ahead
			_, _ = fmt.Fprint(w, driver.Now()+int64(time.Second))
			return
		}
		s.ServeHTTP(w, r)
	}))
	t.Cleanup(shifted.Close)
	one, two := join(t, address, hello(1)), join(t, shifted.URL, hello(2))
	one.End(t.Context())
	two.End(t.Context())
	a, b := one.Clock(), two.Clock()
	if off := b.Offset - a.Offset - int64(time.Second); max(off, -off) > a.Bound+b.Bound || a.Bound+b.Bound > int64(time.Second)/2 {
		t.Errorf("%+v and %+v", a, b)
	}
	one.Reach("start")
	two.Reach("start")
	by, err := one.Await(t.Context(), "start")
	its, err2 := two.Await(t.Context(), "start")
	if off := by - its - int64(time.Second); err != nil || err2 != nil || max(off, -off) > a.Bound+b.Bound {
		t.Errorf("a point is at %d and %d: %v, %v", by, its, err, err2)
	}
}
