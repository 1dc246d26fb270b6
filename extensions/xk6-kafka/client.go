package kafka

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver/redial"
)

const (
	// metadataMinAge bounds how often a client asks for the partitions' leaders. It is the value of
	// Kafka's own client; the library's 5 s would add up to 5 s to every failover.
	metadataMinAge = 100 * time.Millisecond
	// idleTimeout is Kafka's own. After the library's 30 s the next message of a rare sender would
	// wait for a new connection.
	idleTimeout = 9 * time.Minute
)

// client is a client of the library whose requests, and whose end, can be aborted.
type client struct {
	*kgo.Client
	abort context.CancelFunc
}

func newClient(options ...kgo.Opt) (*client, error) {
	base, abort := context.WithCancel(context.Background())
	c, err := kgo.NewClient(append([]kgo.Opt{kgo.WithContext(base)}, options...)...)
	if err != nil {
		abort()
		return nil, err
	}
	return &client{c, abort}, nil
}

// end closes the client. When ctx ends it no longer waits for the broker.
func (c *client) end(ctx context.Context) {
	defer c.abort()
	defer context.AfterFunc(ctx, c.abort)()
	c.Close()
}

// drop is end after a failure, whose cause may be the caller's context.
func (c *client) drop() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	c.end(ctx)
}

// clientOptions are the options of all clients of a connection.
func clientOptions(t driver.Target) ([]kgo.Opt, error) {
	if len(t.Hosts) == 0 || t.Hosts[0] == "" {
		return nil, errors.New(`the URL names no broker: it should look like "kafka://127.0.0.1:9092"`)
	}
	dial, err := dialer(t)
	if err != nil {
		return nil, err
	}
	mechanism, err := saslMechanism(t)
	if err != nil {
		return nil, err
	}
	options := []kgo.Opt{
		kgo.SeedBrokers(t.Hosts...),
		kgo.Dialer(dial),
		kgo.RetryTimeout(t.Options.Duration("requestTimeout")),
		kgo.RequestTimeoutOverhead(t.Options.Duration("requestTimeout")),
		kgo.RetryBackoffFn(redial.Pause), // the library's default is up to 5 s
		kgo.MetadataMinAge(metadataMinAge),
		kgo.ConnIdleTimeout(idleTimeout),
		kgo.DisableClientMetrics(), // traffic that the test did not ask for
	}
	if t.ClientName != "" {
		options = append(options, kgo.ClientID(t.ClientName))
	}
	if mechanism != nil {
		options = append(options, kgo.SASL(refusing{mechanism}))
	}
	return options, nil
}

// lastFailure keeps the error of a producer's last request. The library fails a message after its
// retries with [kgo.ErrRecordRetries], without the cause.
type lastFailure struct{ err atomic.Pointer[error] }

const produceKey = 0 // of the protocol's requests

func (l *lastFailure) OnBrokerE2E(_ kgo.BrokerMetadata, key int16, e2e kgo.BrokerE2E) {
	if key != produceKey {
		return
	}
	if err := e2e.Err(); err != nil {
		l.err.Store(&err)
	} else if l.err.Load() != nil {
		l.err.Store(nil)
	}
}

func (l *lastFailure) OnBrokerConnect(_ kgo.BrokerMetadata, _ time.Duration, _ net.Conn, err error) {
	if err != nil {
		l.err.Store(&err)
	}
}

// explain adds the cause to the error of a client that has given up.
func (l *lastFailure) explain(err error) error {
	if !errors.Is(err, kgo.ErrRecordRetries) && !errors.Is(err, kgo.ErrRecordTimeout) {
		return err
	}
	if cause := l.err.Load(); cause != nil {
		return &abandoned{err, *cause}
	}
	return err
}

// abandoned is the error of a client that gave up, with the cause.
type abandoned struct{ err, cause error }

func (a *abandoned) Error() string   { return a.err.Error() + ": " + a.cause.Error() }
func (a *abandoned) Unwrap() []error { return []error{a.cause, a.err} }
