package amqp1

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"

	amqp "github.com/Azure/go-amqp"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// rabbitMQ is the management of RabbitMQ 4: requests and replies in the manner of HTTP over a pair of links.
type rabbitMQ struct {
	mode mode
	*desk

	mu     sync.Mutex
	groups map[string]map[string]bool // the queues of groups that were made here, by topic: it does not tell which there are
}

func newRabbitMQ(c *conn) *rabbitMQ {
	return &rabbitMQ{mode: c.mode, groups: map[string]map[string]bool{}, desk: newDesk(c, func(ctx context.Context, p *pair) (err error) {
		const node, name = "/management", "management" // one name makes two links a pair
		paired := map[string]any{"paired": true}
		p.receiver, err = p.session.NewReceiver(ctx, node, &amqp.ReceiverOptions{
			Name: name, TargetAddress: node, Properties: paired, ExpiryPolicy: amqp.ExpiryPolicyLinkDetach, Credit: 10,
			RequestedSenderSettleMode: amqp.SenderSettleModeSettled.Ptr(), SettlementMode: amqp.ReceiverSettleModeFirst.Ptr(),
		})
		if err != nil {
			return err
		}
		p.sender, err = p.session.NewSender(ctx, node, &amqp.SenderOptions{
			Name: name, SourceAddress: node, Properties: paired, ExpiryPolicy: amqp.ExpiryPolicyLinkDetach,
			SettlementMode: amqp.SenderSettleModeSettled.Ptr(), RequestedReceiverSettleMode: amqp.ReceiverSettleModeFirst.Ptr(),
		})
		return err
	})}
}

// createTopic declares a queue or an exchange, which RabbitMQ refuses where there is another one of the name.
func (r *rabbitMQ) createTopic(ctx context.Context, spec driver.TopicSpec) error {
	if r.mode == pubsub {
		_, err := r.request(ctx, "PUT", "/exchanges/"+url.PathEscape(spec.Name), map[string]any{"type": "fanout", "durable": true})
		return err
	}
	return r.declare(ctx, spec.Name, spec.Options.Bool("durable"), spec.Options.String("queueType"))
}

func (r *rabbitMQ) declare(ctx context.Context, name string, durable bool, kind string) error {
	_, err := r.request(ctx, "PUT", "/queues/"+url.PathEscape(name), map[string]any{
		"durable": durable, "arguments": map[string]any{"x-queue-type": kind},
	})
	return err
}

// subscribe makes the queue of a group, or without a group one that goes with the connection, and binds it to the topic's exchange.
func (r *rabbitMQ) subscribe(ctx context.Context, topic, group, unique string) (address string, err error) {
	name := subscription(topic, group)
	if group == "" {
		name = subscription(topic, unique)
		err = r.temporary(ctx, name)
	} else {
		err = r.declare(ctx, name, true, "classic")
		r.note(topic, name)
	}
	if err != nil {
		return "", err
	}
	return "/queues/" + url.PathEscape(name), r.bind(ctx, topic, name)
}

// temporary makes a queue that goes with the connection.
func (r *rabbitMQ) temporary(ctx context.Context, name string) error {
	_, err := r.request(ctx, "PUT", "/queues/"+url.PathEscape(name), map[string]any{"durable": false, "exclusive": true, "auto_delete": true})
	return err
}

func (r *rabbitMQ) bind(ctx context.Context, exchange, name string) error {
	_, err := r.request(ctx, "POST", "/bindings", map[string]any{
		"source": exchange, "destination_queue": name, "binding_key": "", "arguments": map[string]any{},
	})
	return err
}

// note remembers the queue of a group.
func (r *rabbitMQ) note(topic, name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.groups[topic] == nil {
		r.groups[topic] = map[string]bool{}
	}
	r.groups[topic][name] = true
}

