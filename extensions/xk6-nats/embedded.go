package nats

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// embeddedServer is a nats-server with JetStream in this process, one for all connections.
type embeddedServer struct {
	*server.Server
	store string // folder of the streams, removed with the server
	refs  int
}

var embedded struct {
	sync.Mutex
	running *embeddedServer
}

// startEmbedded starts the process's server, or takes part in the one that runs.
func startEmbedded() (*embeddedServer, error) {
	embedded.Lock()
	defer embedded.Unlock()
	if embedded.running == nil {
		s, err := newEmbedded()
		if err != nil {
			return nil, fmt.Errorf("the embedded NATS server does not start: %w", err)
		}
		embedded.running = s
	}
	embedded.running.refs++
	return embedded.running, nil
}

func newEmbedded() (*embeddedServer, error) {
	store, err := os.MkdirTemp("", "xk6-nats-embedded-")
	if err != nil {
		return nil, err
	}
	s, err := server.NewServer(&server.Options{
		ServerName: "embedded",
		Host:       "127.0.0.1",
		Port:       server.RANDOM_PORT,
		JetStream:  true,
		StoreDir:   store,
		NoLog:      true,
		NoSigs:     true, // signals are k6's business
	})
	if err == nil {
		s.Start()
		const timeout = 10 * time.Second
		if !s.ReadyForConnections(timeout) {
			err = errors.New("it accepts no connections")
		} else if !s.JetStreamEnabled() {
			err = errors.New("JetStream is not available")
		}
		if err != nil {
			s.Shutdown()
			s.WaitForShutdown()
		}
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(store))
	}
	return &embeddedServer{Server: s, store: store}, nil
}

func (s *embeddedServer) address() string { return s.Addr().String() }

// clientsTimeout bounds the wait for the server to see that its last connections are closed.
const clientsTimeout = 2 * time.Second

// awaitClients returns when the server has read all that its clients sent. A stream that is created
// during the shutdown would never end.
func (s *embeddedServer) awaitClients() {
	for end := time.Now().Add(clientsTimeout); s.NumClients() > 0 && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
}

// stop ends one use of the server. The last one stops the server and removes its files. Nil is
// allowed.
func (s *embeddedServer) stop() {
	if s == nil {
		return
	}
	embedded.Lock()
	defer embedded.Unlock()
	if s.refs--; s.refs > 0 {
		return
	}
	s.awaitClients()
	s.Shutdown()
	s.WaitForShutdown()
	_ = os.RemoveAll(s.store)
	embedded.running = nil
}
