package coordinator

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
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

// Config says what a coordinator coordinates.
type Config struct {
	Run       string // the name of the test; "" takes that of the first process
	Name      string // that of the test if nobody says another one
	Token     string // which the processes must have; "" if they need none
	Processes int
	Timeout   time.Duration // how long a process is waited for
	Dir       string        // gets a folder for each process
	Tell      func(text string)
	// Unpack writes a result that a process has sent into a folder, and reports what is wrong with it.
	Unpack func(packed *os.File, size int64, folder string, of Hello) error
}

// Server is the coordinator of a test. It is safe for concurrent use.
type Server struct {
	Config

	mu      sync.Mutex
	changed chan struct{} // closed, and made anew, when something has
	last    time.Time     // when something changed
	members []*member     // by their indices; nil if they have not come
	begun   bool          // without those that have not come
}

// member is a process that has joined.
type member struct {
	Hello
	points      map[string]int64
	connections int
	seen        time.Time // when its last connection ended
	digest      string    // of the results that it has sent
	folder      string    // where they are; "" before
}

// New makes a coordinator.
func New(c Config) *Server {
	return &Server{Config: c, changed: make(chan struct{}), last: time.Now(), members: make([]*member, c.Processes)}
}

// change says that something has changed. The lock is held.
func (s *Server) change() {
	close(s.changed)
	s.changed, s.last = make(chan struct{}), time.Now()
}

// refusal is an error that a process hears of, and that would be the same however often it asked.
type refusal struct {
	code int
	text string
}

func (r *refusal) Error() string { return r.text }

func refuse(code int, format string, args ...any) error {
	return &refusal{code, fmt.Sprintf(format, args...)}
}

// mostRequest bounds the body of all requests but uploads, and MostUpload these, in bytes.
const (
	mostRequest = 1 << 20
	MostUpload  = 4 << 30
)

// ServeHTTP answers the processes.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.Token != "" && subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), []byte("Bearer "+s.Token)) != 1 {
		http.Error(w, "the token is missing or another: give all processes and the coordinator one BROKER_COORDINATOR_TOKEN", http.StatusUnauthorized)
		return
	}
	var reply any
	var err error
	switch path := r.URL.Path; {
	case path == "/v1/clock":
		reply = driver.Now()
	case path == "/v1/join":
		reply, err = with(r, s.join)
	case path == "/v1/reach":
		reply, err = with(r, s.reach)
	case path == "/v1/await":
		reply, err = with(r, func(q *arrival) (answer, error) { return s.await(r.Context(), q) })
	case path == "/v1/present":
		err = s.present(r)
	case strings.HasPrefix(path, "/v1/results/") && r.Method == http.MethodPut:
		err = s.receive(r, strings.TrimPrefix(path, "/v1/results/"))
	default:
		err = refuse(http.StatusNotFound, "this is k6 x broker coordinator, which has nothing at %s", path)
	}
	if err != nil {
		code := http.StatusInternalServerError
		if known := (*refusal)(nil); errors.As(err, &known) {
			code = known.code
			s.Tell(fmt.Sprintf("refused %s: %s", r.URL.Path, err))
		}
		http.Error(w, err.Error(), code)
		return
	}
	_ = json.NewEncoder(w).Encode(reply) // if the process is gone, nobody needs it
}

// with answers what is in the body.
func with[Q, A any](r *http.Request, do func(*Q) (A, error)) (reply A, err error) {
	var q Q
	if err := json.NewDecoder(io.LimitReader(r.Body, mostRequest)).Decode(&q); err != nil {
		return reply, refuse(http.StatusBadRequest, "not understood: %v", err)
	}
	return do(&q)
}

// join takes a process in.
func (s *Server) join(h *Hello) (Welcome, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of(h.Instance) == nil {
		if err := s.check(h); err != nil {
			return Welcome{}, err
		}
		s.Run = cmp.Or(s.Run, h.Run, s.Name)
		s.members[h.Index] = &member{Hello: *h, points: map[string]int64{}, seen: time.Now()}
		s.Tell(fmt.Sprintf("%s joined, %d of %d", s.called(h.Index), s.Processes-len(s.absent()), s.Processes))
		s.change()
	}
	return Welcome{s.Run, s.of(h.Instance).Index, s.Processes}, nil
}

