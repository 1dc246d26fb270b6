package js

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"go.k6.io/k6/v2/lib"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/clock"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/executors"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/load"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/peers"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// meeting is how the processes of a test come to talk with each other: at the broker of the first topic that the script names, of those that
// can be received from.
type meeting struct {
	wait time.Duration // for the others, at each point; 0: they do not meet
	name string        // of this process, for people

	index  int // of this process, from 0
	begun  sync.Once
	ended  context.Context
	end    context.CancelFunc
	opened chan struct{} // closed when what follows is set for good
	peers  *peers.Peers  // nil where there are none
	unmet  string        // why, though there were to be some

	mu    sync.Mutex
	at    *load.Endpoint // of the broker; nil as long as the script has named none
	topic string
}

const (
	envPeers         = "BROKER_PEERS"
	defaultPeersWait = time.Minute
)

// newMeeting reads what the environment says.
func newMeeting(lookup func(string) (string, bool)) (*meeting, error) {
	m := &meeting{wait: defaultPeersWait, opened: make(chan struct{})}
	m.ended, m.end = context.WithCancel(context.Background())
	if m.name, _ = lookup("BROKER_REPORT_NAME"); m.name == "" {
		m.name, _ = os.Hostname() // it is only to be read
	}
	switch text, _ := lookup(envPeers); text {
	case "":
	case "off":
		m.wait = 0
	default:
		var ok bool
		if m.wait, ok = driver.ParseDuration(text); !ok || m.wait <= 0 {
			return nil, fmt.Errorf(`%s: %q is neither a duration such as "1m", more than 0, nor "off"`, envPeers, text)
		}
	}
	return m, nil
}

// names notes that the script names a topic, in its init context.
func (m *meeting) names(c *connection, topic string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.at == nil && c.address.Driver.Features.Start != 0 {
		at := c.endpoint("peers")
		m.at, m.topic = &at, topic
	}
}

// through is the network of the connection to the others.
func (m *meeting) through(n *driver.Network) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.at != nil {
		m.at.Network = n
	}
}

// meet has the process talk with the others from now on, if there are any. Only the first call does anything.
func (r *run) meet(es *lib.ExecutionState) {
	m := r.meeting
	m.begun.Do(func() {
		count, index := placeOf(es)
		m.index = index
		if count < 2 || !r.shared || m.wait == 0 {
			close(m.opened)
			return
		}
		executors.Meet(es, r.siblings)
		go func() {
			defer close(m.opened)
			var err error
			if m.peers, err = r.openPeers(count); err != nil && m.ended.Err() == nil {
				m.unmet = err.Error()
				r.logger.Warnf("the processes of the test cannot talk with each other: %v", err)
			}
		}()
		go r.announceScenarios(es)
	})
}

var (
	errNowhere  = errors.New("the script names no topic, in its init context, of a broker that can be received from")
	errEmbedded = errors.New("an embedded broker is in one process alone")
)

func (r *run) openPeers(count int) (*peers.Peers, error) {
	m := r.meeting
	m.mu.Lock()
	at, topic := m.at, m.topic
	m.mu.Unlock()
	if at == nil {
		return nil, errNowhere
	}
	conn, err := r.Connect(m.ended, *at)
	if err != nil {
		return nil, err
	}
	if informer, ok := conn.(driver.Informer); ok && informer.Info().Embedded {
		return nil, errEmbedded
	}
	ctx, cancel := context.WithTimeout(m.ended, load.OpenTimeout)
	defer cancel()
	return peers.Open(ctx, peers.Config{
		Run: r.ID, Instance: r.Instance(), Index: m.index, Count: count, Name: m.name, Wait: m.wait, Conn: conn, Address: at.Address, Topic: topic,
	})
}

// beginPoll is how often k6 is looked at, which tells nobody that a test's scenarios begin, or are over.
const beginPoll = 10 * time.Millisecond

// announceScenarios tells the others when the scenarios of this process begin, and when they are over, whichever executors those have.
func (r *run) announceScenarios(es *lib.ExecutionState) {
	m := r.meeting
	for es.GetCurrentExecutionStatus() < lib.ExecutionStatusRunning {
		if clock.Timer(m.ended, driver.Now()+int64(beginPoll)) != nil {
			return
		}
	}
	s := r.siblings(m.ended)
	if s == nil {
		return
	}
	s.Reach(executors.Begun, executors.BegunLead)
	for es.GetCurrentExecutionStatus() == lib.ExecutionStatusRunning {
		if clock.Timer(m.ended, driver.Now()+int64(beginPoll)) != nil {
			return
		}
	}
	for _, point := range executors.Spent {
		s.Reach(point, 0)
	}
}

// siblings are the other processes of the test, once they can be talked with; nil where there are none.
func (r *run) siblings(ctx context.Context) executors.Siblings {
	m := r.meeting
	select {
	case <-m.opened:
	case <-ctx.Done():
		return nil
	}
	if m.peers == nil {
		return nil
	}
	return m.peers
}

// partTimeout bounds the end of the talk: a broker that answers nothing holds up no end.
const partTimeout = 5 * time.Second

// part takes leave of the others.
func (r *run) part(ctx context.Context) {
	m := r.meeting
	m.end()
	m.begun.Do(func() { close(m.opened) })
	<-m.opened
	if m.peers == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, partTimeout)
	defer cancel()
	if err := m.peers.Close(ctx); err != nil {
		r.logger.WithError(err).Warn("not all that the processes of the test wrote to each other could be removed")
	}
}

// met adds to a result what is known of the other processes.
func (r *run) met(to *result.Result) {
	m := r.meeting
	select {
	case <-m.opened:
	default:
		return
	}
	var all []result.Peer
	if m.peers != nil {
		for _, k := range m.peers.Known(executors.Begun) {
			p := result.Peer{Process: k.Index + 1, Instance: k.Instance, Name: k.Name, Lacked: k.Lacked, Twin: k.Twin, Later: k.Later.Seconds()}
			if k.Measured {
				p.Clock = &result.Clock{
					Offset: k.Clock.By, Bound: k.Clock.Bound, Drift: k.Clock.Drift, Gives: k.Clock.Gives, Least: k.Clock.Least, Most: k.Clock.Most, RoundTrip: k.Clock.Trip,
					Messages: k.Clock.Messages, Same: k.Same,
				}
			}
			all = append(all, p)
		}
	}
	to.Meet(m.index+1, m.name, all, m.unmet)
}
