package redis_test

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// server is a redis-server of a test's own, on loopback, which the test may stop, kill and start again.
type server struct {
	program string
	at      string // host and port of a server that is no test's own
	port    int
	dir     string
	args    []string
	cmd     *exec.Cmd
	// client is for the test's own questions.
	client *redis.Client
}

// plain is the server that BROKER_URL_REDIS_STREAMS names, for tests that change nothing but their own topics.
func plain(t testing.TB) *server {
	t.Helper()
	url := os.Getenv("BROKER_URL_REDIS_STREAMS")
	if url == "" {
		t.Skip("no BROKER_URL_REDIS_STREAMS")
	}
	_, host, _ := strings.Cut(url, "://")
	s := &server{at: host}
	s.client = redis.NewClient(&redis.Options{Addr: s.addr(), MaxRetries: -1})
	t.Cleanup(func() { _ = s.client.Close() })
	return s
}

// start starts redis-server, keeping nothing, with further arguments, and stops it when the test ends.
func start(t testing.TB, args ...string) *server {
	t.Helper()
	return startWith(t, append([]string{"--save", "", "--repl-diskless-sync-delay", "0"}, args...)...)
}

// startWith starts redis-server with arguments before those that keep it in its place.
func startWith(t testing.TB, args ...string) *server {
	t.Helper()
	s := &server{program: program(t), port: freePort(t), dir: t.TempDir(), args: args}
	s.client = redis.NewClient(&redis.Options{Addr: s.addr(), MaxRetries: -1})
	t.Cleanup(func() { _ = s.client.Close() })
	s.run(t)
	t.Cleanup(func() { s.kill(t) })
	return s
}

// program is the redis-server that BROKER_REDIS_SERVER names, else the one on PATH. Where there is none the test is skipped, or fails if
// BROKER_REQUIRE asks for redis.
func program(t testing.TB) string {
	t.Helper()
	path, err := exec.LookPath(cmp.Or(os.Getenv("BROKER_REDIS_SERVER"), "redis-server"))
	if err != nil {
		required := strings.Split(os.Getenv("BROKER_REQUIRE"), ",")
		if slices.ContainsFunc(required, func(s string) bool { return s == "all" || strings.HasPrefix(s, "redis") }) {
			t.Fatalf("BROKER_REQUIRE asks for redis, and BROKER_REDIS_SERVER names no redis-server: %v", err)
		}
		t.Skipf("BROKER_REDIS_SERVER names no redis-server: %v", err)
	}
	return path
}

// freePort is one below 50000, because a cluster's nodes also use the one 10000 above.
func freePort(t testing.TB) int {
	t.Helper()
	for range 100 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		port := l.Addr().(*net.TCPAddr).Port
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if port < 50000 {
			return port
		}
	}
	t.Fatal("no free port below 50000")
	return 0
}

func (s *server) addr() string { return cmp.Or(s.at, "127.0.0.1:"+strconv.Itoa(s.port)) }

func (s *server) url(scheme string) string { return scheme + "://" + s.addr() }

// run starts the process and waits until it answers, be it that it wants a password.
func (s *server) run(t testing.TB) {
	t.Helper()
	port := strconv.Itoa(s.port)
	s.cmd = exec.Command(s.program, append(slices.Clone(s.args),
		"--bind", "127.0.0.1", "--port", port, "--dir", s.dir, "--daemonize", "no")...)
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	await(t, "redis-server answers", s.answers)
}

func (s *server) answers() bool {
	c, err := net.DialTimeout("tcp", s.addr(), time.Second)
	if err != nil {
		return false
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(time.Second))
	if _, err := c.Write([]byte("PING\r\n")); err != nil {
		return false
	}
	b := make([]byte, 64)
	n, err := c.Read(b)
	// A TLS port closes the connection, or answers with an alert.
	return err != nil || string(b[:n]) == "+PONG\r\n" || strings.HasPrefix(string(b[:n]), "-NOAUTH") || b[0] == 0x15
}

func (s *server) kill(t testing.TB) {
	t.Helper()
	if s.cmd == nil {
		return
	}
	s.signal(t, syscall.SIGKILL)
	_ = s.cmd.Wait()
	s.cmd = nil
}

func (s *server) signal(t testing.TB, sig os.Signal) {
	t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
}

// replica starts a copy of a server and waits until it follows.
func replica(t testing.TB, of *server, args ...string) *server {
	t.Helper()
	r := start(t, append([]string{"--replicaof", "127.0.0.1 " + strconv.Itoa(of.port)}, args...)...)
	of.awaitReplica(t)
	return r
}

// awaitReplica waits until a replica confirms a write: being connected is not enough for that.
func (s *server) awaitReplica(t testing.TB) {
	t.Helper()
	ctx := context.Background()
	conn := s.client.Conn()
	defer func() { _ = conn.Close() }()
	await(t, "the replica follows", func() bool {
		for i := range 100 { // in a cluster one of these keys is this node's
			if key := fmt.Sprint("awaited", i); conn.Set(ctx, key, "", time.Minute).Err() == nil {
				return conn.Wait(ctx, 1, 100*time.Millisecond).Val() == 1
			}
		}
		return false
	})
}

// resetCalls has the server count from 0.
func (s *server) resetCalls(t testing.TB) {
	t.Helper()
	if err := s.client.Do(t.Context(), "CONFIG", "RESETSTAT").Err(); err != nil {
		t.Fatal(err)
	}
}

// calls is how often the server has been given a command.
func (s *server) calls(t testing.TB, command string) (n int) {
	t.Helper()
	for line := range strings.Lines(s.client.Info(t.Context(), "commandstats").Val()) {
		if rest, ok := strings.CutPrefix(line, "cmdstat_"+command+":calls="); ok {
			if _, err := fmt.Sscanf(rest, "%d", &n); err != nil {
				t.Fatal(err)
			}
		}
	}
	return n
}
