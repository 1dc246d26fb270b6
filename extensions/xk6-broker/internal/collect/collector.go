package collect

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
)

// MostUpload bounds the results of one process as they are sent, in bytes.
const MostUpload = 4 << 30

// receipt is the file that tells of a folder whose it is, and that all of it is there.
const receipt = ".received.json"

// Collector receives the results of a test's processes, each into a folder of its own. It is safe for concurrent use.
type Collector struct {
	dir    string
	run    string // of the test; "" where the first process says it
	token  string
	tell   func(text string) // what happens
	held   *flock.Flock
	opened time.Time

	mu        sync.Mutex
	processes int                 // of the test; 0 while it is not known
	heard     map[uint32]Process  // by instance, of whom nothing was received yet
	received  map[string]received // by name
	untold    map[uint32]bool     // instances of which a collector before this one had all, and may have died before it said so
	refusals  []string            // that were told of
	news      chan struct{}       // has one element after somebody was heard of, or came
}

// received is what is in a folder.
type received struct {
	Process
	Digest string `json:"digest"`
}

// Test is what is collected.
type Test struct {
	Run       string // its name; "" where the first process is to say it
	Token     string // that its processes must have; "" where they need none
	Processes int    // how many there are; 0 where they are to say it
}

// Open begins to collect into a folder, and goes on with what it has.
func Open(dir string, of Test, tell func(text string)) (*Collector, error) {
	c := &Collector{
		dir: dir, run: of.Run, token: of.Token, tell: tell, processes: of.Processes, heard: map[uint32]Process{}, received: map[string]received{},
		untold: map[uint32]bool{}, news: make(chan struct{}, 1),
	}
	var err error
	if c.held, err = hold(dir, tell); err != nil {
		return nil, err
	}
	c.opened = time.Now()
	if err := c.resume(); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// resume takes what is there of a collector before this one.
func (c *Collector) resume() error {
	entries, err := os.ReadDir(c.dir)
	if err != nil {
		return fmt.Errorf("collect: %w", err)
	}
	for _, e := range entries {
		path := filepath.Join(c.dir, e.Name())
		if e.Name() == lock || e.Name() == merging {
			continue
		}
		if strings.HasPrefix(e.Name(), draft) { // of a collector that was killed
			if err := os.RemoveAll(path); err != nil {
				return fmt.Errorf("collect: %w", err)
			}
			continue
		}
		text, err := os.ReadFile(filepath.Join(path, receipt)) //gosec:disable G304 -- in the folder that was asked for
		if errors.Is(err, fs.ErrNotExist) || !e.IsDir() {
			return fmt.Errorf("collect: %s is nothing that was collected: choose another folder", path)
		} else if err != nil {
			return fmt.Errorf("collect: %w", err)
		}
		var r received
		if err := json.Unmarshal(text, &r); err != nil {
			return fmt.Errorf("collect: %s: %w", path, err)
		}
		if err := c.fits(r.Process); err != nil {
			return fmt.Errorf("collect: %s: %w", path, err)
		}
		c.take(r)
		c.untold[r.Instance] = true
		c.tell(fmt.Sprintf("%s: received before", r.Process))
	}
	return nil
}

// refusal is an answer with a text.
type refusal struct {
	code int
	text string
}

func (r *refusal) Error() string { return r.text }

func refuse(code int, format string, args ...any) error {
	return &refusal{code, fmt.Sprintf(format, args...)}
}

// ServeHTTP answers processes.
func (c *Collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	err := c.serve(r)
	if err == nil {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	answer := &refusal{http.StatusInternalServerError, err.Error()}
	_ = errors.As(err, &answer)
	c.refused(r, answer)
	http.Error(w, answer.text, answer.code)
}

// mostRefused bounds how many different refusals are told of: processes try again, and anybody may ask.
const mostRefused = 100

// refused tells of a refusal, once.
func (c *Collector) refused(r *http.Request, answer *refusal) {
	text := fmt.Sprintf("refused %s %.200q: %s", r.Method, r.URL.Path, answer.text)
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.refusals) < mostRefused && !slices.Contains(c.refusals, text) {
		c.refusals = append(c.refusals, text)
		c.tell(text)
	}
}

func (c *Collector) serve(r *http.Request) error {
	if c.token != "" && subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), []byte("Bearer "+c.token)) != 1 {
		return refuse(http.StatusUnauthorized, "the token is missing or another: give the processes and the collector one BROKER_COLLECT_TOKEN")
	}
	name, ok := strings.CutPrefix(r.URL.Path, "/v1/processes/")
	results := strings.HasSuffix(name, "/results") && r.Method == http.MethodPut
	if !ok || !results && r.Method != http.MethodPost {
		return refuse(http.StatusNotFound, "this is a collector of k6 x broker collect, and knows nothing of %s %s", r.Method, r.URL.Path)
	}
	name = strings.TrimSuffix(name, "/results")
	if name == "" || name != report.Sanitise(name) {
		return refuse(http.StatusUnprocessableEntity, "%q is no name for a folder: use letters, digits, '.', '_' and '-'", name)
	}
	p, err := processOf(name, r.URL.Query())
	if err != nil {
		return refuse(http.StatusUnprocessableEntity, "%v", err)
	}
	if results {
		return c.receive(p, r)
	}
	return c.hear(p)
}

