package postgres

import (
	"context"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// conn is one server. It has a connection for what is not measured; producers and consumers have their own.
type conn struct {
	config  *pgx.ConnConfig
	options driver.Values
	name    string
	line    *line
	about   driver.Info
}

func open(ctx context.Context, t driver.Target) (driver.Conn, error) {
	config, err := configure(t)
	if err != nil {
		return nil, err
	}
	c := &conn{config: config, options: t.Options, name: t.ClientName}
	c.line = c.newLine(nil)
	c.line.idle = true
	if err := c.line.do(ctx, c.inquire); err != nil {
		_ = c.line.close(ctx)
		return nil, err
	}
	return c, nil
}

// newLine makes a line on whose every session prepare is called; it is nil where there is nothing to do.
func (c *conn) newLine(prepare func(ctx context.Context, s *session) error) *line {
	return newLine(c.config, c.options.Duration("timeout"), prepare)
}

// inquire asks what the server is. Not everybody sees its replicas.
func (c *conn) inquire(ctx context.Context, s *session) error {
	version, _, _ := strings.Cut(s.PgConn().ParameterStatus("server_version"), " ")
	c.about = driver.Info{Server: "PostgreSQL " + version, Client: "pgx" + clientVersion(), Nodes: 1}
	var replicas int
	if err := s.QueryRow(ctx, "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'").Scan(&replicas); err != nil {
		return fmt.Errorf("asking for the replicas: %w", err)
	}
	c.about.Nodes += replicas
	return nil
}

// clientVersion is that of the library in this program, after a space; empty where the program does not know.
func clientVersion() string {
	build, _ := debug.ReadBuildInfo()
	if build == nil {
		return ""
	}
	for _, m := range build.Deps {
		if m.Path == "github.com/jackc/pgx/v5" {
			return " " + strings.TrimPrefix(m.Version, "v")
		}
	}
	return ""
}

// Info tells what the connection is to.
func (c *conn) Info() driver.Info { return c.about }

// As lends a copy of the configuration, to connect beside this connection.
func (c *conn) As(target any) bool { return driver.As(target, c.config.Copy()) }

// Close closes the connection that is for what is not measured.
func (c *conn) Close(ctx context.Context) error { return c.line.close(ctx) }
