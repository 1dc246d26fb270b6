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
	"sync/atomic"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// port is that of a host that names none; with TLS it is securePort.
const (
	port       = "6650"
	securePort = "6651"
)

// conn is one client, which has one connection to each broker that it needs.
type conn struct {
	mode      mode
	client    pulsar.Client
	journal   *journal
	admin     *admin
	namespace string
	info      driver.Info

	cumulative atomic.Bool // a consumer settles by cumulative acks

	life    context.Context // ends with Close
	stop    context.CancelFunc
	running sync.WaitGroup // the calls of await
	closing sync.Once
	closed  chan struct{} // when the client is
}

func open(ctx context.Context, t driver.Target, m mode) (driver.Conn, error) {
	c := &conn{mode: m, journal: newJournal(), namespace: t.Options.String("namespace"), closed: make(chan struct{})}
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
	// The client would go on dialing for operationTimeout, and not say why it failed.
	if err := reach(ctx, t, addresses(t)); err != nil {
		return err
	}
	if c.client, err = pulsar.NewClient(options); err != nil {
		return err
	}
	c.life, c.stop = context.WithCancel(context.Background())
	if err = c.greet(ctx); err != nil {
		brief, cancel := context.WithTimeout(context.WithoutCancel(ctx), 100*time.Millisecond) // what failed must not hang as well
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

// reach connects to one of the servers and hangs up: it tells what is wrong with the way to them.
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

// ping has a server answer with a frame: of whoever speaks another protocol the client takes the first words for the size of one, makes room for it, a
// GiB or more, and waits. A broker answers before it knows who asks.
func ping(ctx context.Context, c net.Conn) error {
	const largest = 64 << 20
	defer context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })()
	_, _ = c.Write([]byte("\x00\x00\x00\x09\x00\x00\x00\x05\x08\x12\x92\x01\x00")) // two sizes, the command 18, which is a ping, and that it is empty
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
	who, err := credentialsOf(t)
	if err != nil {
		return pulsar.ClientOptions{}, err
	}
	if c.admin, err = newAdmin(adminURL(t, secure != nil), secure, who, o.Duration("operationTimeout")); err != nil {
		return pulsar.ClientOptions{}, err
	}
	options := pulsar.ClientOptions{
		URL:                   scheme + strings.Join(addresses(t), ","),
		ConnectionTimeout:     o.Duration("connectTimeout"),
		OperationTimeout:      o.Duration("operationTimeout"),
		KeepAliveInterval:     o.Duration("keepAlive"),
		Authentication:        who.client,
		ListenerName:          o.String("listenerName"),
		Logger:                c.journal,
		MetricsRegisterer:     prometheus.NewRegistry(), // its own: the default one is the process's
		MetricsCardinality:    pulsar.MetricsCardinalityNone,
		ConnectionMaxIdleTime: -1, // a rare sender's next message would wait for a new connection
		MemoryLimitBytes:      -1, // the engine's window is the only limit
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

// greet proves that a broker answers, and learns what it is.
func (c *conn) greet(ctx context.Context) error {
	t, err := c.topic("xk6-broker")
	if err != nil {
		return &driver.OptionError{Name: "namespace", Err: fmt.Errorf("%q is not tenant/namespace", c.namespace)}
	}
	asking, cancel := context.WithCancel(ctx)
	defer cancel()
	refused := make(chan struct{})
	go func() { // the client would go on asking
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

// answered reports whether a broker has answered what it was asked of a topic: also that there is none, or none that one may know of.
func answered(err error) bool {
	return err == nil || classify(err) == driver.NotFound || strings.Contains(err.Error(), "AuthorizationError")
}

// clientVersion is the version of the client that this program was built with, after a space.
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

// Info is what the connection found when it opened.
func (c *conn) Info() driver.Info { return c.info }

// As lends the pulsar.Client.
func (c *conn) As(target any) bool { return driver.As(target, c.client) }

// Close closes the client. What a server that does not answer holds up ends after operationTimeout.
func (c *conn) Close(ctx context.Context) error {
	c.closing.Do(func() {
		c.stop()
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
