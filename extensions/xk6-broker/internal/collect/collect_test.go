package collect_test

import (
	"bytes"
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
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/collect"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// process is one of three of the test nightly.
func process(n int) collect.Process {
	ends := []string{"0", "1/3", "2/3", "1"}
	return collect.Process{
		Run: "nightly", Name: fmt.Sprint("p", n), Instance: uint32(n), Processes: 3, Segment: ends[n-1] + ":" + ends[n], Sequence: strings.Join(ends, ","),
	}
}

// packed writes the results of a process.
func packed(p collect.Process) func(io.Writer) error {
	r := &result.Result{Version: result.Version, Name: p.Name, Run: 7, Instance: p.Instance, Started: time.Unix(1_700_000_000, 0), Topics: []result.Topic{}, Recording: &recording.Recording{}}
	l := &account.Ledger{Version: account.LedgerVersion, Run: 7, Instance: p.Instance}
	return func(w io.Writer) error { return report.Pack(w, r, l) }
}

// bench is a collector with its server, which can be taken away and come back.
type bench struct {
	*collect.Collector
	t    *testing.T
	dir  string
	url  string
	mu   sync.Mutex
	said []string
}

func begin(t *testing.T, dir, token string, processes int) *bench {
	t.Helper()
	b := &bench{t: t, dir: dir}
	var err error
	if b.Collector, err = collect.Open(dir, collect.Test{Token: token, Processes: processes}, b.tell); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.end)
	server := httptest.NewServer(b)
	t.Cleanup(server.Close)
	b.url = server.URL
	return b
}

// end is that of the collector's process, however it comes about.
func (b *bench) end() {
	b.t.Helper()
	if err := b.Close(); err != nil {
		b.t.Error(err)
	}
}

func (b *bench) tell(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.said = append(b.said, text)
}

