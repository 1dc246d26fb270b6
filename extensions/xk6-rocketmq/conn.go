package rocketmq

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// port is the default port.
const port = "8081"

// conn has the connections to a cluster's servers, and the client of its name servers.
type conn struct {
	name      string // of this client, for the servers' tools
	namespace string
	options   driver.Values
	servers   *servers
	admin     *admin
	info      driver.Info
}

func open(ctx context.Context, t driver.Target) (driver.Conn, error) {
	s, err := newServers(t)
	if err != nil {
		return nil, err
	}
	c := &conn{
		name: cmp.Or(t.ClientName, "xk6-broker"), namespace: t.Options.String("namespace"),
		options: t.Options, servers: s, admin: newAdmin(t, s.dial),
	}
	within, begin := t.Options.Duration("connectTimeout"), time.Now()
	greeting, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	if err := c.greet(greeting); err != nil {
		s.close()
		if ctx.Err() == nil &&
			time.Since(begin) >= within { // gRPC gives up by a clock of its own, which may run out a little before the context
			return nil, fmt.Errorf(
				"no answer from %s within %s: %w", strings.Join(t.Hosts, ","), within, context.DeadlineExceeded,
			)
		}
		return nil, err
	}
	return c, nil
}

// greet checks that a host of the URL answers. An answer that the topic does not exist is enough.
func (c *conn) greet(ctx context.Context) error {
	var failed error
	for _, host := range c.servers.given {
		if err := c.servers.reach(ctx, host); err != nil { // gRPC would go on dialing, and say less of why
			failed = cmp.Or(failed, err)
			continue
		}
		if _, err := c.ask(ctx, host, "xk6-broker"); err != nil && !isNotFound(err) {
			failed = cmp.Or(failed, explain(ctx, err, host))
			continue
		}
		c.servers.prefer(host)
		c.info = driver.Info{
			Server: "Apache RocketMQ",
			Client: "rocketmq-clients" + driver.ModuleVersion("github.com/apache/rocketmq-clients/golang/v5") + " (protocol)",
		}
		c.introduce(ctx)
		return ctx.Err()
	}
	return failed
}

// explain names a server of another protocol.
func explain(ctx context.Context, err error, host string) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	// gRPC closes its own side when the time for the server's first frame is over, just before the
	// context ends. A server that closes is an EOF or a reset.
	if strings.Contains(err.Error(), net.ErrClosed.Error()) {
		return context.DeadlineExceeded
	}
	if errors.As(err, new(*statusError)) {
		return err
	}
	switch status.Code(err) {
	case codes.Unavailable, codes.Internal, codes.Unknown, codes.Unimplemented:
		return fmt.Errorf(
			"%s does not answer as a RocketMQ proxy does, whose port for gRPC is %s by default: %w", host, port, err,
		)
	default:
		return err
	}
}

// introduce reads the brokers' versions, if there is a name server.
func (c *conn) introduce(ctx context.Context) {
	brokers, err := c.admin.brokers(ctx)
	if err != nil || len(brokers) == 0 {
		return
	}
	c.info.Nodes = len(brokers)
	if version := c.admin.version(ctx, brokers[0]); version != "" {
		c.info.Server += " " + version
	}
}

// resource names a topic or a group in the namespace.
func (c *conn) resource(name string) *v2.Resource {
	return &v2.Resource{ResourceNamespace: c.namespace, Name: name}
}

// Info describes the cluster as it was when the connection opened.
func (c *conn) Info() driver.Info { return c.info }

// Close closes the connections. It never waits.
func (c *conn) Close(context.Context) error {
	c.servers.close()
	return nil
}
