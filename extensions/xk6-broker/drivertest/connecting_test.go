package drivertest_test

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/memory"
)

// connecting breaks connections and what they manage.
func connecting() []variant {
	return []variant{
		{
			name:  "leaks a goroutine",
			fails: []string{"Lifecycle/no goroutine outlives close"},
			conn: func(c fullConn) driver.Conn {
				go func() { select {} }()
				return c
			},
		},
		{
			name: "knows no kinds", fails: []string{
				"Errors/unreachable is of kind disconnected", "Errors/create, delete and not found", "Publish/topic that does not exist",
			},
			classify: func(error) driver.Kind { return driver.Unknown },
		},
		{
			name: "claims a backlog that it does not tell", fails: []string{"Lifecycle/claims have their verbs"},
			config: memory.Config{Features: memory.Subject(), Bare: true},
			claim:  func(f *driver.Features) { f.BacklogWhole = true },
		},
		{
			name: "has options of topics that it does not create", fails: []string{"Lifecycle/claims have their verbs"},
			config:  memory.Config{Features: memory.Subject(), Bare: true},
			options: []driver.Option{{Name: "retention", Scope: driver.OnTopic, Type: driver.Duration, Doc: "How long the topic keeps a message."}},
		},
		{
			name: "waits for a server for ever", fails: []string{"Lifecycle/server unreachable"},
			open: func(open openFunc) openFunc {
				return func(ctx context.Context, t driver.Target) (driver.Conn, error) {
					c, err := open(ctx, t)
					if err != nil {
						select {}
					}
					return c, nil
				}
			},
		},
		{
			name: "knows no connectTimeout", fails: []string{"Lifecycle/connectTimeout at a deaf server"},
			open: func(open openFunc) openFunc {
				return func(ctx context.Context, t driver.Target) (driver.Conn, error) {
					t.Options = driver.Values{"connectTimeout": 10 * time.Second}
					return open(ctx, t)
				}
			},
		},
		{
			name: "takes a deaf server for one that is away", fails: []string{"Lifecycle/connectTimeout at a deaf server"},
			open: func(open openFunc) openFunc {
				return func(ctx context.Context, t driver.Target) (driver.Conn, error) {
					c, err := open(ctx, t)
					if errors.Is(err, context.DeadlineExceeded) {
						err = syscall.ECONNREFUSED
					}
					return c, err
				}
			},
		},
		{
			name: "takes a server of another protocol for its own", fails: []string{"Errors/another protocol is refused"},
			open: func(open openFunc) openFunc {
				return func(ctx context.Context, t driver.Target) (driver.Conn, error) {
					c, err := open(ctx, t)
					if err != nil && !errors.Is(err, syscall.ECONNREFUSED) && !errors.Is(err, context.DeadlineExceeded) {
						return blankConn{}, nil
					}
					return c, err
				}
			},
		},
		{
			name: "opens without a server", fails: []string{"Lifecycle/server unreachable", "Lifecycle/server silent"},
			open: func(open openFunc) openFunc {
				return func(ctx context.Context, t driver.Target) (driver.Conn, error) {
					u := *t.URL
					u.Host, t.URL = "", &u
					return open(ctx, t)
				}
			},
		},
		{
			name: "leaks secrets", fails: []string{"Errors/no password in an error", "Errors/no secret option in an error"},
			open: func(open openFunc) openFunc {
				return func(ctx context.Context, t driver.Target) (driver.Conn, error) {
					c, err := open(ctx, t)
					if err != nil {
						err = fmt.Errorf("%v with %q: %w", t.URL, t.Options.String("token"), err)
						err = errors.Join(fmt.Errorf("%s: %w", t.URL.User, err))
					}
					return c, err
				}
			},
		},
		{
			name: "deletes what is not there", fails: []string{"Errors/create, delete and not found"},
			conn: func(c fullConn) driver.Conn { return careless{c} },
		},
		{
			name: "says that more is proven than it claims", fails: []string{"Publish/what a confirmation proves"},
			conn: func(c fullConn) driver.Conn { return boaster{c} },
		},
		{
			name: "does not purge", fails: []string{"Errors/purge"},
			conn: func(c fullConn) driver.Conn { return careless{c} },
		},
	}
}

// boaster says that every message is replicated.
type boaster struct{ fullConn }

func (boaster) Proof(context.Context, driver.ProducerConfig, *driver.TopicSpec) driver.Proof {
	return driver.Proof{Confirm: driver.Replicated, How: "trust me"}
}

// careless has verbs that do nothing and say that all is well.
type careless struct{ fullConn }

func (c careless) DeleteTopic(ctx context.Context, topic string) error {
	_ = c.fullConn.DeleteTopic(ctx, topic)
	return nil
}
func (careless) PurgeTopic(context.Context, string) error { return nil }
func (careless) Backlog(context.Context, string, string) (driver.Backlog, error) {
	return driver.Backlog{}, nil
}

// blankConn is a connection to any server.
type blankConn struct{ driver.Conn }

func (blankConn) Close(context.Context) error { return nil }
