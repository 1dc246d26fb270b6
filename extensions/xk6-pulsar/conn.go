package pulsar

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// Ports of a host without one, without and with TLS.
const (
	port       = "6650"
	securePort = "6651"
)

// conn is one client, with one connection to each broker that it needs.
type conn struct {
	mode      mode
	client    pulsar.Client
	journal   *journal
	admin     *admin
	namespace string
	info      driver.Info

	running sync.WaitGroup // the calls of await
	closing sync.Once
	closed  chan struct{} // closed with the client
}

func open(ctx context.Context, t driver.Target, m mode) (driver.Conn, error) {
	c := &conn{
		mode: m, journal: newJournal(), namespace: t.Options.String("namespace"), closed: make(chan struct{}),
	}
	options, err := c.options(t)
	if err != nil {
		return nil, err
	}
	timeout := t.Options.Duration("connectTimeout")
	greeting, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if err = c.connect(greeting, t, options); err == nil {
		return c, nil
	}
	if ctx.Err() == nil && greeting.Err() != nil && errors.Is(err, greeting.Err()) {
		err = fmt.Errorf("no answer from %s within %s: %w", strings.Join(t.Hosts, ","), timeout, err)
	}
	return nil, err
}

func (c *conn) connect(ctx context.Context, t driver.Target, options pulsar.ClientOptions) (err error) {
	// The client would dial for operationTimeout and return no reason.
	if err := reach(ctx, t, addresses(t)); err != nil {
		return err
	}
	if c.client, err = pulsar.NewClient(options); err != nil {
		return err
	}
	if err = c.greet(ctx); err != nil {
		brief, cancel := context.WithTimeout(context.WithoutCancel(ctx), 100*time.Millisecond)
		defer cancel()
		_ = c.Close(brief)
	}
	return err
}

func addresses(t driver.Target) []string {
	if t.Options.Bool("tls") {
		return t.Addresses(securePort)
	}
	return t.Addresses(port)
}

// reach connects to one of the servers and hangs up. It returns the reason if none is reached.
func reach(ctx context.Context, t driver.Target, hosts []string) error {
	dial, err := t.Dialer()
	if err != nil {
		return err
	}
	for _, host := range hosts {
		c, failed := dial(ctx, "tcp", host)
		if failed == nil {
			failed = ping(ctx, c)
			_ = c.Close()
		}
		if failed == nil {
			return nil
		}
		err = cmp.Or(err, failed)
	}
	return err
}

// ping checks that a server answers with a frame. The client would take another protocol's first
// bytes for a size, allocate it and wait. A broker answers a ping before the login.
func ping(ctx context.Context, c net.Conn) error {
	const largest = 64 << 20
	defer context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })()
	// Two sizes, and the command 18, an empty ping.
	_, _ = c.Write([]byte("\x00\x00\x00\x09\x00\x00\x00\x05\x08\x12\x92\x01\x00"))
	size := make([]byte, 4)
	if _, err := io.ReadFull(c, size); err != nil {
		return cmp.Or(ctx.Err(), err)
	}
	if n := binary.BigEndian.Uint32(size); n > largest {
		return fmt.Errorf("the answer begins with %q, which would be a frame of %d bytes", size, n)
	}
	return nil
}

func (c *conn) options(t driver.Target) (pulsar.ClientOptions, error) {
	o := t.Options
	secure, err := t.TLS()
	if err != nil {
		return pulsar.ClientOptions{}, err
	}
	scheme := "pulsar://"
	if secure != nil {
		t.Options["tls"] = true
		scheme = "pulsar+ssl://"
	}
	login, err := credentialsOf(t)
	if err != nil {
		return pulsar.ClientOptions{}, err
	}
	c.admin, err = newAdmin(adminURL(t, secure != nil), secure, login, o.Duration("operationTimeout"))
	if err != nil {
		return pulsar.ClientOptions{}, err
	}
	options := pulsar.ClientOptions{
		URL:                   scheme + strings.Join(addresses(t), ","),
		ConnectionTimeout:     o.Duration("connectTimeout"),
		OperationTimeout:      o.Duration("operationTimeout"),
		Authentication:        login.client,
		ListenerName:          o.String("listenerName"),
		Logger:                c.journal,
		MetricsRegisterer:     prometheus.NewRegistry(), // the default one is the process's
		MetricsCardinality:    pulsar.MetricsCardinalityNone,
		ConnectionMaxIdleTime: -1, // a rare sender's next message would wait for a new connection
		MemoryLimitBytes:      -1, // the engine has a window
		Description:           t.ClientName,
	}
	if secure != nil {
		options.TLSConfig = secure
		if t.Options.String("tlsServerName") == "" {
			options.TLSConfig = secure.Clone() // the client's dialer takes the name from the address
		}
	}
	return options, nil
}

// greet checks that a broker answers, and reads its version.
func (c *conn) greet(ctx context.Context) error {
	t, err := c.topic("xk6-broker")
	if err != nil {
		return &driver.OptionError{Name: "namespace", Err: fmt.Errorf("%q is not tenant/namespace", c.namespace)}
	}
	asking, cancel := context.WithCancel(ctx)
	defer cancel()
	refused := make(chan struct{})
	go func() { // the client would repeat its request
		defer close(refused)
		select {
		case <-c.journal.refused:
			cancel()
		case <-asking.Done():
		}
	}()
	_, err = await(asking, c, func() ([]string, error) { return c.client.TopicPartitions(t.String()) }, nil)
	cancel()
	<-refused
	if !answered(err) {
		if cause := c.journal.last.Load(); cause != nil && ctx.Err() == nil {
			return *cause
		}
		return err
	}
	c.info = driver.Info{Server: "Apache Pulsar", Client: "pulsar-client-go" + clientVersion()}
	if version, err := c.admin.version(ctx); err == nil {
		c.info.Server += " " + version
	}
	c.info.Nodes = c.admin.brokers(ctx)
	return ctx.Err()
}

// answered reports whether a broker has answered a question about a topic, which may be absent or
// forbidden.
func answered(err error) bool {
	return err == nil || classify(err) == driver.NotFound || strings.Contains(err.Error(), "AuthorizationError")
}

// clientVersion is the version of the client in this program, after a space.
func clientVersion() string {
	build, _ := debug.ReadBuildInfo()
	if build == nil {
		return ""
	}
	for _, m := range build.Deps {
		if m.Path == "github.com/apache/pulsar-client-go" {
			return " " + m.Version
		}
	}
	return ""
}

// Info implements [driver.Informer].
func (c *conn) Info() driver.Info { return c.info }

// Close closes the client. Calls without an answer end after operationTimeout.
func (c *conn) Close(ctx context.Context) error {
	c.closing.Do(func() {
		go func() {
			defer close(c.closed)
			c.client.Close()
			c.running.Wait()
		}()
	})
	select {
	case <-c.closed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
