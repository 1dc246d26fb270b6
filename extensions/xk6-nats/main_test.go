package nats

import (
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"go.uber.org/goleak"
)

// asServer makes the test's binary a nats-server, so that a test can kill one.
const asServer = "XK6_NATS_TEST_SERVER"

func TestMain(m *testing.M) {
	if os.Getenv(asServer) != "" {
		serve()
		return
	}
	// A server in the test's own process that is shut down while it makes a stream, which it knows only when that is made, leaves the stream's store open.
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/nats-io/nats-server/v2/server.(*fileStore).flushStreamStateLoop"),
		goleak.IgnoreAnyFunction("github.com/nats-io/nats-server/v2/server/ats.Register.func1"))
}

func serve() {
	options, err := server.ConfigureOptions(flag.NewFlagSet("nats-server", flag.ExitOnError), os.Args[1:], func() {}, func() {}, func() {})
	if err == nil {
		var s *server.Server
		if s, err = server.NewServer(options); err == nil {
			err = server.Run(s)
			s.WaitForShutdown()
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// process is a nats-server with JetStream in a process of its own.
type process struct {
	args    []string
	address string
	cmd     *exec.Cmd
}

func startProcess(t *testing.T) *process {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	_ = l.Close()
	p := &process{
		args:    []string{"-a", "127.0.0.1", "-p", strconv.Itoa(port), "-js", "-sd", t.TempDir(), "-l", os.DevNull},
		address: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)),
	}
	p.start(t)
	t.Cleanup(p.kill)
	return p
}

// start returns when the server accepts connections.
func (p *process) start(t *testing.T) {
	t.Helper()
	p.cmd = exec.Command(os.Args[0], p.args...)
	p.cmd.Env = append(os.Environ(), asServer+"=1")
	p.cmd.Stderr = os.Stderr
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		c, err := net.Dial("tcp", p.address)
		if err == nil {
			_ = c.Close()
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// kill is SIGKILL.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// startServer starts a server in this process, with JetStream.
func startServer(t *testing.T, options server.Options) *server.Server {
	t.Helper()
	options.Host, options.Port, options.NoLog, options.NoSigs = "127.0.0.1", server.RANDOM_PORT, true, true
	options.JetStream, options.StoreDir = true, t.TempDir()
	s, err := server.NewServer(&options)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(patience) {
		t.Fatal("the server is not ready")
	}
	return s
}

// silentServer accepts connections and says nothing. The channel is closed at the first one.
func silentServer(t *testing.T) (address string, accepted <-chan struct{}) {
	t.Helper()
	first := make(chan struct{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for once := sync.OnceFunc(func() { close(first) }); ; once() {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = c.Close() })
		}
	}()
	return l.Addr().String(), first
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