// hear notes that a process goes on.
func (c *Collector) hear(p Process) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.fits(p); err != nil {
		return err
	}
	if r, ok := c.received[p.Name]; ok && r.Instance != p.Instance {
		return c.taken(r)
	}
	if c.of(p.Instance) == nil {
		if _, known := c.heard[p.Instance]; !known {
			c.tell(fmt.Sprintf("%s: it goes on", p))
		}
		c.heard[p.Instance] = p
	}
	c.learn(p)
	return nil
}

// fits says why a process cannot be one of the test. The lock is held.
func (c *Collector) fits(p Process) error {
	if c.run != "" && p.Run != c.run {
		return refuse(http.StatusConflict, "it is of the test %q, and this collector is for %q: each test has a BROKER_RUN and a collector of its own", p.Run, c.run)
	}
	for _, known := range c.all() {
		if known.Run != p.Run {
			return refuse(http.StatusConflict, "it is of the test %q, and %s, which is here, is of %q: each test has a BROKER_RUN and a collector of its own", p.Run, known.Name, known.Run)
		}
	}
	if p.Processes != 0 && c.processes != 0 && p.Processes != c.processes {
		return refuse(http.StatusConflict, "the test has %d processes by what %s says, and %d by what is known here", p.Processes, p.Name, c.processes)
	}
	if c.of(p.Instance) == nil && c.processes != 0 && len(c.received) >= c.processes {
		return refuse(http.StatusConflict, "the results of all %d processes are here: %s", c.processes, strings.Join(slices.Sorted(maps.Keys(c.received)), ", "))
	}
	return nil
}

// all lists the processes that are known. The lock is held.
func (c *Collector) all() (all []Process) {
	for _, name := range slices.Sorted(maps.Keys(c.received)) {
		all = append(all, c.received[name].Process)
	}
	for _, instance := range slices.Sorted(maps.Keys(c.heard)) {
		all = append(all, c.heard[instance])
	}
	return all
}

// of finds what was received of a process. The lock is held.
func (c *Collector) of(instance uint32) *received {
	for _, r := range c.received {
		if r.Instance == instance {
			return &r
		}
	}
	return nil
}

// taken refuses a name that another process has.
func (c *Collector) taken(by received) error {
	return refuse(http.StatusConflict, "another result of the name %s is here, of process %08x: give each process a BROKER_REPORT_NAME of its own", by.Name, by.Instance)
}

// again tells whether the same was received before, or something else that stands against it. The lock is held.
func (c *Collector) again(r received) (done bool, err error) {
	if err := c.fits(r.Process); err != nil {
		return false, err
	}
	if known, ok := c.received[r.Name]; ok {
		if known.Digest == r.Digest {
			delete(c.untold, r.Instance)
			c.stir()
			return true, nil
		}
		return false, c.taken(known)
	}
	if known := c.of(r.Instance); known != nil {
		return false, refuse(http.StatusConflict, "the results of process %08x are here by the name %s", r.Instance, known.Name)
	}
	return false, nil
}

