package coordinator

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// Config has the settings of a coordinator.
type Config struct {
	Run       string // the name of the test; "" takes the one of the first process
	Name      string // the name of the test if no process has one
	Token     string // of the processes; "" if they need none
	Processes int
	Timeout   time.Duration // the longest wait for a process
	Dir       string        // gets a folder for each process
	Tell      func(text string)
	// Unpack unpacks and checks the results of a process into a folder.
	Unpack func(packed *os.File, size int64, folder string, sender Hello) error
}

// Server is the coordinator of a test. It is safe for concurrent use.
type Server struct {
	Config

	mu      sync.Mutex
	changed chan struct{} // closed and replaced at each change
	last    time.Time     // of the last change
	members []*member     // by their indices; nil if they have not joined
	joined  int           // the number of members
	sent    int           // the number of results
	begun   bool          // without the processes that have not joined
}

// member is a process that has joined.
type member struct {
	Hello

	points      map[string]int64
	connections int
	seen        time.Time         // the end of its last connection
	digest      [sha256.Size]byte // of its results
	folder      string            // of its results; "" before
}

// New makes a coordinator.
func New(c Config) *Server {
	return &Server{Config: c, changed: make(chan struct{}), last: time.Now(), members: make([]*member, c.Processes)}
}

// change reports a change to all that wait. The lock is held.
func (s *Server) change() {
	close(s.changed)
	s.changed, s.last = make(chan struct{}), time.Now()
}

func refuse(code int, format string, args ...any) error {
	return &RefusedError{code, fmt.Sprintf(format, args...)}
}

// conflict refuses a request that the state of the test forbids.
func conflict(format string, args ...any) error { return refuse(http.StatusConflict, format, args...) }

// ServeHTTP answers the processes.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	given, want := r.Header.Get("Authorization"), "Bearer "+s.Token
	if s.Token != "" && subtle.ConstantTimeCompare([]byte(given), []byte(want)) != 1 {
		http.Error(w, "the token is missing or another: "+
			"give all processes and the coordinator one BROKER_COORDINATOR_TOKEN", http.StatusUnauthorized)
		return
	}
	reply, err := s.answer(r)
	if err == nil {
		_ = json.NewEncoder(w).Encode(reply) // without effect if the process has ended
		return
	}
	code := http.StatusInternalServerError
	if refused := (*RefusedError)(nil); errors.As(err, &refused) {
		code = refused.Code
		s.Tell(fmt.Sprintf("refused %s: %s", r.URL.Path, err))
	}
	http.Error(w, err.Error(), code)
}

func (s *Server) answer(r *http.Request) (any, error) {
	switch path := r.URL.Path; {
	case path == "/v1/clock":
		return driver.Now(), nil
	case path == "/v1/join":
		return with(r, s.join)
	case path == "/v1/reach":
		return with(r, s.reach)
	case path == "/v1/await":
		return with(r, func(q *arrival) (answer, error) { return s.await(r.Context(), q) })
	case path == "/v1/present":
		return nil, s.present(r)
	case strings.HasPrefix(path, "/v1/results/") && r.Method == http.MethodPut:
		return nil, s.receive(r, strings.TrimPrefix(path, "/v1/results/"))
	}
	return nil, refuse(http.StatusNotFound, "this is k6 x broker coordinator, which has nothing at %s", r.URL.Path)
}

// with answers the question in the body.
func with[Q, A any](r *http.Request, do func(*Q) (A, error)) (reply A, err error) {
	var q Q
	if err := json.NewDecoder(io.LimitReader(r.Body, mostRequest)).Decode(&q); err != nil {
		return reply, refuse(http.StatusBadRequest, "not understood: %v", err)
	}
	return do(&q)
}

