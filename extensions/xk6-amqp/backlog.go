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

// Backlog is the number of ready messages and of the unsettled ones at this process's consumers, on
// all connections. If there are other consumers it is an estimate. It is repeated while messages
// are delivered and none are settled, as after a start.
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

// askings bounds the repetitions of Backlog.
const askings = 20

// holding counts the messages of a consumer.
type holding struct {
	intake    *intake
	delivered uint64 // by the broker, including the client library's buffer
	settled   uint64
}

// unsettled returns how many messages consumers hold.
func unsettled(all map[*consumer]holding) (messages int64) {
	for _, h := range all {
		messages += int64(h.delivered - h.settled) //gosec:disable G115 -- never more than the prefetch
	}
	return messages
}

// fills reports whether consumers get messages and settle none, which the prefetch ends, or
// changed.
func fills(before, after map[*consumer]holding) bool {
	for r, was := range before {
		if is := after[r]; is.intake == was.intake && is.settled > was.settled {
			return false
		}
	}
	return !maps.Equal(before, after)
}

// catchUp returns when everything has arrived that the broker sent to consumers before. It sets the
// prefetch to the same value, because the broker's answer follows the deliveries on a channel.
func catchUp(ctx context.Context, all map[*consumer]holding) error {
	answers := make(chan error, len(all))
	for r, h := range all {
		go func() {
			h.intake.asking.Lock()
			defer h.intake.asking.Unlock()
			err := h.intake.Qos(r.prefetch, 0, false)
			if h.intake.IsClosed() {
				err = nil // the broker has its messages again
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

// queues returns the queues with a topic's messages for a group, each with the connection that may
// ask for it: only its own connection may use a consumer's temporary queue.
func (c *conn) queues(topic, group string, all map[*consumer]holding) map[string]*conn {
	names := map[string]*conn{}
	for r, h := range all {
		names[h.intake.queue] = r.conn
	}
	if name, shared := c.queueOf(topic, group); shared {
		names[name] = c
	}
	return names
}

// queueOf returns the queue of a group. shared is false if each consumer has a queue of its own.
func (c *conn) queueOf(topic, group string) (name string, shared bool) {
	switch {
	case c.mode == queue:
		return topic, true
	case group != "":
		return groupQueue(topic, group), true
	}
	return "", false
}

// waiting returns the numbers of ready messages and of consumers of queues.
func (c *conn) waiting(ctx context.Context, queues map[string]*conn) (messages int64, consumers int, err error) {
	for name, owner := range queues {
		if err := short(name); err != nil {
			return 0, 0, err
		}
		var q amqp.Queue
		err := owner.consuming.do(ctx, func(ch *amqp.Channel) (err error) {
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

// holdings returns the holdings of this process's open consumers of a topic and group.
func (c *conn) holdings(topic, group string) map[*consumer]holding {
	name, shared := c.queueOf(topic, group)
	all := map[*consumer]holding{}
	for _, r := range process.sharing(c) {
		h, open := r.holding()
		own := r.conn.mode == c.mode && r.topic == topic && r.group == ""
		if open && (shared && h.intake.queue == name || !shared && own) {
			all[r] = h
		}
	}
	return all
}

// holding returns false while the consumer has no channel, so that the broker has its messages.
func (r *consumer) holding() (holding, bool) {
	r.mu.Lock()
	in := r.intake
	r.mu.Unlock()
	if in == nil {
		return holding{}, false
	}
	r.settling.Lock()
	defer r.settling.Unlock()
	h := holding{in, in.conn.socket.frames.deliveries(in.number), in.settled.count}
	return h, !in.IsClosed() // else another channel may have its number
}

// process holds the consumers of this process, because the broker does not count their messages.
var process consumers

type consumers struct {
	mu  sync.Mutex
	all map[*consumer]struct{}
}

// join adds a consumer. It refuses a second group on a queue, because each would expect all
// messages.
func (s *consumers) join(r *consumer) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for other := range s.all {
		if r.conn.mode != queue || other.conn != r.conn || other.topic != r.topic {
			continue
		}
		if other.group != r.group && other.group != "" && r.group != "" {
			return fmt.Errorf("a queue has one group, here %q: group %q: %w (rabbitmq-pubsub has several)",
				other.group, r.group, errors.ErrUnsupported)
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

// sharing returns the consumers at the same broker: their connections have the virtual host and a
// host in common.
func (s *consumers) sharing(c *conn) (all []*consumer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	isShared := func(host string) bool { return slices.Contains(c.hosts, host) }
	for r := range s.all {
		if r.conn.vhost == c.vhost && slices.ContainsFunc(r.conn.hosts, isShared) {
			all = append(all, r)
		}
	}
	return all
}
