package kurrentdb

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"net"
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
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver/redial"
)

// port is that of a host that names none.
const port = "2113"

// sign is how often a connection on which nothing comes is asked for a sign of life, and how long that may take, as the product's own clients have it.
const sign = 10 * time.Second

// servers are the URL's hosts, of which one is used: the only one, or the cluster's leader.
type servers struct {
	hosts   []string
	within  time.Duration // connectTimeout
	reach   driver.Dial
	options []grpc.DialOption
	link    *redial.Link[*node]
	// patient has a call wait for the connection that gRPC makes again. Where there are several hosts another may be the leader by now, so that a call
	// which finds no connection fails, and the next one looks for it.
	patient grpc.CallOption
}

// node is one server, with the connection to it, which gRPC makes again after it broke.
type node struct {
	streams  streams.StreamsClient
	groups   persistent.PersistentSubscriptionsClient
	gossip   gossip.GossipClient
	channel  *grpc.ClientConn
	version  string
	replaced chan struct{} // holds a token once another node is to be found
}

func newServers(t driver.Target) (*servers, error) {
	reach, err := t.Dialer()
	if err != nil {
		return nil, err
	}
	secure, err := t.TLS()
	if err != nil {
		return nil, err
	}
	s := &servers{hosts: t.Addresses(port), within: t.Options.Duration("connectTimeout"), reach: reach}
	s.patient = grpc.WaitForReady(len(s.hosts) == 1)
	creds := insecure.NewCredentials()
	if secure != nil {
		creds = credentials.NewTLS(secure)
	}
	pauses := backoff.Config{BaseDelay: redial.Pause(1), Multiplier: 2, Jitter: 0.2, MaxDelay: time.Second}
	s.options = []grpc.DialOption{
		grpc.WithTransportCredentials(creds),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: pauses, MinConnectTimeout: s.within}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(math.MaxInt32), grpc.MaxCallSendMsgSize(math.MaxInt32)),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: sign, Timeout: sign, PermitWithoutStream: true}),
		grpc.WithIdleTimeout(0), // a rare sender's next message would wait for a new connection
		grpc.WithDisableServiceConfig(),
		grpc.WithUserAgent(cmp.Or(t.ClientName, "xk6-broker")),
	}
	if dial := t.Network.Dial; dial != nil {
		s.options = append(s.options, grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) { return dial(ctx, "tcp", address) }))
	}
	if user, password := t.Login(); user != "" {
		if secure == nil {
			return nil, &driver.OptionError{Name: "user", Err: errors.New("a server that asks for users speaks TLS: set option \"tls\", or leave the user out")}
		}
		s.options = append(s.options, grpc.WithPerRPCCredentials(login(user, password)))
	}
	s.link = redial.New(s.find, (*node).stale)
	return s, nil
}

// basic is a user and a password, as each call has them.
type basic struct{ header map[string]string }

func login(user, password string) basic {
	return basic{map[string]string{"authorization": "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))}}
}

func (b basic) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return b.header, nil
}

func (basic) RequireTransportSecurity() bool { return true }

// find connects to the first host that answers, and of several to the leader that it names.
func (s *servers) find(ctx context.Context) (*node, error) {
	if old, ok := s.link.Last(); ok {
		_ = old.channel.Close()
	}
	var failed error
	for _, host := range s.hosts {
		n, err := s.connect(ctx, host)
		if err == nil {
			return n, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if failed == nil {
			failed = err
		}
	}
	return nil, failed
}

// connect connects by a host within connectTimeout.
func (s *servers) connect(ctx context.Context, host string) (*node, error) {
	begin := time.Now()
	greeting, cancel := context.WithTimeout(ctx, s.within)
	defer cancel()
	n, err := s.by(greeting, host)
	if err != nil && ctx.Err() == nil && time.Since(begin) >= s.within { // gRPC gives up by a clock of its own, which may run out a little before the context
		err = fmt.Errorf("no answer from %s within %s: %w", host, s.within, context.DeadlineExceeded)
	}
	return n, err
}

func (s *servers) by(ctx context.Context, host string) (*node, error) {
	n, err := s.at(ctx, host)
	if err != nil || len(s.hosts) == 1 {
		return n, err
	}
	leader, err := n.leader(ctx)
	if err == nil && (leader == "" || leader == host) {
		return n, nil
	}
	_ = n.channel.Close()
	if err != nil {
		return nil, fmt.Errorf("asking %s for the cluster's members: %w", host, err)
	}
	if n, err = s.at(ctx, leader); err != nil {
		return nil, fmt.Errorf("the leader %s, which %s names: %w", leader, host, err)
	}
	return n, nil
}

// at connects to a server, and has it say what it is.
func (s *servers) at(ctx context.Context, address string) (*node, error) {
	c, err := s.reach(ctx, "tcp", address) // gRPC would go on dialing, and say less of why
	if err != nil {
		return nil, err
	}
	_ = c.Close()
	channel, err := grpc.NewClient("passthrough:///"+address, s.options...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", address, err)
	}
	n := &node{
		streams: streams.NewStreamsClient(channel), groups: persistent.NewPersistentSubscriptionsClient(channel), gossip: gossip.NewGossipClient(channel),
		channel: channel, replaced: make(chan struct{}, 1),
	}
	has, err := serverfeatures.NewServerFeaturesClient(channel).GetSupportedMethods(ctx, &shared.Empty{})
	if err != nil {
		_ = channel.Close()
		return nil, explain(answered(err, nil), address)
	}
	n.version = has.GetEventStoreServerVersion()
	return n, nil
}

// explain names a server that speaks something else.
func explain(err error, address string) error {
	var answer *answerError
	if !errors.As(err, &answer) {
		return err
	}
	told := fmt.Errorf("%s does not answer as KurrentDB does, whose port for gRPC is %s by default: %w", address, port, err)
	switch answer.code {
	case codes.Unavailable:
		// A web server, by itself or by TLS. Who just hangs up may be a KurrentDB.
		if strings.Contains(answer.text, "HTTP/1.1 header") || strings.Contains(answer.text, "no application protocol") {
			return &driver.ProtocolError{Protocol: protocol.Name, Err: told}
		}
		return told
	case codes.Internal, codes.Unknown, codes.Unimplemented:
		return &driver.ProtocolError{Protocol: protocol.Name, Err: told}
	}
	return err
}

// stale reports whether another node is to be found.
func (n *node) stale() bool { return len(n.replaced) > 0 }

// replace has the next use look for another node.
func (n *node) replace() {
	select {
	case n.replaced <- struct{}{}:
	default:
	}
}

// leader is the address of the cluster's leader; empty where there is none now.
func (n *node) leader(ctx context.Context) (string, error) {
	known, err := n.gossip.Read(ctx, &shared.Empty{})
	if err != nil {
		return "", answered(err, nil)
	}
	for _, m := range known.GetMembers() {
		if at := m.GetHttpEndPoint(); m.GetIsAlive() && m.GetState() == gossip.MemberInfo_Leader && at.GetAddress() != "" {
			return net.JoinHostPort(at.GetAddress(), strconv.FormatUint(uint64(at.GetPort()), 10)), nil
		}
	}
	return "", nil
}

// product is what the server calls itself, by its version: it got its present name with 25.0.
func (n *node) product() string {
	first, _, _ := strings.Cut(n.version, ".")
	if major, err := strconv.Atoi(first); err == nil && major < 25 {
		return "EventStoreDB " + n.version
	}
	return strings.TrimSpace("KurrentDB " + n.version)
}