// join adds a process.
func (s *Server) join(h *Hello) (Welcome, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m, _ := s.member(h.Instance); m != nil {
		return Welcome{s.Run, m.Index, s.Processes}, nil
	}
	if err := s.check(h); err != nil {
		return Welcome{}, err
	}
	s.Run = cmp.Or(s.Run, h.Run, s.Name)
	s.members[h.Index] = &member{Hello: *h, points: map[string]int64{}, seen: time.Now()}
	s.joined++
	s.Tell(fmt.Sprintf("%s joined, %d of %d", s.name(h.Index), s.joined, s.Processes))
	s.change()
	return Welcome{s.Run, h.Index, s.Processes}, nil
}

// check refuses a process that does not fit the test. It gives it an index if it has none.
func (s *Server) check(h *Hello) error {
	if s.begun {
		return conflict("the other processes have begun without this one: it came later than --timeout %v", s.Timeout)
	}
	if s.Run != "" && h.Run != "" && h.Run != s.Run {
		return conflict("BROKER_RUN is %q, and this coordinator is for the test %q: "+
			"each test has a coordinator of its own", h.Run, s.Run)
	}
	if h.Index < 0 {
		if h.Index = slices.Index(s.members, nil); h.Index < 0 {
			return conflict("the test has %d processes (--processes), and all have joined", s.Processes)
		}
	}
	if n := strings.Count(h.Sequence, ","); h.Index >= s.Processes || n > 0 && n != s.Processes {
		return conflict("--execution-segment-sequence %s has %d processes, and the test has %d (--processes)",
			h.Sequence, n, s.Processes)
	}
	if s.members[h.Index] != nil {
		return conflict("%s has joined already: give each process an execution segment of its own", s.name(h.Index))
	}
	for _, m := range s.members {
		switch {
		case m == nil:
		case m.Sequence != h.Sequence:
			return conflict("%s has --execution-segment-sequence %q, and this process %q: give all the same",
				s.name(m.Index), m.Sequence, h.Sequence)
		case m.Load != h.Load:
			return conflict("%s runs another load: %s; give all processes one script and one environment",
				s.name(m.Index), difference(m.Load, h.Load))
		}
	}
	return nil
}

// difference returns the first lines in which two texts differ.
func difference(a, b string) string {
	as, bs := strings.Split(a, "\n"), strings.Split(b, "\n")
	i := 0
	for i < min(len(as), len(bs))-1 && as[i] == bs[i] {
		i++
	}
	return fmt.Sprintf("%s there, and %s here", as[i], bs[i])
}

// member returns a process that has joined. The lock is held.
func (s *Server) member(instance uint32) (*member, error) {
	for _, m := range s.members {
		if m != nil && m.Instance == instance {
			return m, nil
		}
	}
	return nil, conflict("this process has not joined: the coordinator was started again since")
}

// name names a process. The lock is held.
func (s *Server) name(index int) string {
	text := fmt.Sprintf("process %d", index+1)
	if m := s.members[index]; m != nil && m.Name != "" {
		text += " (" + m.Name + ")"
	}
	return text
}

func (s *Server) reach(a *arrival) (struct{}, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, err := s.member(a.Instance)
	if err != nil {
		return struct{}{}, err
	}
	if m.points[a.Point] == 0 {
		m.points[a.Point] = driver.Now() + int64(lead)
		s.change()
	}
	return struct{}{}, nil
}

// await answers when all processes are at the point or have ended, or after poll.
func (s *Server) await(ctx context.Context, q *arrival) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, poll)
	defer cancel()
	for {
		s.mu.Lock()
		_, err := s.member(q.Instance)
		a := s.look(q.Point)
		changed := s.changed
		s.mu.Unlock()
		if err != nil || a.Reached || s.sleep(ctx, changed) != nil {
			return a, err
		}
	}
}

// sleep returns at the next change, or after a while, because processes end without one. It returns
// ctx's error.
func (s *Server) sleep(ctx context.Context, changed <-chan struct{}) error {
	select {
	case <-changed:
	case <-time.After(min(s.Timeout, away)/10 + time.Millisecond):
	case <-ctx.Done():
	}
	return ctx.Err()
}

