package kurrentdb

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"net"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/kurrent-io/KurrentDB-Client-Go/protos/kurrentdb/protocols/v1/gossip"
	"github.com/kurrent-io/KurrentDB-Client-Go/protos/kurrentdb/protocols/v1/persistent"
	"github.com/kurrent-io/KurrentDB-Client-Go/protos/kurrentdb/protocols/v1/serverfeatures"
	"github.com/kurrent-io/KurrentDB-Client-Go/protos/kurrentdb/protocols/v1/shared"
	"github.com/kurrent-io/KurrentDB-Client-Go/protos/kurrentdb/protocols/v1/streams"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver/redial"
)

// port is the default port.
const port = "2113"

// keepAlive is the interval of pings on a silent connection, and their timeout, as in the product's
// own clients.
const keepAlive = 10 * time.Second

// conn is a connection to one server, which gRPC makes again after it broke.
type conn struct {
	name    string // of this client, for the server's tools
	timeout time.Duration
	channel *grpc.ClientConn
	events  streams.StreamsClient
	shares  persistent.PersistentSubscriptionsClient
	info    driver.Info
}

func open(ctx context.Context, t driver.Target) (driver.Conn, error) {
	options, err := dialOptions(t)
	if err != nil {
		return nil, err
	}
	address, within := t.Addresses(port)[0], t.Options.Duration("connectTimeout")
	begin := time.Now()
	greeting, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	c := &conn{name: cmp.Or(t.ClientName, "xk6-broker"), timeout: t.Options.Duration("requestTimeout")}
	if err := c.greet(greeting, t, address, options); err != nil {
		// gRPC may give up a little before the context ends.
		if ctx.Err() == nil && time.Since(begin) >= within {
			err = fmt.Errorf("no answer from %s within %s: %w", address, within, context.DeadlineExceeded)
		}
		return nil, err
	}
	if members, err := c.members(ctx); err == nil { // not every user may ask
		c.info.Nodes = members
	}
	return c, nil
}

// greet connects and reads the server's version.
func (c *conn) greet(ctx context.Context, t driver.Target, address string, options []grpc.DialOption) error {
	dial, err := t.Dialer()
	if err != nil {
		return err
	}
	probe, err := dial(ctx, "tcp", address) // gRPC would dial until ctx ends, without a reason
	if err != nil {
		return err
	}
	_ = probe.Close()
	if c.channel, err = grpc.NewClient("passthrough:///"+address, options...); err != nil {
		return fmt.Errorf("%s: %w", address, err)
	}
	c.events = streams.NewStreamsClient(c.channel)
	c.shares = persistent.NewPersistentSubscriptionsClient(c.channel)
	features := serverfeatures.NewServerFeaturesClient(c.channel)
	has, err := features.GetSupportedMethods(ctx, &shared.Empty{}, grpc.WaitForReady(false))
	if err != nil {
		_ = c.channel.Close()
		return answered(err, nil)
	}
	c.info = driver.Info{
		Server: product(has.GetEventStoreServerVersion()),
		Client: "KurrentDB-Client-Go" + clientVersion() + " (protocol)",
	}
	return nil
}

func dialOptions(t driver.Target) ([]grpc.DialOption, error) {
	secure, err := t.TLS()
	if err != nil {
		return nil, err
	}
	creds := insecure.NewCredentials()
	if secure != nil {
		creds = credentials.NewTLS(secure)
	}
	within := t.Options.Duration("connectTimeout")
	pauses := backoff.Config{BaseDelay: redial.Pause(1), Multiplier: 2, Jitter: 0.2, MaxDelay: time.Second}
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(creds),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: pauses, MinConnectTimeout: within}),
		grpc.WithDefaultCallOptions(
			grpc.MaxCallRecvMsgSize(math.MaxInt32), grpc.MaxCallSendMsgSize(math.MaxInt32), grpc.WaitForReady(true)),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{
			Time: keepAlive, Timeout: keepAlive, PermitWithoutStream: true,
		}),
		grpc.WithIdleTimeout(0), // a rare sender's next message would wait for a new connection
		grpc.WithDisableServiceConfig(),
		grpc.WithUserAgent(cmp.Or(t.ClientName, "xk6-broker")),
	}
	if dial := t.Network.Dial; dial != nil {
		options = append(options, grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			return dial(ctx, "tcp", address)
		}))
	}
	if user, password := t.Login(); user != "" {
		if secure == nil {
			return nil, &driver.OptionError{Name: "user", Err: errors.New(`users need TLS: set option "tls"`)}
		}
		options = append(options, grpc.WithPerRPCCredentials(login(user, password)))
	}
	return options, nil
}

