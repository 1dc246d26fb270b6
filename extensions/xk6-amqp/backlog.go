package amqp

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// Backlog is what waits in the queue, which the broker tells, and what it has delivered to consumers of this process and they have not settled, whichever
// connection they are on. What others hold unsettled the protocol does not tell, nor what has just been given back: where there are other consumers it is an
// estimate. It is asked again while the broker delivers and nobody settles, as after a start; while messages are settled too, those delivered meanwhile may
// be counted twice.
func (c queueConn) Backlog(ctx context.Context, topic, group string) (b driver.Backlog, err error) {
	before := c.holdings(topic, group)
	for range askings {
		waiting, consumers, err := c.waiting(ctx, c.queues(topic, group, before))
		if err != nil {
			return b, err
		}
		if err := catchUp(ctx, before); err != nil {
			return b, err
		}
		after := c.holdings(topic, group)
		b.Messages, b.Estimate = waiting+unsettled(after), consumers > max(len(before), len(after))
		if !fills(before, after) {
			return b, nil
		}
		before = after
	}
	return b, nil
}

// askings are how often it is asked at most what waits.
const askings = 20

// holding is what a consumer has.
type holding struct {
	intake    *intake
	delivered uint64 // by the broker, whether the client library has passed it on or not
	settled   uint64
}

// unsettled is how many messages consumers hold.
func unsettled(all map[*consumer]holding) (messages int64) {
	for _, h := range all {
		messages += int64(h.delivered - h.settled) //gosec:disable G115 -- never more than the prefetch
	}
	return messages
}

// fills reports whether consumers only get messages, which the prefetch ends soon, or are others than before.
func fills(before, after map[*consumer]holding) bool {
	for r, was := range before {
		if is := after[r]; is.intake == was.intake && is.settled > was.settled {
			return false
		}
	}
	return !maps.Equal(before, after)
}

// catchUp returns when all has come that the broker had sent to consumers before: the answer to a method comes after that, on the same channel. To set the
// prefetch again says nothing new.
func catchUp(ctx context.Context, all map[*consumer]holding) error {
	answers := make(chan error, len(all))
	for r, h := range all {
		go func() {
			h.intake.asking.Lock()
			defer h.intake.asking.Unlock()
			err := h.intake.Qos(r.prefetch, 0, false)
			if h.intake.IsClosed() {
				err = nil // the broker has everything again
			}
			answers <- err
		}()
	}
	for range all {
		select {
		case err := <-answers:
			if err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// queues are those that have the messages of a topic for a group, with a connection that may ask for each: a queue of a consumer's own is for its connection.
func (c *conn) queues(topic, group string, all map[*consumer]holding) map[string]*conn {
	names := map[string]*conn{}
	for r, h := range all {
		names[h.intake.queue] = r.conn
	}
	if name, one := c.queueOf(topic, group); one {
		names[name] = c
	}
	return names
}

// queueOf is the one queue of a group; there is none where each consumer has its own.
func (c *conn) queueOf(topic, group string) (name string, one bool) {
	switch {
	case c.mode == queue:
		return topic, true
	case group != "":
		return groupQueue(topic, group), true
	}
	return "", false
}

// waiting is how many messages are ready in queues, and how many consumers these have.
func (c *conn) waiting(ctx context.Context, queues map[string]*conn) (messages int64, consumers int, err error) {
	for name, of := range queues {
		if err := short(name); err != nil {
			return 0, 0, err
		}
		var q amqp.Queue
		err := of.consuming.do(ctx, func(ch *amqp.Channel) (err error) {
			q, err = ch.QueueDeclarePassive(name, false, false, false, false, nil)
			return err
		})
		if err != nil {
			return 0, 0, err
		}
		messages += int64(q.Messages)
		consumers += q.Consumers
	}
	return messages, consumers, nil
}

// holdings are what the consumers of this process hold of a topic for a group, those that are open.
func (c *conn) holdings(topic, group string) map[*consumer]holding {
	name, one := c.queueOf(topic, group)
	all := map[*consumer]holding{}
	for _, r := range process.of(c) {
		if h, ok := r.holding(); ok && (one && h.intake.queue == name || !one && r.conn.mode == c.mode && r.topic == topic && r.group == "") {
			all[r] = h
		}
	}
	return all
}

// holding is what a consumer has; false while it is not open, and the broker has everything.
func (r *consumer) holding() (holding, bool) {
	r.mu.Lock()
	in := r.intake
	r.mu.Unlock()
	if in == nil {
		return holding{}, false
	}
	r.settling.Lock()
	defer r.settling.Unlock()
	h := holding{in, in.of.socket.frames.deliveries(in.number), in.settled.count}
	return h, !in.IsClosed() // nobody else had the number of its channel
}

// process is the consumers of this process, for what they hold the broker does not tell.
var process consumers

type consumers struct {
	mu  sync.Mutex
	all map[*consumer]struct{}
}

// join notes a consumer. Two groups on one queue would take each other's messages, where each expects all of them.
func (s *consumers) join(r *consumer) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for other := range s.all {
		if r.conn.mode == queue && other.conn == r.conn && other.topic == r.topic && other.group != r.group && other.group != "" && r.group != "" {
			return fmt.Errorf("a queue has one group, here %q: group %q: %w (rabbitmq-pubsub has several)", other.group, r.group, errors.ErrUnsupported)
		}
	}
	if s.all == nil {
		s.all = map[*consumer]struct{}{}
	}
	s.all[r] = struct{}{}
	return nil
}

func (s *consumers) leave(r *consumer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, r)
}

// of are the consumers of a connection and of others to the same broker, as far as the addresses tell.
func (s *consumers) of(c *conn) (all []*consumer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for r := range s.all {
		if r.conn.vhost == c.vhost && slices.ContainsFunc(r.conn.hosts, func(host string) bool { return slices.Contains(c.hosts, host) }) {
			all = append(all, r)
		}
	}
	return all
}
