package kurrentdb

import (
	"cmp"
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// conn is one server, or one cluster. All calls share one connection, over which gRPC has any number under way.
type conn struct {
	name    string // of this client, for the server's tools
	timeout time.Duration
	servers *servers
	info    driver.Info
}

func open(ctx context.Context, t driver.Target) (driver.Conn, error) {
	s, err := newServers(t)
	if err != nil {
		return nil, err
	}
	c := &conn{name: cmp.Or(t.ClientName, "xk6-broker"), timeout: t.Options.Duration("requestTimeout"), servers: s}
	n, err := s.link.Get(ctx)
	if err != nil {
		return nil, err
	}
	c.info = driver.Info{Server: n.product(), Client: "KurrentDB-Client-Go" + clientVersion() + " (protocol)"}
	if members, err := c.members(ctx); err == nil { // which not everybody may ask
		c.info.Nodes = members
	}
	return c, nil
}

// clientVersion is the version of the client library that this program was built with, after a space.
func clientVersion() string {
	build, _ := debug.ReadBuildInfo()
	if build == nil {
		return ""
	}
	for _, m := range build.Deps {
		if m.Path == "github.com/kurrent-io/KurrentDB-Client-Go" {
			return " " + m.Version
		}
	}
	return ""
}

// call makes one request. It is never made again: what became of one that failed nobody knows.
func (c *conn) call(ctx context.Context, do func(ctx context.Context, n *node, o ...grpc.CallOption) error) error {
	within, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	n, err := c.servers.link.Get(within)
	if err == nil {
		var trailer metadata.MD
		err = c.judge(n, answered(do(leading(within), n, c.servers.patient, grpc.Trailer(&trailer)), trailer))
	}
	return c.late(ctx, within, err)
}

// stream opens a stream that lives as long as life, or until end is called; opening it must not take longer than a request.
func (c *conn) stream(ctx, life context.Context, open func(ctx context.Context, n *node) error) (end context.CancelFunc, err error) {
	within, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	n, err := c.servers.link.Get(within)
	if err != nil {
		return nil, c.late(ctx, within, err)
	}
	streaming, end := context.WithCancel(life)
	stop := context.AfterFunc(within, end)
	err = c.judge(n, open(leading(streaming), n))
	if !stop() && err == nil {
		err = within.Err()
	}
	if err != nil {
		end()
		return nil, c.late(ctx, within, err)
	}
	return end, nil
}

// leading asks that who answers leads: another server of the cluster may not know yet of what was just written.
func leading(ctx context.Context) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "requires-leader", "true")
}

// judge has another node be found where this one is away, or leads no more, and there are others.
func (c *conn) judge(n *node, err error) error {
	if len(c.servers.hosts) > 1 && says(err, codes.Unavailable, notLeader) {
		n.replace()
	}
	return err
}

// late gives an error the form of what ended the call: the caller's context, or the time that one request has.
func (c *conn) late(ctx, within context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case within.Err() != nil:
		return fmt.Errorf("option %q: no answer within %v: %w", "requestTimeout", c.timeout, context.DeadlineExceeded)
	default:
		return err
	}
}

// Info is what the connection found when it opened.
func (c *conn) Info() driver.Info { return c.info }

// As lends the *grpc.ClientConn to the server.
func (c *conn) As(target any) bool {
	n, ok := c.servers.link.Last()
	return ok && driver.As(target, n.channel)
}

// Close closes the connection.
func (c *conn) Close(context.Context) error {
	return c.servers.link.Close(func(n *node) error { return n.channel.Close() })
}
