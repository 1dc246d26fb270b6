package postgres_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/bench"
)

// pgbench runs the statements of the hand-written loops by scripts, prepared, with bodies and identifiers as parameters.
type pgbench struct {
	tb      testing.TB
	command func(args ...string) *exec.Cmd
	server  string
	client  *pgx.Conn
	table   string
}

func newPgbench(b *testing.B, client *pgx.Conn, table pgx.Identifier) (p *pgbench, ok bool) {
	b.Helper()
	command, ok := bench.Program(b, "BENCH_PGBENCH", "pgbench")
	server, err := url.Parse(os.Getenv("BROKER_URL_POSTGRES"))
	if err != nil {
		b.Fatal("BROKER_URL_POSTGRES is malformed")
	}
	server.RawQuery = "" // it does not know our options
	return &pgbench{b, command, server.String(), client, table.Sanitize()}, ok
}

// insert has one transaction under way at a time, of so many messages.
func (p *pgbench) insert(count, each int, body []byte) bench.Loop {
	p.tb.Helper()
	bodies := bytes.TrimSuffix(bytes.Repeat(append(body, ','), each), []byte(","))
	return p.loop(count, each, 1, count, fmt.Sprintf(`\startpipeline
INSERT INTO %s (body) SELECT unnest(:bodies::bytea[]);
SELECT pg_notify('raw', '');
\endpipeline
`, p.table), "--define", fmt.Sprintf("bodies={%s}", bodies))
}

// consume has two transactions under way at a time: as the driver leases the next messages while it deletes the last. It keeps one row of an answer only, so
// the messages are in one.
func (p *pgbench) consume(count, each int) bench.Loop {
	p.tb.Helper()
	return p.loop(count, each, 2, 0, fmt.Sprintf(`WITH chosen AS MATERIALIZED (
	SELECT id FROM %[1]s WHERE next_delivery <= now() ORDER BY id LIMIT %[2]d FOR UPDATE SKIP LOCKED
), leased AS (
	UPDATE %[1]s AS t SET next_delivery = now() + interval '30 s', attempts = attempts + 1 FROM chosen WHERE t.id = chosen.id RETURNING t.id, t.body
)
SELECT array_agg(id) AS ids, array_agg(body) AS bodies FROM leased \gset
DELETE FROM %[1]s WHERE id = ANY(:ids::bigint[]);
`, p.table, each))
}

// loop runs a script as often as count messages take, so many of them each time, and has a look that so many are in the table when it has ended.
func (p *pgbench) loop(count, each, clients, left int, script string, args ...string) bench.Loop {
	p.tb.Helper()
	file := filepath.Join(p.tb.TempDir(), "script.sql")
	if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
		p.tb.Fatal(err)
	}
	args = append(args, "--no-vacuum", "--protocol", "prepared", "--client", fmt.Sprint(clients), "--transactions", fmt.Sprint(count/each/clients), "--file", file, p.server)
	transactions := bench.Last(`^tps = ([\d.]+)`)
	return bench.Tool("pgbench", count, func() *exec.Cmd { return p.command(args...) }, func(output io.Reader) (float64, error) {
		perSecond, err := transactions(output)
		if err != nil {
			return 0, err
		}
		var are int
		if err := p.client.QueryRow(context.Background(), "SELECT count(*) FROM "+p.table).Scan(&are); err != nil {
			return 0, err
		}
		if are != left {
			return 0, fmt.Errorf("%d messages are in the table, want %d", are, left)
		}
		return perSecond * float64(each), nil
	})
}
