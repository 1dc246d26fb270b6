package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver/redial"
)

// line is a session that is made again after it broke, for one statement at a time.
type line struct {
	link    *redial.Link[*session]
	timeout time.Duration
	turn    chan struct{} // a lock that can be waited for with a context
	idle    bool          // it is used now and then: whether it broke meanwhile is asked before each use
}

func newLine(config *pgx.ConnConfig, timeout time.Duration, prepare func(ctx context.Context, s *session) error) *line {
	l := &line{timeout: timeout, turn: make(chan struct{}, 1)}
	l.link = redial.New(func(ctx context.Context) (*session, error) {
		s, err := dial(ctx, config)
		if err != nil {
			return nil, err
		}
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		err = s.hear(ctx)
		if err == nil && prepare != nil {
			err = prepare(ctx, s)
		}
		if err != nil {
			_ = s.close(ctx)
			return nil, err
		}
		return s, nil
	}, func(s *session) bool { return s.IsClosed() })
	return l
}

// do waits for its turn and lends f the session, which f uses no longer than the timeout.
func (l *line) do(ctx context.Context, f func(ctx context.Context, s *session) error) error {
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	s, err := l.get(ctx)
	if err != nil {
		return err
	}
	within, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	s.doubt = ""
	err = f(within, s)
	if err != nil && ctx.Err() == nil && within.Err() != nil {
		return fmt.Errorf("option \"timeout\": no answer within %v: %w", l.timeout, context.DeadlineExceeded)
	}
	return err
}

// get returns a session. An idle one is pinged first.
func (l *line) get(ctx context.Context) (*session, error) {
	s, err := l.link.Get(ctx)
	if err != nil || !l.idle {
		return s, err
	}
	within, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	if s.Ping(within) == nil || within.Err() != nil {
		return s, nil // or silent, which the statement will tell
	}
	_ = s.close(ctx)
	return l.link.Get(ctx)
}

// close waits for its turn, or until ctx ends, and hangs up.
func (l *line) close(ctx context.Context) error {
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
	}
	return l.link.Close(func(s *session) error { return s.close(ctx) })
}
