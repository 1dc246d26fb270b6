package rocketmq

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver/redial"
)

// heartbeat is how often a server is told that a consumer lives, as its own clients do.
const heartbeat = 10 * time.Second

// register makes a consumer registered to a server, by a stream that stays open, and keeps it registered.
func (r *consumer) register(ctx context.Context, s *server) (*presence, error) {
	within, cancel := context.WithTimeout(ctx, r.conn.options.Duration("requestTimeout"))
	defer cancel()
	one, err := r.introduce(within, s)
	if err != nil {
		return nil, err
	}
	registered := newPresence()
	r.running.Go(func() {
		for {
			registered.set(true)
			r.stay(one, s)
			registered.set(false)
			again, ok := redial.Until(r.life, func(ctx context.Context) (*session, error) {
				within, cancel := context.WithTimeout(ctx, r.conn.options.Duration("requestTimeout"))
				defer cancel()
				return r.introduce(within, s)
			}, func(error) {}) // what it means to a consumer its receives tell
			if !ok {
				return
			}
			one = again
		}
	})
	return registered, nil
}

// presence is whether a consumer is registered at a server, which refuses other requests.
type presence struct {
	mu         sync.Mutex
	yes        bool
	registered chan struct{} // closed where it does
}

func newPresence() *presence { return &presence{registered: make(chan struct{})} }

func (p *presence) set(yes bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case yes && !p.yes:
		close(p.registered)
	case !yes && p.yes:
		p.registered = make(chan struct{})
	}
	p.yes = yes
}

// wait waits until the consumer is registered.
func (p *presence) wait(ctx context.Context) error {
	p.mu.Lock()
	registered := p.registered
	p.mu.Unlock()
	select {
	case <-registered:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// session is the stream by which a consumer is registered.
type session struct {
	v2.MessagingService_TelemetryClient
	end context.CancelFunc
}

// introduce opens a stream, sends the settings, and waits for the answer.
func (r *consumer) introduce(ctx context.Context, s *server) (*session, error) {
	life, end := context.WithCancel(r.life)
	stop := context.AfterFunc(ctx, end)
	one, err := r.greet(life, s)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		end()
		return nil, called(ctx, err)
	}
	return &session{one, end}, nil
}

func (r *consumer) greet(ctx context.Context, s *server) (v2.MessagingService_TelemetryClient, error) {
	ctx = r.conn.servers.as(ctx, r.id)
	stream, err := s.Telemetry(ctx, waiting)
	if err != nil {
		return nil, err
	}
	hello := &v2.TelemetryCommand{Command: &v2.TelemetryCommand_Settings{Settings: r.settings()}}
	if err := stream.Send(hello); err != nil &&
		!errors.Is(err, io.EOF) { // why the stream ended Recv tells
		return nil, err
	}
	for { // what else a server may want of a client, as a dump of its threads, it does not get
		command, err := stream.Recv()
		if err != nil {
			return nil, err
		}
		if code := command.GetStatus().GetCode(); code != v2.Code_OK && code != v2.Code_CODE_UNSPECIFIED {
			return nil, check(command.GetStatus())
		}
		if command.GetSettings() != nil {
			break
		}
	}
	answer, err := s.Heartbeat(ctx, r.alive(), waiting)
	if err == nil {
		err = check(answer.GetStatus())
	}
	if err != nil {
		return nil, fmt.Errorf("heartbeat: %w", err)
	}
	return stream, nil
}

func (r *consumer) alive() *v2.HeartbeatRequest {
	return &v2.HeartbeatRequest{Group: r.conn.resource(r.group), ClientType: v2.ClientType_SIMPLE_CONSUMER}
}

// stay sends heartbeats until the stream breaks, the server loses the consumer, or the consumer
// closes.
func (r *consumer) stay(one *session, s *server) {
	broken := make(chan struct{})
	r.running.Go(func() {
		defer close(broken)
		for {
			if _, err := one.Recv(); err != nil {
				return
			}
		}
	})
	defer func() { one.end(); <-broken }()
	every := time.NewTicker(heartbeat)
	defer every.Stop()
	for {
		select {
		case <-every.C:
			ctx, cancel := context.WithTimeout(r.life, heartbeat)
			answer, err := s.Heartbeat(r.conn.servers.as(ctx, r.id), r.alive())
			cancel()
			if err != nil || check(answer.GetStatus()) != nil {
				return
			}
		case <-broken:
			return
		}
	}
}

// unregister has servers forget the consumer at once, and not after a while.
func (r *consumer) unregister(ctx context.Context) {
	for _, b := range r.route.brokers {
		if s, err := r.conn.servers.at(b.address); err == nil {
			within, cancel := context.WithTimeout(ctx, time.Second)
			_, _ = s.NotifyClientTermination(
				r.conn.servers.as(within, r.id), &v2.NotifyClientTerminationRequest{Group: r.conn.resource(r.group)},
			)
			cancel()
		}
	}
}
