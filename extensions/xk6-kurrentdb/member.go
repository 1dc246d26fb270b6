package kurrentdb

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/kurrent-io/KurrentDB-Client-Go/protos/kurrentdb/protocols/v1/persistent"
	"github.com/kurrent-io/KurrentDB-Client-Go/protos/kurrentdb/protocols/v1/shared"
	"google.golang.org/grpc/metadata"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// member receives messages of a group by a persistent subscription: a stream of messages in one
// direction and of settlements in the other.
type member struct {
	*consumer
	name string // for the server's tools

	closing sync.RWMutex // Close waits for Settle
	closed  bool
	current *subscription // guarded by mu
	mu      sync.Mutex
}

func (c *conn) newMember(ctx context.Context, cfg driver.ConsumerConfig) (driver.Consumer, error) {
	if err := c.join(ctx, cfg); err != nil {
		return nil, err
	}
	r := &member{name: fmt.Sprintf("%s-%016x", c.name, rand.Uint64())} //gosec:disable G404 -- a name, no secret
	r.consumer = c.newConsumer(cfg, hand)
	if err := r.begin(ctx, r.open); err != nil {
		return nil, err
	}
	return r, nil
}

// subscription is one stream of a member.
type subscription struct {
	r      *member
	stream persistent.PersistentSubscriptions_ReadClient
	id     []byte
	cancel context.CancelFunc

	sending sync.Mutex // before mu

	mu      sync.Mutex
	ended   bool
	open    int // messages received and not settled
	settled int // messages settled
}

func (r *member) open(ctx context.Context) (feed, error) {
	s := &subscription{r: r}
	var err error
	s.cancel, err = r.conn.stream(ctx, r.life, func(ctx context.Context) (err error) {
		ctx = metadata.AppendToOutgoingContext(ctx, "connection-name", r.name)
		if s.stream, err = r.conn.shares.Read(ctx); err != nil {
			return answered(err, nil)
		}
		options := &persistent.ReadReq_Options{
			StreamOption: &persistent.ReadReq_Options_StreamIdentifier{StreamIdentifier: identifier(r.cfg.Topic)},
			GroupName:    r.cfg.Group, BufferSize: int32(r.cfg.Prefetch), //gosec:disable G115 -- a small count
			UuidOption: &persistent.ReadReq_Options_UUIDOption{
				Content: &persistent.ReadReq_Options_UUIDOption_Structured{Structured: &shared.Empty{}},
			},
		}
		_ = s.stream.Send(
			&persistent.ReadReq{Content: &persistent.ReadReq_Options_{Options: options}},
		) // Recv has the error
		part, err := s.stream.Recv()
		if err != nil {
			return answered(err, s.stream.Trailer())
		}
		confirmed := part.GetSubscriptionConfirmation()
		if confirmed == nil {
			return errUnconfirmed
		}
		s.id = []byte(confirmed.GetSubscriptionId())
		return nil
	})
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	r.current = s
	r.mu.Unlock()
	return s, nil
}

// read takes messages: the server keeps to the prefetch.
func (s *subscription) read() error {
	for {
		part, err := s.stream.Recv()
		received := driver.Now()
		if err != nil {
			return answered(err, s.stream.Trailer())
		}
		both := part.GetEvent()
		if both == nil {
			continue
		}
		var at recorded = both.GetEvent()
		if both.GetLink() != nil {
			at = both.GetLink()
		}
		d := arrived(both.GetEvent(), at, s.r.cfg.Topic, received)
		d.message.Attempt = both.GetRetryCount() + 1
		d.from = s
		s.mu.Lock()
		s.open++
		s.mu.Unlock()
		s.r.in.Put(d)
	}
}

// end drops the queued messages: they cannot be settled any more and are delivered again.
func (s *subscription) end() {
	s.cancel()
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	if s.r.life.Err() == nil {
		s.r.in.Clear()
	}
}

// Close leaves, and the server delivers the unsettled messages again. It waits until the
// settlements have arrived, because the end of the stream drops the ones on their way.
func (r *member) Close(ctx context.Context) error {
	first := r.in.Close()
	stop := context.AfterFunc(ctx, r.stop) // ends a settlement that cannot be sent
	defer stop()
	r.closing.Lock()
	r.closed = true
	r.closing.Unlock()
	if first {
		r.arrive(ctx)
	}
	r.stop()
	r.running.Wait()
	return nil
}
