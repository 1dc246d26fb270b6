package rocketmq

import (
	"context"
	"crypto/hmac"
	"crypto/sha1" //gosec:disable G505 -- the protocol's own
	"encoding/hex"
	"fmt"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"time"

	headers "github.com/apache/rocketmq-clients/golang/v5/metadata"
	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver/redial"
)

// servers are the proxies, each with its connection, which gRPC makes again after it broke.
type servers struct {
	given     []string // the URL's
	preferred atomic.Pointer[string]
	only      bool // the URL's are used, whatever is advertised
	dial      driver.Dial
	reach     func(ctx context.Context, host string) error
	options   []grpc.DialOption
	namespace string
	user      string
	password  string
	signed    atomic.Pointer[signature]

	mu     sync.Mutex
	open   map[string]*server
	closed bool
}

// server is one of them.
type server struct {
	v2.MessagingServiceClient
	channel *grpc.ClientConn
	address string
}

func newServers(t driver.Target) (*servers, error) {
	dial, err := t.Dialer()
	if err != nil {
		return nil, err
	}
	secure, err := t.TLS()
	if err != nil {
		return nil, err
	}
	s := &servers{
		given: t.Addresses(port), only: t.Options.String("endpoints") == "url", namespace: t.Options.String("namespace"),
		dial: bounded(t.Plain(), t.Options.Duration("connectTimeout")), open: map[string]*server{},
	}
	s.reach = func(ctx context.Context, host string) error {
		c, err := dial(ctx, "tcp", host)
		if err == nil {
			_ = c.Close()
		}
		return err
	}
	if s.user, s.password = t.Login(); s.user != "" && s.password == "" {
		return nil, fmt.Errorf("user %q needs a password, in the URL or as the option password", s.user)
	}
	creds := insecure.NewCredentials()
	if secure != nil {
		creds = credentials.NewTLS(secure)
	}
	pauses := backoff.Config{BaseDelay: redial.Pause(1), Multiplier: 2, Jitter: 0.2, MaxDelay: time.Second}
	s.options = []grpc.DialOption{
		grpc.WithTransportCredentials(creds),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: pauses, MinConnectTimeout: t.Options.Duration("connectTimeout")}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(math.MaxInt32), grpc.MaxCallSendMsgSize(math.MaxInt32)),
		grpc.WithIdleTimeout(0), // a rare sender's next message would wait for a new connection
		grpc.WithDisableServiceConfig(),
	}
	if dial := t.Network.Dial; dial != nil {
		s.options = append(
			s.options,
			grpc.WithContextDialer(
				func(ctx context.Context, address string) (net.Conn, error) { return dial(ctx, "tcp", address) },
			),
		)
	}
	return s, nil
}

// bounded bounds dialing.
func bounded(dial driver.Dial, limit time.Duration) driver.Dial {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		return dial(ctx, network, address)
	}
}

// at returns the server of an address. With endpoints=url it is the one that answered first.
func (s *servers) at(address string) (*server, error) {
	if host := s.preferred.Load(); s.only && host != nil {
		address = *host
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, driver.ErrClosed
	}
	if one, ok := s.open[address]; ok {
		return one, nil
	}
	channel, err := grpc.NewClient("passthrough:///"+address, s.options...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", address, err)
	}
	one := &server{v2.NewMessagingServiceClient(channel), channel, address}
	s.open[address] = one
	return one, nil
}

// prefer notes which of the URL's hosts answers.
func (s *servers) prefer(host string) { s.preferred.Store(&host) }

// ways are the URL's hosts, the one that answered last first.
func (s *servers) ways() []string {
	first := s.preferred.Load()
	if first == nil {
		return s.given
	}
	ways := []string{*first}
	for _, host := range s.given {
		if host != *first {
			ways = append(ways, host)
		}
	}
	return ways
}

func (s *servers) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, one := range s.open {
		_ = one.channel.Close()
	}
	clear(s.open)
}

// signature is a signature, which is valid for a second.
type signature struct{ second, authorization string }

// as adds the client's name and the user to a call's context.
func (s *servers) as(ctx context.Context, client string) context.Context {
	second := time.Now().UTC().Format("20060102T150405Z")
	pairs := []string{
		headers.LanguageKey, headers.LanguageValue, headers.ProtocolKey, headers.ProtocolValue, headers.VersionKey,
		headers.VersionValue,
		headers.ClintID, client, headers.NameSpace, s.namespace, headers.DateTime, second,
	}
	if s.user != "" {
		pairs = append(pairs, headers.Authorization, s.authorization(second))
	}
	return metadata.AppendToOutgoingContext(ctx, pairs...)
}

func (s *servers) authorization(second string) string {
	if last := s.signed.Load(); last != nil && last.second == second {
		return last.authorization
	}
	code := hmac.New(sha1.New, []byte(s.password))
	_, _ = code.Write([]byte(second))
	made := fmt.Sprintf("%s %s=%s, %s=%s, %s=%s", headers.EncryptHeader, headers.Credential, s.user,
		headers.SignedHeaders, headers.DateTime, headers.Signature, hex.EncodeToString(code.Sum(nil)))
	s.signed.Store(&signature{second, made})
	return made
}
