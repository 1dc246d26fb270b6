package bench

import (
	"context"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/engine"
)

// Session is one topic of one broker, for loops of its driver and of the engine.
type Session struct {
	tb      testing.TB
	run     *engine.Run
	address *driver.Address
	conn    driver.Conn
	topic   string
	groups  int // groups with a new name so far
}

// Open connects and creates the topic, with options as in a script. The topic is deleted when tb
// ends.
func Open(tb testing.TB, url, topic string, spec driver.TopicSpec, options map[string]any) *Session {
	tb.Helper()
	address, err := driver.ParseURL(url, nil)
	if err != nil {
		tb.Fatal(err)
	}
	s := &Session{tb: tb, run: engine.NewRun("", 0), address: address, topic: topic}
	s.conn = s.open()
	if admin, ok := s.conn.(driver.Admin); ok {
		spec.Name, spec.Partitions, spec.Replicas = topic, max(1, spec.Partitions), max(1, spec.Replicas)
		spec.Options = s.resolve(driver.OnTopic, options)
		if err := admin.CreateTopic(context.Background(), spec); err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() { _ = admin.DeleteTopic(context.Background(), topic) })
	}
	return s
}

func (s *Session) open() driver.Conn {
	conn, err := s.address.Open(context.Background(), "bench")
	if err != nil {
		s.tb.Fatal(err)
	}
	s.tb.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func (s *Session) resolve(scope driver.Scope, options map[string]any) driver.Values {
	values, err := s.address.Resolve(scope, options)
	if err != nil {
		s.tb.Fatal(err)
	}
	return values
}

// Conn returns the session's first connection, for loops by hand on the same client.
func (s *Session) Conn() driver.Conn { return s.conn }

// Purge empties the topic.
func (s *Session) Purge() error {
	return s.conn.(driver.Admin).PurgeTopic(context.Background(), s.topic) //nolint:forcetypeassert // a benchmark
}

func (s *Session) series() *engine.Series {
	labels := engine.Labels{Broker: s.address.String(), Driver: s.address.Driver.Name, Topic: s.topic}
	return s.run.Series(labels)
}