// queues are those of a topic: its own, or its groups'. It fails where there is no such topic.
func (r *rabbitMQ) queues(ctx context.Context, topic string) ([]string, error) {
	if r.mode == queue {
		_, err := r.count(ctx, topic)
		return []string{topic}, err
	}
	err := r.conn.session(ctx, func(ctx context.Context, s *amqp.Session, on *connection) error {
		_, err := s.NewSender(ctx, r.conn.address(on, topic), nil)
		if err == nil {
			err = s.Close(ctx)
		}
		return err
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Keys(r.groups[topic])), err
}

// deleteTopic deletes a queue, or an exchange and the queues of its groups.
func (r *rabbitMQ) deleteTopic(ctx context.Context, topic string) error {
	names, err := r.queues(ctx, topic)
	if err != nil {
		return err
	}
	for _, name := range names {
		if _, err := r.request(ctx, "DELETE", "/queues/"+url.PathEscape(name), nil); err != nil {
			return err
		}
	}
	if r.mode == pubsub {
		_, err = r.request(ctx, "DELETE", "/exchanges/"+url.PathEscape(topic), nil)
	}
	return err
}

// purgeTopic empties the queues of a topic.
func (r *rabbitMQ) purgeTopic(ctx context.Context, topic string) error {
	names, err := r.queues(ctx, topic)
	if err != nil {
		return err
	}
	for _, name := range names {
		if _, err := r.request(ctx, "DELETE", "/queues/"+url.PathEscape(name)+"/messages", nil); err != nil {
			return err
		}
	}
	return nil
}

// backlog is how many messages are ready in a queue, which is what it tells, and how many the consumers of this process hold.
func (r *rabbitMQ) backlog(ctx context.Context, topic, group string) (int64, error) {
	name := topic
	if r.mode == pubsub {
		name = subscription(topic, group)
	}
	ready, err := r.count(ctx, name)
	if err != nil {
		return 0, err
	}
	return ready + process.unsettled(r.conn, topic, group), nil
}

// count is how many messages are ready in a queue.
func (r *rabbitMQ) count(ctx context.Context, name string) (int64, error) {
	reply, err := r.request(ctx, "GET", "/queues/"+url.PathEscape(name), nil)
	if err != nil {
		return 0, err
	}
	about, _ := reply.Value.(map[string]any)
	count, ok := about["message_count"].(uint64)
	if !ok {
		return 0, fmt.Errorf("the broker's management tells no message_count, but %v", about["message_count"])
	}
	return int64(count), nil //gosec:disable G115 -- a count, far below the limit
}

// request asks, and fails where the status is not one of success.
func (r *rabbitMQ) request(ctx context.Context, method, path string, body map[string]any) (*amqp.Message, error) {
	me := "$me"
	ask := func(p *pair) *amqp.Message {
		m := &amqp.Message{Properties: &amqp.MessageProperties{MessageID: p.asked, To: &path, Subject: &method, ReplyTo: &me}, Value: any(amqp.Null{})}
		if body != nil {
			m.Value = body
		}
		return m
	}
	reply, err := r.ask(ctx, ask)
	for n := 1; passing(err) && n < attempts && ctx.Err() == nil; n++ {
		reply, err = r.ask(ctx, ask)
	}
	if err != nil {
		return nil, err
	}
	status := ""
	if reply.Properties != nil && reply.Properties.Subject != nil {
		status = *reply.Properties.Subject
	}
	if strings.HasPrefix(status, "2") {
		return reply, nil
	}
	kind := driver.Rejected
	switch status {
	case "401", "403":
		kind = driver.Denied
	case "404":
		kind = driver.NotFound
	}
	return nil, &kindError{kind, errors.New("the broker's management: " + status + " " + string(bodyOf(reply)))}
}

// attempts are how often a request is made at most that was refused for what passes. To make one twice does no harm, as what is there already is no error.
const attempts = 10

// passing reports whether a request was there before the credit for its reply, which the client library gives when it gets about to, or was a declaration of what
// another one declared at that moment, over which RabbitMQ 4.0 fails.
func passing(err error) bool {
	var server *amqp.Error
	if !errors.As(err, &server) {
		return false
	}
	return server.Condition == amqp.ErrCondPreconditionFailed && strings.Contains(server.Description, "insufficient credit") ||
		server.Condition == amqp.ErrCondInternalError && strings.HasPrefix(server.Description, "{badmatch,{<<\"200\">>")
}