// receive takes the results of a process: all of them, or none.
func (c *Collector) receive(p Process, r *http.Request) error {
	digest, ok := strings.CutPrefix(r.Header.Get("Content-Digest"), "sha-256=:")
	of := received{p, strings.TrimSuffix(digest, ":")}
	switch {
	case !ok:
		return refuse(http.StatusUnprocessableEntity, "there is no Content-Digest with a sha-256")
	case r.ContentLength < 0:
		return refuse(http.StatusLengthRequired, "there is no Content-Length")
	case r.ContentLength > MostUpload:
		return refuse(http.StatusRequestEntityTooLarge, "%d bytes are more than the %d that a process may send", r.ContentLength, int64(MostUpload))
	}
	c.mu.Lock()
	done, err := c.again(of)
	if err == nil {
		c.learn(p)
	}
	c.mu.Unlock()
	if done || err != nil {
		return err
	}
	folder, err := os.MkdirTemp(c.dir, draft+"*")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()     // what is received has another name by then
	if err := os.Chmod(folder, 0o755); err != nil { //gosec:disable G302 -- anybody may read results
		return err
	}
	if err := c.unpack(of, r.Body, r.ContentLength, folder); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if done, err := c.again(of); done || err != nil { // since it was asked first
		return err
	}
	if err := errors.Join(os.Rename(folder, filepath.Join(c.dir, p.Name)), syncFolder(c.dir)); err != nil {
		return err
	}
	c.take(of)
	which := ""
	if c.processes > 0 {
		which = fmt.Sprintf(" of %d", c.processes)
	}
	c.tell(fmt.Sprintf("%s: received, %d%s", p, len(c.received), which))
	return nil
}

// unpack writes what is sent into a folder, and looks at whether it is a result of the process.
func (c *Collector) unpack(of received, body io.Reader, size int64, folder string) (err error) {
	packed, err := os.CreateTemp(c.dir, draft+"*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, packed.Close(), os.Remove(packed.Name())) }()
	digest := sha256.New()
	n, err := io.Copy(io.MultiWriter(packed, digest, news(c.stir)), io.LimitReader(body, size+1))
	if err != nil || n != size {
		return refuse(http.StatusBadRequest, "of %d bytes came %d: %v", size, n, err)
	}
	if got := base64.StdEncoding.EncodeToString(digest.Sum(nil)); got != of.Digest {
		return refuse(http.StatusBadRequest, "what came is not what was sent: its sha-256 is %s, not %s", got, of.Digest)
	}
	if err := report.Unpack(packed, size, folder); errors.Is(err, report.ErrNotPacked) {
		return refuse(http.StatusUnprocessableEntity, "%v", err)
	} else if err != nil {
		return err
	}
	part, err := report.ReadPart(folder)
	if err != nil {
		return refuse(http.StatusUnprocessableEntity, "%s", strings.ReplaceAll(err.Error(), folder+string(filepath.Separator), ""))
	}
	switch {
	case part.Ledger == nil:
		return refuse(http.StatusUnprocessableEntity, "it has no %s: run its process with BROKER_RUN", report.LedgerFile)
	case part.Ledger.Run != part.Result.Run || part.Ledger.Instance != part.Result.Instance || part.Result.Instance != of.Instance:
		return refuse(http.StatusUnprocessableEntity, "its %s is not that of its %s, or of another process", report.LedgerFile, report.SummaryFile)
	}
	return report.WriteAtomic(filepath.Join(folder, receipt), func(w io.Writer) error { return json.NewEncoder(w).Encode(of) })
}

// syncFolder makes the names in a folder last.
func syncFolder(dir string) error {
	d, err := os.Open(dir) //gosec:disable G304 -- the folder that was asked for
	if err != nil {
		return err
	}
	_ = d.Sync() // not every system knows it
	return d.Close()
}

// take notes that results are here. The lock is held.
func (c *Collector) take(r received) {
	c.received[r.Name] = r
	delete(c.heard, r.Instance)
	c.learn(r.Process)
}

// learn notes how many processes there are by what one says, and that something happened. The lock is held.
func (c *Collector) learn(p Process) {
	if c.processes == 0 {
		c.processes = p.Processes
	}
	c.stir()
}

// news is told of each part of what comes: who sends results is heard of.
type news func()

func (n news) Write(b []byte) (int, error) {
	n()
	return len(b), nil
}

// stir notes that something happened.
func (c *Collector) stir() {
	select {
	case c.news <- struct{}{}:
	default:
	}
}
