package amqp1

import (
	"slices"
	"sync"
)

// process is the consumers of this process, whichever connections they are on, for what they hold RabbitMQ does not tell.
var process = consumers{all: map[*consumer]bool{}}

type consumers struct {
	mu  sync.Mutex
	all map[*consumer]bool
}

// join and leave note a consumer for as long as it is open.
func (s *consumers) join(r *consumer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all[r] = true
}

func (s *consumers) leave(r *consumer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, r)
}

// unsettled is how many messages are with the consumers of a topic or a group, at the broker of a connection as far as the addresses tell.
func (s *consumers) unsettled(at *conn, topic, group string) (messages int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for r := range s.all {
		c := r.conn
		if r.topic == topic && r.group == group && c.mode == at.mode && c.vhost == at.vhost &&
			slices.ContainsFunc(c.hosts, func(host string) bool { return slices.Contains(at.hosts, host) }) {
			messages += r.current().credit.unsettled()
		}
	}
	return messages
}