// check reports why a process cannot be one of the test, and gives it an index if it has none.
func (s *Server) check(h *Hello) error {
	if s.begun {
		return refuse(http.StatusConflict, "the other processes have begun without this one: it came later than --timeout %v", s.Timeout)
	}
	if s.Run != "" && h.Run != "" && h.Run != s.Run {
		return refuse(http.StatusConflict, "BROKER_RUN is %q, and this coordinator is for the test %q: each test has a coordinator of its own", h.Run, s.Run)
	}
	if h.Index < 0 {
		if h.Index = slices.Index(s.members, nil); h.Index < 0 {
			return refuse(http.StatusConflict, "the test has %d processes (--processes), and all have joined", s.Processes)
		}
	}
	if n := strings.Count(h.Sequence, ","); h.Index >= s.Processes || n > 0 && n != s.Processes {
		return refuse(http.StatusConflict, "--execution-segment-sequence %s is of %d processes, and the test has %d (--processes)", h.Sequence, n, s.Processes)
	}
	if of := s.members[h.Index]; of != nil {
		return refuse(http.StatusConflict, "%s is there already: give each process an execution segment of its own", s.called(h.Index))
	}
	for _, of := range s.members {
		switch {
		case of == nil:
		case of.Sequence != h.Sequence:
			return refuse(http.StatusConflict, "%s has --execution-segment-sequence %q, and this process %q: give all the same", s.called(of.Index), of.Sequence, h.Sequence)
		case of.Load != h.Load:
			return refuse(http.StatusConflict, "%s runs another load: %s; give all processes one script and one environment", s.called(of.Index), differ(of.Load, h.Load))
		}
	}
	return nil
}

// differ names the first line of two texts that is not the same.
func differ(a, b string) string {
	as, bs := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range max(len(as), len(bs)) {
		x, y := "nothing", "nothing"
		if i < len(as) {
			x = as[i]
		}
		if i < len(bs) {
			y = bs[i]
		}
		if x != y {
			return fmt.Sprintf("%s there, and %s here", x, y)
		}
	}
	return ""
}

// of finds a process. The lock is held.
func (s *Server) of(instance uint32) *member {
	for _, m := range s.members {
		if m != nil && m.Instance == instance {
			return m
		}
	}
	return nil
}

// called names a process. The lock is held.
func (s *Server) called(index int) string {
	text := fmt.Sprintf("process %d", index+1)
	if m := s.members[index]; m != nil && m.Name != "" {
		text += " (" + m.Name + ")"
	}
	return text
}

// absent lists the processes that have not joined. The lock is held.
func (s *Server) absent() (all []string) {
	for i, m := range s.members {
		if m == nil {
			all = append(all, s.called(i))
		}
	}
	return all
}

var errStranger = &refusal{http.StatusConflict, "this process has not joined: the coordinator was started again since"}

func (s *Server) reach(a *arrival) (struct{}, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.of(a.Instance)
	if m == nil {
		return struct{}{}, errStranger
	}
	if _, there := m.points[a.Point]; !there {
		m.points[a.Point] = driver.Now() + int64(lead)
		s.change()
	}
	return struct{}{}, nil
}

// await answers when the processes have come to the point, or no more can, or after a while.
func (s *Server) await(ctx context.Context, q *arrival) (answer, error) {
	end := time.After(poll)
	for {
		s.mu.Lock()
		if s.of(q.Instance) == nil {
			s.mu.Unlock()
			return answer{}, errStranger
		}
		a, waits := s.look(q)
		changed, look := s.changed, time.After(min(s.Timeout, away)/10+time.Millisecond)
		s.mu.Unlock()
		if a.Reached = !waits; a.Reached {
			return a, nil
		}
		select {
		case <-changed:
		case <-look:
		case <-end:
			return a, nil
		case <-ctx.Done():
			return a, ctx.Err()
		}
	}
}

