package mongodb

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"go.mongodb.org/mongo-driver/v2/event"
)

// kind is the kind of a server.
type kind uint8

const (
	standalone kind = iota
	replicaSet
	sharded
)

// cluster is the servers' description of themselves.
type cluster struct {
	kind    kind
	set     string // the replica set's name
	members int    // of the replica set, that have data and are not hidden; at least 1
}

// changeStreams reports whether the server has them.
func (t cluster) changeStreams() bool { return t.kind != standalone }

func (t cluster) String() string {
	switch t.kind {
	case replicaSet:
		return fmt.Sprintf("replica set %s of %d with data", t.set, t.members)
	case sharded:
		return "sharded"
	}
	return "standalone, which has no change streams, so consumers poll"
}

// monitor keeps the last result of the client's monitoring.
type monitor struct {
	mu     sync.Mutex
	last   cluster
	hosts  int // that the URL names
	failed map[string]error
	give   context.CancelCauseFunc // gives up connecting
}

// events subscribes to the client's monitoring.
func (m *monitor) events() *event.ServerMonitor {
	return &event.ServerMonitor{
		ServerDescriptionChanged: func(e *event.ServerDescriptionChangedEvent) { m.hear(&e.NewDescription) },
		ServerHeartbeatFailed:    func(e *event.ServerHeartbeatFailedEvent) { m.fail(e.ConnectionID, e.Failure) },
	}
}

func (m *monitor) hear(s *event.ServerDescription) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch s.Kind {
	case "Standalone":
		m.last = cluster{members: 1}
	case "Mongos":
		m.last = cluster{kind: sharded, members: 1}
	case "RSPrimary", "RSSecondary", "RSMember":
		m.last = cluster{kind: replicaSet, set: s.SetName, members: max(1, len(s.Hosts)+len(s.Passives))}
	}
}

// fail gives up connecting when no server is left that may answer. The client would wait for its
// timeout.
func (m *monitor) fail(connection string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.give == nil || err == nil {
		return
	}
	if errors.Is(err, context.Canceled) {
		return // the client gave that one up itself, and asks again
	}
	host, _, _ := strings.Cut(connection, "[") // which number of connection to it this is follows
	m.failed[host] = err
	if len(m.failed) < m.hosts {
		return
	}
	m.give(&awayError{err})
}

// connecting returns a context that ends, with a cause, when no server answers, and a function that
// ends the watch.
func (m *monitor) connecting(ctx context.Context, hosts int) (connecting context.Context, settled func()) {
	connecting, give := context.WithCancelCause(ctx)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.hosts, m.failed, m.give = hosts, map[string]error{}, give
	return connecting, func() {
		m.mu.Lock()
		m.give = nil
		m.mu.Unlock()
		give(nil)
	}
}

func (m *monitor) cluster() cluster {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last
}
