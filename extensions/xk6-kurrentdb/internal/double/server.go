// Package double is a gRPC server in memory that stands in for KurrentDB in tests. It was written
// against the published protocol and the product's documentation, and is no proof for the real
// product, above all for persistent subscriptions.
package double

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/base64"
	"net"
	"sync"
	"time"

	"github.com/kurrent-io/KurrentDB-Client-Go/protos/kurrentdb/protocols/v1/gossip"
	"github.com/kurrent-io/KurrentDB-Client-Go/protos/kurrentdb/protocols/v1/persistent"
	"github.com/kurrent-io/KurrentDB-Client-Go/protos/kurrentdb/protocols/v1/serverfeatures"
	"github.com/kurrent-io/KurrentDB-Client-Go/protos/kurrentdb/protocols/v1/shared"
	"github.com/kurrent-io/KurrentDB-Client-Go/protos/kurrentdb/protocols/v1/streams"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// Config describes the server. The zero value is one server without users.
type Config struct {
	Address string // host and port; a free port of loopback where empty
	Version string // 26.1.0 where empty
	TLS     *tls.Config
	User    string // the only one that may do anything, where it is not empty
	// Password is the user's.
	Password string
	// MaxAppendSize is that of one append, in bytes; the product's of today where 0.
	MaxAppendSize int
}

// What the product takes by its defaults, in bytes.
const (
	maxAppendSize = 256 << 20
	maxEventSize  = 16 << 20
)

// Server is a running one.
type Server struct {
	config   Config
	listener net.Listener
	grpc     *grpc.Server
	stop     chan struct{}
	running  sync.WaitGroup

	mu       sync.Mutex
	streams  map[string]*stream
	groups   map[groupKey]*group
	position uint64 // of the log
	appends  int
	members  []*gossip.MemberInfo // what the gossip says; where it is nil the server itself, leading
	follows  bool

	serverfeatures.UnimplementedServerFeaturesServer
}

// The services have methods of the same names.
type (
	gossiping struct {
		s *Server
		gossip.UnimplementedGossipServer
	}
	streaming struct {
		s *Server
		streams.UnimplementedStreamsServer
	}
	sharing struct {
		s *Server
		persistent.UnimplementedPersistentSubscriptionsServer
	}
)

// Start starts one.
func Start(c Config) (*Server, error) {
	listener, err := net.Listen("tcp", cmp.Or(c.Address, "127.0.0.1:0"))
	if err != nil {
		return nil, err
	}
	s := &Server{
		config:   c,
		listener: listener,
		stop:     make(chan struct{}),
		streams:  map[string]*stream{},
		groups:   map[groupKey]*group{},
	}
	options := []grpc.ServerOption{
		grpc.MaxRecvMsgSize(17 << 20),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}),
		grpc.UnaryInterceptor(
			func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
				if err := s.admit(ctx); err != nil {
					return nil, err
				}
				return handle(ctx, request)
			},
		),
		grpc.StreamInterceptor(
			func(server any, call grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
				if err := s.admit(call.Context()); err != nil {
					return err
				}
				return handle(server, call)
			},
		),
	}
	if c.TLS != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(c.TLS)))
	}
	s.grpc = grpc.NewServer(options...)
	serverfeatures.RegisterServerFeaturesServer(s.grpc, s)
	gossip.RegisterGossipServer(s.grpc, &gossiping{s: s})
	persistent.RegisterPersistentSubscriptionsServer(s.grpc, &sharing{s: s})
	streams.RegisterStreamsServer(s.grpc, &streaming{s: s})
	s.running.Go(func() { _ = s.grpc.Serve(listener) })
	s.running.Go(s.expire)
	return s, nil
}

// Addr is the server's host and port.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Stop ends it, with all connections.
func (s *Server) Stop() {
	close(s.stop)
	s.grpc.Stop()
	s.running.Wait()
}

// Appends is how many appends there were.
func (s *Server) Appends() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.appends
}

// admit checks the user's password. A call without a user is denied.
func (s *Server) admit(ctx context.Context) error {
	if s.config.User == "" {
		return nil
	}
	given, _ := metadata.FromIncomingContext(ctx)
	header := given.Get("authorization")
	switch want := "Basic " + base64.StdEncoding.EncodeToString([]byte(s.config.User+":"+s.config.Password)); {
	case len(header) == 0:
		return refuse(ctx, codes.PermissionDenied, "access-denied", "Access Denied")
	case header[0] != want:
		return status.Error(codes.Unauthenticated, "Unauthenticated")
	}
	return nil
}

// refuse returns an error with the product's name for it in the trailer.
func refuse(ctx context.Context, code codes.Code, exception, text string) error {
	_ = grpc.SetTrailer(ctx, metadata.Pairs("exception", exception))
	return status.Error(code, text)
}

// Elect makes the server a member of a cluster with these addresses. The first leads; the fourth
// and further ones are read-only replicas.
func (s *Server) Elect(addresses ...string) error {
	var members []*gossip.MemberInfo
	for i, address := range addresses {
		at, err := net.ResolveTCPAddr("tcp", address)
		if err != nil {
			return err
		}
		m := &gossip.MemberInfo{
			State:        gossip.MemberInfo_Follower,
			IsAlive:      true,
			HttpEndPoint: &gossip.EndPoint{Address: at.IP.String(), Port: uint32(at.Port)},
		} //gosec:disable G115 -- a number of a test, and small
		switch {
		case i == 0:
			m.State = gossip.MemberInfo_Leader
		case i > 2:
			m.State = gossip.MemberInfo_ReadOnlyReplica
		}
		members = append(members, m)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.members, s.follows = members, addresses[0] != s.Addr()
	return nil
}

// lead refuses calls that require a leader if the server follows.
func (s *Server) lead(ctx context.Context) error {
	asked, _ := metadata.FromIncomingContext(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.follows || len(asked.Get("requires-leader")) == 0 {
		return nil
	}
	return refuse(ctx, codes.NotFound, "not-leader", "Leader info available")
}

// Read returns the members of the cluster.
func (g *gossiping) Read(context.Context, *shared.Empty) (*gossip.ClusterInfo, error) {
	g.s.mu.Lock()
	defer g.s.mu.Unlock()
	if g.s.members != nil {
		return &gossip.ClusterInfo{Members: g.s.members}, nil
	}
	at := g.s.listener.Addr().(*net.TCPAddr) //nolint:forcetypeassert // it was made so
	return &gossip.ClusterInfo{Members: []*gossip.MemberInfo{
		{
			State:   gossip.MemberInfo_Leader,
			IsAlive: true,
			HttpEndPoint: &gossip.EndPoint{
				Address: at.IP.String(),
				Port:    uint32(at.Port),
			}, //gosec:disable G115 -- a number of a test, and small
		},
	}}, nil
}

// GetSupportedMethods returns the server's version.
func (s *Server) GetSupportedMethods(context.Context, *shared.Empty) (*serverfeatures.SupportedMethods, error) {
	version := s.config.Version
	if version == "" {
		version = "26.1.0"
	}
	return &serverfeatures.SupportedMethods{EventStoreServerVersion: version}, nil
}
