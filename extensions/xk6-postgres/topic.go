package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// maxName is how long a name may be: the server cuts longer ones off, and two topics would be one.
const maxName = 63

// topic is a table and, by its name, a channel of notifications.
type topic struct {
	name  string
	table string // with its schema, quoted
}

func (c *conn) topic(name string) (topic, error) {
	if name == "" || len(name) > maxName || strings.ContainsRune(name, 0) {
		return topic{}, &driver.OptionError{
			Name: "topic",
			Err:  fmt.Errorf("%q should have from 1 to %d bytes, as PostgreSQL's names, and none that is zero", name, maxName),
		}
	}
	return topic{name: name, table: pgx.Identifier{c.options.String("schema"), name}.Sanitize()}, nil
}

// columns are the columns of a topic's table, with their types.
var columns = [][2]string{
	{"id", "bigint"},
	{"key", "bytea"},
	{"body", "bytea"},
	{"headers", "jsonb"},
	{"created", "timestamp with time zone"},
	{"next_delivery", "timestamp with time zone"},
	{"attempts", "integer"},
}

// definition creates a topic. Bodies are not compressed. The only index is that of the identity, so
// the row version of a delivery can be a heap-only tuple.
const definition = `
CREATE %s TABLE %s (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  key bytea,
  body bytea,
  headers jsonb,
  created timestamptz NOT NULL DEFAULT now(),
  next_delivery timestamptz NOT NULL DEFAULT now(),
  attempts integer NOT NULL DEFAULT 0
) WITH (fillfactor = %d);
ALTER TABLE %[2]s ALTER body SET STORAGE EXTERNAL`

// differenceError reports a table that is not a topic.
type differenceError struct{ table, column, is, want string }

func (e *differenceError) Error() string {
	return fmt.Sprintf(
		"table %s is there and no topic: its column %q is of type %s, and should be %s", e.table, e.column, e.is,
		e.want,
	)
}

// CreateTopic creates the table. An existing one must have a topic's columns, and may have others.
func (c *conn) CreateTopic(ctx context.Context, spec driver.TopicSpec) error {
	t, err := c.topic(spec.Name)
	if err != nil {
		return err
	}
	persistence := ""
	if spec.Options.Bool("unlogged") {
		persistence = "UNLOGGED"
	}
	return c.line.do(ctx, func(ctx context.Context, s *session) error {
		sql := fmt.Sprintf(definition, persistence, t.table, spec.Options.Int("fillFactor"))
		_, err := s.Exec(ctx, sql, pgx.QueryExecModeSimpleProtocol) // both statements in one transaction
		if code(err, duplicateTable, uniqueViolation) {             // the latter of who creates it at the same time
			return t.check(ctx, s)
		}
		return err
	})
}

// SQLSTATEs that are no failures.
const (
	duplicateTable  = "42P07"
	uniqueViolation = "23505"
)

// check returns an error if the table does not have a topic's columns.
func (t topic) check(ctx context.Context, s *session) error {
	rows, err := s.Query(
		ctx,
		`SELECT attname::text, format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped`,
		t.table,
	)
	if err != nil {
		return err
	}
	types := map[string]string{}
	var name, is string
	if _, err := pgx.ForEachRow(rows, []any{&name, &is}, func() error { types[name] = is; return nil }); err != nil {
		return err
	}
	for _, column := range columns {
		if is, there := types[column[0]]; is != column[1] {
			if !there {
				is = "none"
			}
			return &differenceError{t.table, column[0], is, column[1]}
		}
	}
	return nil
}

// DescribeTopic reads the options of the table.
func (c *conn) DescribeTopic(ctx context.Context, name string) (driver.TopicInfo, error) {
	t, err := c.topic(name)
	if err != nil {
		return driver.TopicInfo{}, err
	}
	info := driver.TopicInfo{Replicas: 1}
	err = c.line.do(ctx, func(ctx context.Context, s *session) error {
		if err := t.check(ctx, s); err != nil {
			return err
		}
		var unlogged bool
		var fill int64
		err := s.QueryRow(ctx, `SELECT relpersistence = 'u',
			coalesce((SELECT option_value::bigint FROM pg_options_to_table(reloptions) WHERE option_name = 'fillfactor'), 100)
			FROM pg_class WHERE oid = $1::regclass`, t.table).Scan(&unlogged, &fill)
		info.Options = driver.Values{"unlogged": unlogged, "fillFactor": fill}
		return err
	})
	return info, err
}

// DeleteTopic drops the table.
func (c *conn) DeleteTopic(ctx context.Context, name string) error {
	return c.alter(ctx, "DROP TABLE", name)
}

// PurgeTopic empties the table, including leased messages.
func (c *conn) PurgeTopic(ctx context.Context, name string) error {
	return c.alter(ctx, "TRUNCATE TABLE", name)
}

func (c *conn) alter(ctx context.Context, how, name string) error {
	t, err := c.topic(name)
	if err != nil {
		return err
	}
	return c.line.do(ctx, func(ctx context.Context, s *session) error {
		_, err := s.Exec(ctx, how+" "+t.table, pgx.QueryExecModeSimpleProtocol)
		return err
	})
}

// Backlog counts the rows: each is a message that is not settled.
func (c *conn) Backlog(ctx context.Context, name, group string) (b driver.Backlog, err error) {
	if group != "" {
		return b, fmt.Errorf("groups: %w", errors.ErrUnsupported)
	}
	t, err := c.topic(name)
	if err != nil {
		return b, err
	}
	err = c.line.do(ctx, func(ctx context.Context, s *session) error {
		sql := "SELECT count(*), count(*) FILTER (WHERE attempts = 0) FROM " + t.table
		return s.QueryRow(ctx, sql, pgx.QueryExecModeExec).Scan(&b.Messages, &b.Undelivered)
	})
	return b, err
}