// look reports whether all have come to a point that are there, or that may still come. The lock is held.
func (s *Server) look(q *arrival) (a answer, waits bool) {
	for i, m := range s.members {
		switch {
		case m == nil && !s.begun && time.Since(s.last) < s.Timeout:
			waits = true
		case m == nil:
			s.begun = true
			a.Missing = append(a.Missing, fmt.Sprintf("%s did not come within %v", s.called(i), s.Timeout))
		case m.points[q.Point] != 0:
			a.At = max(a.At, m.points[q.Point])
		case !m.ended():
			waits = true
		}
	}
	return a, waits
}

// ended reports whether the process has sent its results, or has had no connection for a while.
func (m *member) ended() bool {
	return m.folder != "" || m.connections == 0 && time.Since(m.seen) > away
}

// present holds the request of a process as long as that is there.
func (s *Server) present(r *http.Request) error {
	_, _ = io.Copy(io.Discard, io.LimitReader(r.Body, mostRequest)) // a server notices only then that the client is gone
	instance, _ := strconv.ParseUint(r.URL.Query().Get("instance"), 10, 32)
	s.mu.Lock()
	m := s.of(uint32(instance)) //gosec:disable G115 -- it was read as one
	if m != nil {
		m.connections++
	}
	s.mu.Unlock()
	if m == nil {
		return errStranger
	}
	<-r.Context().Done()
	s.mu.Lock()
	defer s.mu.Unlock()
	m.connections--
	m.seen = time.Now()
	return nil
}

// receive takes the results of a process: all of them, or none. The same may come again.
func (s *Server) receive(r *http.Request, id string) error {
	instance, _ := strconv.ParseUint(id, 10, 32)
	s.mu.Lock()
	m := s.of(uint32(instance)) //gosec:disable G115 -- it was read as one
	s.mu.Unlock()
	digest := r.Header.Get("X-Sha256")
	switch {
	case m == nil:
		return errStranger
	case r.ContentLength <= 0 || r.ContentLength > MostUpload:
		return refuse(http.StatusRequestEntityTooLarge, "results of %d bytes: there may be up to %d", r.ContentLength, int64(MostUpload))
	case digest == "":
		return refuse(http.StatusBadRequest, "there is no X-Sha256")
	}
	if err := os.MkdirAll(s.Dir, 0o777); err != nil { //gosec:disable G301 -- as the user's umask has it
		return err
	}
	packed, err := os.CreateTemp(s.Dir, ".upload-*")
	if err != nil {
		return err
	}
	defer func() { _ = errors.Join(packed.Close(), os.Remove(packed.Name())) }()
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(packed, sum), r.Body)
	if err != nil || n != r.ContentLength {
		return refuse(http.StatusBadRequest, "%d of %d bytes came: %v", n, r.ContentLength, err)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != digest {
		return refuse(http.StatusBadRequest, "the SHA-256 of what came is %s, and not %s", got, digest)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case m.digest == digest:
		return nil
	case m.digest != "":
		return refuse(http.StatusConflict, "other results of %s are here", s.called(m.Index))
	}
	folder := filepath.Join(s.Dir, fmt.Sprint(m.Index+1))
	if err := s.Unpack(packed, n, folder, m.Hello); err != nil {
		_ = os.RemoveAll(folder)
		return refuse(http.StatusUnprocessableEntity, "%v", err)
	}
	m.digest, m.folder = digest, folder
	s.Tell(s.called(m.Index) + " sent its results")
	s.change()
	return nil
}

// Wait returns when the results of all processes are here, or no more can come: those that are missing have ended, or did not come within
// the timeout.
func (s *Server) Wait(ctx context.Context) error {
	for {
		s.mu.Lock()
		missing, running := s.Processes, 0
		for _, m := range s.members {
			switch {
			case m == nil:
			case m.folder != "":
				missing--
			case !m.ended():
				running++
			}
		}
		late, changed := time.Since(s.last) >= s.Timeout, s.changed
		s.mu.Unlock()
		if missing == 0 || running == 0 && late {
			return nil
		}
		select {
		case <-changed:
		case <-time.After(min(s.Timeout, away)/10 + time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Results lists the folders of the processes whose results are here, and names the others.
func (s *Server) Results() (folders, missing []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, m := range s.members {
		if m != nil && m.folder != "" {
			folders = append(folders, m.folder)
		} else {
			missing = append(missing, s.called(i))
		}
	}
	return folders, missing
}
