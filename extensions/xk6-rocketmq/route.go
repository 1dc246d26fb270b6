package rocketmq

import (
	"cmp"
	"context"
	"net"
	"slices"
	"strconv"
	"time"

	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"
)

// route has the queues of a topic, sorted by broker and number. A queue's place is its partition.
type route struct {
	queues  []*v2.MessageQueue
	brokers []home // each broker once
}

// home is a broker that has queues of a topic, with the server that speaks for it.
type home struct {
	name    string
	address string
	queue   *v2.MessageQueue // any of its queues: a server receives of all that a broker has
}

// ask asks a server for the route of a topic.
func (c *conn) ask(ctx context.Context, host, topic string) (*route, error) {
	s, err := c.servers.at(host)
	if err != nil {
		return nil, err
	}
	name, number, err := net.SplitHostPort(host)
	if err != nil {
		return nil, err
	}
	p, err := strconv.ParseUint(number, 10, 16)
	if err != nil {
		return nil, err
	}
	answer, err := s.QueryRoute(c.servers.as(ctx, c.name), &v2.QueryRouteRequest{
		Topic: c.resource(topic),
		Endpoints: &v2.Endpoints{
			Scheme: v2.AddressScheme_DOMAIN_NAME, Addresses: []*v2.Address{{Host: name, Port: int32(p)}},
		},
	})
	if err != nil {
		return nil, called(ctx, err)
	}
	if err := check(answer.GetStatus()); err != nil {
		return nil, err
	}
	return newRoute(answer.GetMessageQueues()), nil
}

func newRoute(queues []*v2.MessageQueue) *route {
	slices.SortFunc(queues, func(a, b *v2.MessageQueue) int {
		return cmp.Or(cmp.Compare(a.GetBroker().GetName(), b.GetBroker().GetName()), cmp.Compare(a.GetId(), b.GetId()))
	})
	r := &route{queues: queues}
	for _, q := range queues {
		last := len(r.brokers) - 1
		if addresses := q.GetBroker().GetEndpoints().GetAddresses(); len(addresses) > 0 &&
			(last < 0 || r.brokers[last].name != q.GetBroker().GetName()) {
			address := net.JoinHostPort(addresses[0].GetHost(), strconv.Itoa(int(addresses[0].GetPort())))
			r.brokers = append(r.brokers, home{q.GetBroker().GetName(), address, q})
		}
	}
	return r
}

// fifo reports whether the topic takes FIFO messages and no others.
func (r *route) fifo() bool {
	return slices.Equal(r.queues[0].GetAcceptMessageTypes(), []v2.MessageType{v2.MessageType_FIFO})
}

// partition returns the partition of a broker's queue; 0 for a queue that is not in the route.
func (r *route) partition(broker string, queue int32) int32 {
	for i, q := range r.queues {
		if q.GetId() == queue && q.GetBroker().GetName() == broker {
			return int32(i)
		}
	}
	return 0
}

// find asks the hosts of the URL in turn. A new topic may not be on all servers yet.
func (c *conn) find(ctx context.Context, topic string) (r *route, err error) {
	within, cancel := context.WithTimeout(ctx, c.options.Duration("requestTimeout"))
	defer cancel()
	for _, host := range c.servers.ways() {
		if r, err = c.ask(within, host, topic); err == nil && len(r.brokers) > 0 {
			c.servers.prefer(host)
			return r, nil
		}
		if err == nil {
			err = errNoTopic
		}
		if isNotFound(err) || within.Err() != nil {
			break
		}
	}
	return nil, err
}

// await waits until the servers have a new topic.
func (c *conn) await(ctx context.Context, topic string) (*route, error) {
	for {
		r, err := c.find(ctx, topic)
		if !isNotFound(err) {
			return r, err
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