// basic has the user and the password of each call.
type basic struct{ header map[string]string }

func login(user, password string) basic {
	text := base64.StdEncoding.EncodeToString([]byte(user + ":" + password))
	return basic{map[string]string{"authorization": "Basic " + text}}
}

func (b basic) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return b.header, nil
}

func (basic) RequireTransportSecurity() bool { return true }

// product returns the server's name by its version: it was renamed with 25.0.
func product(version string) string {
	first, _, _ := strings.Cut(version, ".")
	if major, err := strconv.Atoi(first); err == nil && major < 25 {
		return "EventStoreDB " + version
	}
	return strings.TrimSpace("KurrentDB " + version)
}

// clientVersion is the version of the client library in this program, after a space.
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

// call makes one request. It is never repeated: the server may have done a failed one.
func (c *conn) call(ctx context.Context, do func(ctx context.Context, o grpc.CallOption) error) error {
	within, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	var trailer metadata.MD
	err := do(leading(within), grpc.Trailer(&trailer))
	return c.late(ctx, within, answered(err, trailer))
}

// stream opens a stream within the timeout of a request. It lives until life ends or end is called.
func (c *conn) stream(
	ctx, life context.Context, open func(ctx context.Context) error,
) (end context.CancelFunc, err error) {
	within, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	streaming, end := context.WithCancel(life)
	stop := context.AfterFunc(within, end)
	err = open(leading(streaming))
	if !stop() && err == nil {
		err = within.Err()
	}
	if err != nil {
		end()
		return nil, c.late(ctx, within, err)
	}
	return end, nil
}

// leading requires a leader: another server of a cluster may not have the last writes.
func leading(ctx context.Context) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "requires-leader", "true")
}

// late replaces the error of an ended context by its reason: the caller's context or
// requestTimeout.
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

// members returns how many servers share the writes, by their gossip. Read-only replicas do not
// count.
func (c *conn) members(ctx context.Context) (count int, err error) {
	client := gossip.NewGossipClient(c.channel)
	err = c.call(ctx, func(ctx context.Context, o grpc.CallOption) error {
		cluster, err := client.Read(ctx, &shared.Empty{}, o)
		if err != nil {
			return err
		}
		for _, m := range cluster.GetMembers() {
			switch m.GetState() {
			case gossip.MemberInfo_Manager, gossip.MemberInfo_ReadOnlyLeaderless,
				gossip.MemberInfo_PreReadOnlyReplica, gossip.MemberInfo_ReadOnlyReplica:
			default:
				count++
			}
		}
		return nil
	})
	return count, err
}

// Proof implements [driver.Prover]. The number of members in a quorum is a setting of the cluster,
// which no request returns.
func (c *conn) Proof(ctx context.Context, _ driver.ProducerConfig, _ *driver.TopicSpec) driver.Proof {
	members, err := c.members(ctx)
	switch {
	case err != nil:
		return driver.Proof{Confirm: driver.Accepted, How: "one server has it in its log; the others are not known"}
	case members > 1:
		how := fmt.Sprintf("a quorum of the cluster has it, which has %d members by its gossip", members)
		return driver.Proof{Confirm: driver.Replicated, How: how}
	default:
		return driver.Proof{Confirm: driver.Accepted, How: "one server has it in its log"}
	}
}

// Info implements [driver.Informer].
func (c *conn) Info() driver.Info { return c.info }

// Close closes the connection. Closing again is no error.
func (c *conn) Close(context.Context) error {
	_ = c.channel.Close()
	return nil
}
