// Package raw has loops written by hand over pgx, to compare the driver with. Every loop returns
// its duration.
package raw

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// wake notifies waiting consumers.
const wake = "SELECT pg_notify('raw', '')"

// Insert adds count messages to a table, each of them per transaction, and wakes consumers.
func Insert(c *pgx.Conn, table string, body []byte, count, each int) (time.Duration, error) {
	ctx := context.Background()
	sql := "INSERT INTO " + table + " (body) SELECT unnest($1::bytea[])"
	start := time.Now()
	for sent := 0; sent < count; sent += each {
		bodies := make([][]byte, min(each, count-sent))
		for i := range bodies {
			bodies[i] = body
		}
		transaction := &pgx.Batch{}
		transaction.Queue(sql, bodies)
		transaction.Queue(wake)
		if err := c.SendBatch(ctx, transaction).Close(); err != nil {
			return 0, fmt.Errorf("insert: %w", err)
		}
	}
	return time.Since(start), nil
}

// Copy is Insert with COPY in place of INSERT.
func Copy(c *pgx.Conn, table pgx.Identifier, body []byte, count, each int) (time.Duration, error) {
	ctx := context.Background()
	start := time.Now()
	for sent := 0; sent < count; sent += each {
		rows := pgx.CopyFromSlice(min(each, count-sent), func(int) ([]any, error) { return []any{body}, nil })
		if _, err := c.CopyFrom(ctx, table, []string{"body"}, rows); err != nil {
			return 0, fmt.Errorf("copy: %w", err)
		}
		if _, err := c.Exec(ctx, wake); err != nil {
			return 0, fmt.Errorf("notify: %w", err)
		}
	}
	return time.Since(start), nil
}

// Consume leases count messages, each of them per statement, and deletes them.
func Consume(c *pgx.Conn, table string, count, each int) (time.Duration, error) {
	ctx := context.Background()
	lease := fmt.Sprintf(
		`WITH chosen AS MATERIALIZED (SELECT id FROM %[1]s WHERE next_delivery <= now() ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED)
		UPDATE %[1]s AS t SET next_delivery = now() + interval '30 s', attempts = attempts + 1 FROM chosen WHERE t.id = chosen.id RETURNING t.id, t.body`,
		table,
	)
	start := time.Now()
	for got := 0; got < count; {
		rows, err := c.Query(ctx, lease, each)
		if err != nil {
			return 0, fmt.Errorf("lease: %w", err)
		}
		var id int64
		var body []byte
		var ids []int64
		if _, err := pgx.ForEachRow(rows, []any{&id, &body}, func() error { ids = append(ids, id); return nil }); err != nil {
			return 0, fmt.Errorf("lease: %w", err)
		}
		if len(ids) == 0 {
			return 0, fmt.Errorf("%d of %d messages came", got, count)
		}
		if _, err := c.Exec(ctx, "DELETE FROM "+table+" WHERE id = ANY($1)", ids); err != nil {
			return 0, fmt.Errorf("delete: %w", err)
		}
		got += len(ids)
	}
	return time.Since(start), nil
}
