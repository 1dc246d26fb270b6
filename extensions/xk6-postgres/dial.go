package postgres

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// configure returns the configuration of the target. The environment and the files of libpq are
// ignored.
func configure(t driver.Target) (*pgx.ConnConfig, error) {
	secure, err := t.TLS()
	if err != nil {
		return nil, err
	}
	config, err := pgx.ParseConfig(
		"host=127.0.0.1 port=5432 user=postgres dbname=postgres sslmode=disable target_session_attrs=any",
	)
	if err != nil {
		return nil, fmt.Errorf("the settings of the environment: %w", err)
	}
	user, password := t.Login()
	config.User, config.Password = cmp.Or(user, "postgres"), password
	config.Database = cmp.Or(strings.Trim(t.URL.Path, "/"), "postgres")
	config.ConnectTimeout = t.Options.Duration("connectTimeout")
	config.DialFunc = pgconn.DialFunc(t.Plain())
	if t.Network.Dial != nil { // which resolves names
		config.LookupFunc = func(_ context.Context, host string) ([]string, error) { return []string{host}, nil }
	}
	config.RuntimeParams = map[string]string{"application_name": cmp.Or(t.ClientName, "xk6-broker")}
	config.OnNotification = nil

	servers, err := fallbacks(t.Addresses("5432"), secure)
	if err != nil {
		return nil, err
	}
	config.Host, config.Port, config.TLSConfig = servers[0].Host, servers[0].Port, servers[0].TLSConfig
	config.Fallbacks = servers[1:]
	if len(servers) > 1 { // which of them is the primary changes
		config.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	return config, nil
}

// fallbacks are the servers, in the order in which they are tried.
func fallbacks(addresses []string, secure *tls.Config) ([]*pgconn.FallbackConfig, error) {
	servers := make([]*pgconn.FallbackConfig, len(addresses))
	for i, address := range addresses {
		host, text, err := net.SplitHostPort(address)
		if err != nil {
			return nil, fmt.Errorf("the broker's URL: %w", err)
		}
		port, err := strconv.ParseUint(text, 10, 16)
		if err != nil {
			return nil, fmt.Errorf("the broker's URL: port %q is not a number up to 65535", text)
		}
		servers[i] = &pgconn.FallbackConfig{Host: host, Port: uint16(port)}
		if secure != nil {
			own := secure.Clone()
			own.ServerName = cmp.Or(own.ServerName, host)
			servers[i].TLSConfig = own
		}
	}
	return servers, nil
}

// session is one connection to the server.
type session struct {
	*pgx.Conn
	woken bool   // a notification has come
	later bool   // and one of a message that is to be delivered later
	doubt string // what the server warned of since the last statement
}

// delayed is the payload of a notification about a message that is not to be delivered yet.
const delayed = "delayed"

// dial connects, and learns of notifications and of warnings.
func dial(ctx context.Context, config *pgx.ConnConfig) (*session, error) {
	s := &session{}
	own := config.Copy()
	own.OnNotification = func(_ *pgconn.PgConn, n *pgconn.Notification) {
		s.woken = true
		s.later = s.later || n.Payload == delayed
	}
	own.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
		if n.SeverityUnlocalized == "WARNING" {
			s.doubt = n.Message
		}
	}
	c, err := pgx.ConnectConfig(ctx, own)
	s.Conn = c
	return s, err
}

// hear turns on warnings, because a commit that did not wait for a standby is only a warning. It is
// a statement, because poolers refuse such a setting of a connection.
func (s *session) hear(ctx context.Context) error {
	_, err := s.Exec(ctx, "SET client_min_messages = warning", pgx.QueryExecModeSimpleProtocol)
	return err
}

// close ends a session; where ctx ends first the connection's remains end by themselves soon.
func (s *session) close(ctx context.Context) error {
	err := s.Close(ctx)
	select {
	case <-s.PgConn().CleanupDone():
	case <-ctx.Done():
	}
	return err
}