// look reports whether all processes are at a point that can still come. The lock is held.
func (s *Server) look(point string) answer {
	a := answer{Reached: true}
	for i, m := range s.members {
		switch {
		case m == nil && !s.begun && time.Since(s.last) < s.Timeout:
			a.Reached = false
		case m == nil:
			s.begun = true
			a.Missing = append(a.Missing, fmt.Sprintf("%s did not come within %v", s.name(i), s.Timeout))
		case m.points[point] != 0:
			a.At = max(a.At, m.points[point])
		case !m.ended():
			a.Reached = false
		}
	}
	return a
}

// ended reports whether the process has sent its results, or has no connection for a while.
func (m *member) ended() bool {
	return m.folder != "" || m.connections == 0 && time.Since(m.seen) > away
}

// find returns the process with an instance in a request.
func (s *Server) find(instance string) (*member, error) {
	n, _ := strconv.ParseUint(instance, 10, 32)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.member(uint32(n)) //gosec:disable G115 -- 32 bits
}

// present holds the request of a process while it runs.
func (s *Server) present(r *http.Request) error {
	// A server notices the end of the client only after it has read the body.
	_, _ = io.Copy(io.Discard, io.LimitReader(r.Body, mostRequest))
	m, err := s.find(r.URL.Query().Get("instance"))
	if err != nil {
		return err
	}
	s.mu.Lock()
	m.connections++
	s.mu.Unlock()
	<-r.Context().Done()
	s.mu.Lock()
	defer s.mu.Unlock()
	m.connections--
	m.seen = time.Now()
	return nil
}

// receive stores the results of a process, all or none. The same results can come again.
func (s *Server) receive(r *http.Request, instance string) error {
	m, err := s.find(instance)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(s.Dir, 0o777); err != nil { //gosec:disable G301 -- the user's umask applies
		return err
	}
	packed, err := os.CreateTemp(s.Dir, ".upload-*")
	if err != nil {
		return err
	}
	defer func() { _ = errors.Join(packed.Close(), os.Remove(packed.Name())) }()
	sum := sha256.New()
	size, err := io.Copy(io.MultiWriter(packed, sum), io.LimitReader(r.Body, MostUpload+1))
	switch {
	case err != nil:
		return refuse(http.StatusBadRequest, "the results end after %d bytes: %v", size, err)
	case size > MostUpload || r.ContentLength > MostUpload:
		return refuse(http.StatusRequestEntityTooLarge, "the results have more than %d bytes", int64(MostUpload))
	}
	return s.accept(m, packed, size, [sha256.Size]byte(sum.Sum(nil)))
}

// accept unpacks the results of a process.
func (s *Server) accept(m *member, packed *os.File, size int64, digest [sha256.Size]byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case m.folder == "":
	case m.digest == digest:
		return nil
	default:
		return conflict("other results of %s are here", s.name(m.Index))
	}
	folder := filepath.Join(s.Dir, fmt.Sprint(m.Index+1))
	if err := s.Unpack(packed, size, folder, m.Hello); err != nil {
		_ = os.RemoveAll(folder)
		return refuse(http.StatusUnprocessableEntity, "%v", err)
	}
	m.digest, m.folder = digest, folder
	s.sent++
	s.Tell(s.name(m.Index) + " sent its results")
	s.change()
	return nil
}

// Wait returns when the results of all processes are here, or no more can come: the missing ones
// have ended, or did not join within the timeout.
func (s *Server) Wait(ctx context.Context) error {
	for {
		s.mu.Lock()
		running := slices.ContainsFunc(s.members, func(m *member) bool { return m != nil && !m.ended() })
		done := s.sent == s.Processes || !running && time.Since(s.last) >= s.Timeout
		changed := s.changed
		s.mu.Unlock()
		if done {
			return nil
		}
		if err := s.sleep(ctx, changed); err != nil {
			return err
		}
	}
}

// Results returns the folders of the processes that sent results, and names the others.
func (s *Server) Results() (folders, missing []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, m := range s.members {
		if m != nil && m.folder != "" {
			folders = append(folders, m.folder)
		} else {
			missing = append(missing, s.name(i))
		}
	}
	return folders, missing
}
