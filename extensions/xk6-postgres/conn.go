package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// conn is one server, with a connection for administration. Producers and consumers have their own.
type conn struct {
	config  *pgx.ConnConfig
	options driver.Values
	line    *line
	about   driver.Info
}

func open(ctx context.Context, t driver.Target) (driver.Conn, error) {
	config, err := configure(t)
	if err != nil {
		return nil, err
	}
	c := &conn{config: config, options: t.Options}
	c.line = c.newLine(nil)
	c.line.idle = true
	if err := c.line.do(ctx, c.inquire); err != nil {
		_ = c.line.close(ctx)
		return nil, err
	}
	return c, nil
}

// newLine returns a line that calls prepare, if not nil, for every session.
func (c *conn) newLine(prepare func(ctx context.Context, s *session) error) *line {
	return newLine(c.config, c.options.Duration("timeout"), prepare)
}

// inquire reads the server's version and replicas. Not every user may see replicas.
func (c *conn) inquire(ctx context.Context, s *session) error {
	version, _, _ := strings.Cut(s.PgConn().ParameterStatus("server_version"), " ")
	c.about = driver.Info{
		Server: "PostgreSQL " + version,
		Client: "pgx" + driver.ModuleVersion("github.com/jackc/pgx/v5"),
		Nodes:  1,
	}
	var replicas int
	if err := s.QueryRow(ctx, "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'").Scan(&replicas); err != nil {
		return fmt.Errorf("asking for the replicas: %w", err)
	}
	c.about.Nodes += replicas
	return nil
}

// Info describes the server.
func (c *conn) Info() driver.Info { return c.about }

// As lends a copy of the configuration, to connect beside this connection.
func (c *conn) As(target any) bool { return driver.As(target, c.config.Copy()) }

// Close closes the connection for administration.
func (c *conn) Close(ctx context.Context) error { return c.line.close(ctx) }