func (b *bench) sender(token string) *collect.Sender {
	b.t.Helper()
	s, err := collect.NewSender(b.url, token)
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

// send sends the results of a process, which are refused for good if at all.
func (b *bench) send(p collect.Process, pack func(io.Writer) error) error {
	b.t.Helper()
	return b.sender("").Send(b.t.Context(), p, pack, func(err error) { b.t.Errorf("it is tried again: %v", err) })
}

// told tells how often a text was.
func (b *bench) told(text string) (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, line := range b.said {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

// here lists what is in the folder.
func (b *bench) here() (names []string) {
	b.t.Helper()
	entries, err := os.ReadDir(b.dir)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != ".lock" {
			names = append(names, e.Name())
		}
	}
	return names
}

// Processes of an earlier test may still try to send their results when the collector of the next one begins.
func TestACollectorOfOneTestOnly(t *testing.T) {
	c, err := collect.Open(t.TempDir(), collect.Test{Run: "nightly-8"}, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(c)
	defer server.Close()
	s, err := collect.NewSender(server.URL, "")
	if err != nil {
		t.Fatal(err)
	}
	left, here := process(1), process(2)
	left.Run, here.Run = "nightly-7", "nightly-8"
	for _, err := range []error{s.Here(t.Context(), left), s.Send(t.Context(), left, packed(left), nil)} {
		if err == nil || !strings.Contains(err.Error(), `it is of the test "nightly-7", and this collector is for "nightly-8"`) {
			t.Error(err)
		}
	}
	if err := s.Send(t.Context(), here, packed(here), nil); err != nil {
		t.Error(err)
	}
}

func TestWhatProcessesSendIsInFolders(t *testing.T) {
	b := begin(t, filepath.Join(t.TempDir(), "made", "on demand"), "", 0)
	for n := 1; n <= 3; n++ {
		p := process(n)
		if err := b.sender("").Here(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		for range 2 { // the answer was lost
			if err := b.send(p, packed(p)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := b.Wait(t.Context(), time.Hour); err != nil {
		t.Fatal(err)
	}
	if got := b.here(); !slices.Equal(got, []string{"p1", "p2", "p3"}) || len(b.Missing()) != 0 || b.Processes() != 3 {
		t.Errorf("%q, missing %q", got, b.Missing())
	}
	local := report.Folder{Dir: t.TempDir(), Name: "p2"}
	part, err := report.ReadPart(b.Folders()[1])
	if err != nil {
		t.Fatal(err)
	}
	if err := local.Write(part.Result, part.Ledger); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{report.SummaryFile, report.PageFile, report.LedgerFile} {
		want, err := os.ReadFile(filepath.Join(local.Path(), name))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join(b.dir, "p2", name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is otherwise than a process writes it: %v", name, err)
		}
	}
}

func TestWhatIsRefusedSaysWhy(t *testing.T) {
	b := begin(t, t.TempDir(), "", 0)
	first := process(1)
	if err := b.send(first, packed(first)); err != nil {
		t.Fatal(err)
	}
	if err := b.sender("").Here(t.Context(), process(2)); err != nil {
		t.Fatal(err)
	}
	with := func(change func(*collect.Process)) collect.Process {
		p := process(3)
		change(&p)
		return p
	}
	zipped := func(name string) func(io.Writer) error {
		return func(w io.Writer) error {
			var text bytes.Buffer
			if err := packed(process(3))(&text); err != nil {
				return err
			}
			_, err := w.Write(bytes.ReplaceAll(text.Bytes(), []byte("report.html"), []byte(name)))
			return err
		}
	}
	for says, c := range map[string]struct {
		p    collect.Process
		pack func(io.Writer) error
	}{
		"another result of the name p1 is here, of process 00000001: give each process a BROKER_REPORT_NAME": {with(func(p *collect.Process) { p.Name = "p1" }), packed(process(3))},
		`it is of the test "weekly", and p1, which is here, is of "nightly"`:                                 {with(func(p *collect.Process) { p.Run = "weekly" }), packed(process(3))},
		"the test has 4 processes by what p3 says, and 3":                                                    {with(func(p *collect.Process) { p.Processes = 4 }), packed(process(3))},
		"are here by the name p1":              {with(func(p *collect.Process) { p.Instance = 1 }), packed(process(1))},
		"or of another process":                {process(3), packed(process(2))},
		"is no name for a folder":              {with(func(p *collect.Process) { p.Name = "../p3" }), packed(process(3))},
		`"../prt.html" is no file of a result`: {process(3), zipped("../prt.html")},
		`"repXrt.exec" is no file of a result`: {process(3), zipped("repXrt.exec")},
		"not a packed result":                  {process(3), func(w io.Writer) error { _, err := w.Write([]byte("hello")); return err }},
		"no result: open summary.json":         {process(3), zipped("report.hgrm")},
	} {
		if says == "no result: open summary.json" {
			c.pack = func(w io.Writer) error {
				var text bytes.Buffer
				if err := packed(process(3))(&text); err != nil {
					return err
				}
				_, err := w.Write(bytes.ReplaceAll(text.Bytes(), []byte("summary.json"), []byte("summary.hlog")))
				return err
			}
		}
		refused := (*collect.RefusedError)(nil)
		if err := b.send(c.p, c.pack); !errors.As(err, &refused) || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
	for n := 2; n <= 3; n++ {
		if err := b.send(process(n), packed(process(n))); err != nil {
			t.Fatal(err)
		}
	}
	fourth := collect.Process{Run: "nightly", Name: "p4", Instance: 4}
	if err := b.send(fourth, packed(fourth)); err == nil || !strings.Contains(err.Error(), "the results of all 3 processes are here: p1, p2, p3") {
		t.Errorf("a fourth: %v", err)
	}
	if err := b.sender("").Here(t.Context(), fourth); err == nil {
		t.Error("a fourth goes on")
	}
	if got := b.here(); !slices.Equal(got, []string{"p1", "p2", "p3"}) {
		t.Errorf("what was refused is here: %q", got)
	}
}

func TestATokenIsAsked(t *testing.T) {
	b := begin(t, t.TempDir(), "secret", 0)
	p := process(1)
	for _, token := range []string{"", "another"} {
		if err := b.sender(token).Here(t.Context(), p); err == nil || !strings.Contains(err.Error(), "BROKER_COLLECT_TOKEN") || strings.Contains(err.Error(), "secret") {
			t.Errorf("with %q: %v", token, err)
		}
		if err := b.sender(token).Send(t.Context(), p, packed(p), nil); err == nil {
			t.Errorf("with %q it was received", token)
		}
		if b.told("give the processes and the collector one BROKER_COLLECT_TOKEN") != 2 || b.told("secret") > 0 { // of one that goes on, and of its results
			t.Errorf("with %q: %q", token, b.said)
		}
	}
	if err := b.sender("secret").Send(t.Context(), p, packed(p), nil); err != nil {
		t.Error(err)
	}
}

// What does not arrive as it was sent is not received, and is asked for again.
func TestTruncatedUploads(t *testing.T) {
	b := begin(t, t.TempDir(), "", 0)
	p := process(1)
	var text bytes.Buffer
	if err := packed(p)(&text); err != nil {
		t.Fatal(err)
	}
	attempts, tells := 0, 0
	err := b.sender("").Send(t.Context(), p, func(w io.Writer) error {
		whole := text.Bytes()
		switch attempts++; attempts {
		case 2: // after that for the checksum
			whole = whole[:len(whole)/2]
		case 3:
			whole = append(bytes.Clone(whole[:len(whole)-1]), 'x')
		}
		_, err := w.Write(whole)
		return err
	}, func(error) { tells++ })
	if err != nil || attempts != 4 || tells != 1 {
		t.Errorf("%v after %d attempts, told %d times", err, attempts, tells)
	}
	if got := b.here(); !slices.Equal(got, []string{"p1"}) {
		t.Errorf("%q", got)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, b.url+"/v1/processes/p2/results?run=nightly&instance=2&processes=3", strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if said, _ := io.ReadAll(response.Body); response.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(string(said), "Content-Digest") {
		t.Errorf("%s: %s", response.Status, said)
	}
}

// While results come in, however slowly, their process is there.
func TestAnUploadIsNoSilence(t *testing.T) {
	if testing.Short() {
		t.Skip("part of make test-full")
	}
	const silence = 2 * time.Second
	b := begin(t, t.TempDir(), "", 1)
	p := process(1)
	p.Processes = 1
	var text bytes.Buffer
	if err := packed(p)(&text); err != nil {
		t.Fatal(err)
	}
	packs := 0
	var sending sync.WaitGroup
	sending.Go(func() {
		err := b.sender("").Send(t.Context(), p, func(w io.Writer) error {
			packs++
			left := text.Bytes()
			for begun := time.Now(); packs > 1 && len(left) > 1 && time.Since(begun) < silence+silence/2; left = left[1:] { // the first is for the checksum
				if _, err := w.Write(left[:1]); err != nil {
					return err
				}
				time.Sleep(50 * time.Millisecond)
			}
			_, err := w.Write(left)
			return err
		}, nil)
		if err != nil {
			t.Error(err)
		}
	})
	if err := b.Wait(t.Context(), silence); err != nil {
		t.Error(err)
	}
	sending.Wait()
}

// A collector that dies leaves what has come; the one after it goes on with that, and with those who try again.
func TestACollectorThatDiesIsFollowed(t *testing.T) {
	dir := t.TempDir()
	first := begin(t, dir, "", 0)
	if err := first.send(process(1), packed(process(1))); err != nil {
		t.Fatal(err)
	}
	for _, left := range []string{".draft-1", ".draft-2"} { // as it is killed
		if err := os.WriteFile(filepath.Join(dir, left), []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var at http.Handler
	var mu sync.Mutex
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if at == nil {
			http.Error(w, "nobody is there", http.StatusBadGateway)
			return
		}
		at.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	sender, err := collect.NewSender(front.URL, "")
	if err != nil {
		t.Fatal(err)
	}
	waits := make(chan error, 1)
	sent := make(chan error, 1)
	go func() {
		sent <- sender.Send(t.Context(), process(2), packed(process(2)), func(err error) { waits <- err })
	}()
	if err := <-waits; !strings.Contains(err.Error(), "nobody is there") {
		t.Error(err)
	}
	first.end()
	second := begin(t, dir, "", 0)
	mu.Lock()
	at = second
	mu.Unlock()
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	if err := second.send(process(1), packed(process(1))); err != nil { // whose answer was lost
		t.Error(err)
	}
	if got := second.here(); !slices.Equal(got, []string{"p1", "p2"}) {
		t.Errorf("%q", got)
	}
	if missing := second.Missing(); !slices.Equal(missing, []string{"the one of execution segment 2/3:1, of which nothing was heard"}) {
		t.Errorf("missing %q", missing)
	}
	if err := second.sender("").Here(t.Context(), process(3)); err != nil {
		t.Fatal(err)
	}
	if missing := second.Missing(); !slices.Equal(missing, []string{"p3 (execution segment 2/3:1)"}) {
		t.Errorf("missing %q", missing)
	}
	if err := second.Wait(t.Context(), time.Millisecond); !errors.Is(err, collect.ErrTimeout) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := second.Wait(ctx, time.Hour); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "mine"), 0o700); err != nil {
		t.Fatal(err)
	}
	second.end()
	if _, err := collect.Open(dir, collect.Test{}, func(string) {}); err == nil || !strings.Contains(err.Error(), "nothing that was collected") {
		t.Error(err)
	}
}

// A collector that dies between a receipt and its answer leaves a process that tries again: whoever follows it stays until that one has its answer, or for
// as long as it can take, and nobody stays who has answered all.
func TestAFollowerStaysForWhoWasNotAnswered(t *testing.T) {
	dir := t.TempDir()
	first := begin(t, dir, "", 3)
	if err := first.send(process(1), packed(process(1))); err != nil {
		t.Fatal(err)
	}
	first.Stay(t.Context())
	first.end()
	synctest.Test(t, func(t *testing.T) {
		c, err := collect.Open(dir, collect.Test{Processes: 3}, func(string) {})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		c.Stay(t.Context())
		if stayed := time.Since(began); stayed < 15*time.Second || stayed > 20*time.Second {
			t.Errorf("it stayed for %v, and a process tries again every 10 s, for 5 s", stayed)
		}
		began = time.Now()
		if c.Stay(t.Context()); time.Since(began) != 0 {
			t.Error("it stays again, long after it was opened")
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	second := begin(t, dir, "", 3)
	gone := make(chan struct{})
	go func() { defer close(gone); second.Stay(t.Context()) }()
	if err := second.send(process(1), packed(process(1))); err != nil {
		t.Error(err)
	}
	<-gone
	second.end()
	third := begin(t, dir, "", 3)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	third.Stay(ctx)
}

// While no collector answers, results are sent until the time is up.
func TestSendingIsBounded(t *testing.T) {
	closed := httptest.NewServer(nil)
	closed.Close()
	s, err := collect.NewSender(closed.URL, "")
	if err != nil {
		t.Fatal(err)
	}
	ctx, giveUp := context.WithCancel(t.Context())
	var first error
	err = s.Send(ctx, process(1), packed(process(1)), func(err error) {
		first = err
		giveUp()
	})
	if err == nil || !strings.Contains(err.Error(), "given up") || !errors.Is(first, syscall.ECONNREFUSED) {
		t.Errorf("%v, after %v", err, first)
	}
	for _, address := range []string{"", "host:6464", "ftp://host", "http://", "http://user:secret@host", "http://host?x=1"} {
		if _, err := collect.NewSender(address, ""); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", address, err)
		}
	}
}
