package mongodb

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// conn is one client with its pool of connections, which producers and consumers share.
type conn struct {
	client  *mongo.Client
	db      *mongo.Database
	monitor *monitor
	timeout time.Duration
	ahead   time.Duration // of the server's clock before this machine's, as it was when the connection opened
	server  string        // product and version
	once    atomic.Bool   // a consumer has messages delivered once

	closing sync.Mutex
	closed  bool
}

func open(ctx context.Context, t driver.Target) (driver.Conn, error) {
	database := cmp.Or(strings.Trim(t.URL.Path, "/"), "test")
	if strings.ContainsAny(database, "/\\. \"$\x00") || len(database) > 63 {
		return nil, fmt.Errorf(
			"the broker's URL: %q is no name of a database: it has up to 63 bytes, without / \\ . \" $ and spaces",
			database,
		)
	}
	config, err := configure(t)
	if err != nil {
		return nil, err
	}
	c := &conn{monitor: &monitor{}, timeout: t.Options.Duration("timeout")}
	limit := t.Options.Duration("connectTimeout")
	within, cancel := context.WithTimeoutCause(
		ctx, limit, &timeoutError{"connectTimeout", limit, context.DeadlineExceeded},
	)
	defer cancel()
	connecting, settled := c.monitor.connecting(within, len(t.Hosts))
	defer settled()
	if c.client, err = mongo.Connect(config.SetServerMonitor(c.monitor.events())); err != nil {
		return nil, err
	}
	c.db = c.client.Database(database)
	if err := c.greet(connecting); err != nil {
		if connecting.Err() != nil {
			err = context.Cause(connecting)
		}
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		_ = c.client.Disconnect(ended) // nothing is under way that would be worth waiting for
		return nil, err
	}
	return c, nil
}

// greet reads the server's version and clock. Leases use that clock on every machine.
func (c *conn) greet(ctx context.Context) error {
	admin := c.client.Database("admin")
	var build struct {
		Version, GitVersion string
	}
	if err := admin.RunCommand(ctx, bson.D{{Key: "buildInfo", Value: 1}}).Decode(&build); err != nil {
		return c.reason(ctx, err)
	}
	c.server = "MongoDB " + build.Version
	if build.GitVersion == "" { // every build of MongoDB's own says
		c.server = "another server that speaks the protocol of MongoDB " + build.Version
	}
	var hello struct {
		LocalTime time.Time `bson:"localTime"`
	}
	begin := time.Now()
	if err := admin.RunCommand(ctx, bson.D{{Key: "hello", Value: 1}}).Decode(&hello); err != nil {
		return c.reason(ctx, err)
	}
	if end := time.Now(); !hello.LocalTime.IsZero() {
		c.ahead = hello.LocalTime.Sub(begin.Add(end.Sub(begin) / 2))
	}
	return nil
}

// now is the time by the server's clock.
func (c *conn) now() time.Time { return time.Now().Add(c.ahead) }

// Info describes the server.
func (c *conn) Info() driver.Info {
	t := c.monitor.cluster()
	return driver.Info{
		Server: c.server + ", " + t.String(),
		Client: "mongo-driver" + driver.ModuleVersion("go.mongodb.org/mongo-driver/v2"),
		Nodes:  t.members,
	}
}

// As lends the client.
func (c *conn) As(target any) bool { return driver.As(target, c.client) }

// Close closes the pool.
func (c *conn) Close(ctx context.Context) error {
	c.closing.Lock()
	defer c.closing.Unlock()
	if c.closed {
		return nil
	}
	c.closed = true
	return c.client.Disconnect(ctx)
}
