package postgres

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// fetching leases messages. The common table expression is evaluated once; a subquery could be
// evaluated several times and lease more than the limit.
const fetching = `
WITH chosen AS MATERIALIZED (
  SELECT id FROM %[1]s WHERE next_delivery <= now() ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED
)
UPDATE %[1]s AS t
SET next_delivery = now() + $2::bigint * interval '1 microsecond', attempts = attempts + 1
FROM chosen WHERE t.id = chosen.id
RETURNING t.id, t.attempts, t.key, t.body, t.headers::text`

// looking returns the microseconds until the first lease of the next messages expires. It reads the
// index, because the table may be large and nearly empty, and only its beginning.
const looking = `
SELECT (extract(epoch FROM min(next_delivery) - now()) * 1000000)::bigint
FROM (SELECT next_delivery FROM %s ORDER BY id LIMIT 10000) AS head`

// planning keeps the planner to the indexes, because its statistics of a queue are always outdated.
const planning = "SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_hashjoin = off; " +
	"SET enable_mergejoin = off; SET jit = off"

// prepareFetch prepares a session of the fetching connection. It listens before it looks. A lease
// does not wait for the disk: a crash ends it.
func (r *consumer) prepareFetch(ctx context.Context, s *session) error {
	listen := "LISTEN " + pgx.Identifier{r.topic.name}.Sanitize()
	if _, err := s.Exec(ctx, planning+"; SET synchronous_commit = off; "+listen, pgx.QueryExecModeSimpleProtocol); err != nil {
		return err
	}
	for name, sql := range map[string]string{"fetch": fetching, "look": looking} {
		if _, err := s.Prepare(ctx, name, fmt.Sprintf(sql, r.topic.table)); err != nil {
			return err
		}
	}
	r.dry, r.look = false, time.Time{}
	return nil
}

// fetch waits for messages and leases up to most of them.
func (r *consumer) fetch(open context.Context, most int) ([]*delivery, error) {
	for open.Err() == nil {
		if r.dry {
			if err := r.await(open); err != nil {
				return nil, err
			}
			if open.Err() != nil {
				break
			}
		}
		var got []*delivery
		err := r.fetching.do(r.Fetching(), func(ctx context.Context, s *session) (err error) {
			if s.later {
				s.later, r.look = false, time.Time{}
			}
			s.woken = false
			got, err = r.take(ctx, s, most)
			r.dry = err == nil && len(got) < most && !s.woken
			return err
		})
		if err != nil || len(got) > 0 {
			return got, err
		}
	}
	return nil, open.Err()
}

// take leases messages and sorts them, because the server returns them in any order.
func (r *consumer) take(ctx context.Context, s *session, most int) ([]*delivery, error) {
	rows, err := s.Query(ctx, "fetch", most, r.time.Microseconds())
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var got []*delivery
	for rows.Next() {
		d := &delivery{}
		m := &d.Message
		m.Received = driver.Now()
		var headers []byte
		if err := rows.Scan(&d.Handle.id, &d.Handle.attempt, &m.Key, &m.Body, &headers); err != nil {
			return nil, err
		}
		m.Topic, m.Attempt, m.Headers = r.topic.name, d.Handle.attempt, decodeHeaders(headers)
		got = append(got, d)
	}
	slices.SortFunc(got, func(a, b *delivery) int { return cmp.Compare(a.Handle.id, b.Handle.id) })
	return got, rows.Err()
}

// await returns after a notification, or when a lease may have expired. Messages that other programs
// insert without a notification are found within the time of a lease.
func (r *consumer) await(ctx context.Context) error {
	if !time.Now().Before(r.look) {
		if err := r.fetching.do(ctx, r.lookAhead); err != nil {
			return err
		}
	}
	s, err := r.fetching.link.Get(ctx)
	if err != nil {
		return err
	}
	if s.woken || !r.dry { // a new connection is not dry
		return nil
	}
	waiting, cancel := context.WithDeadline(ctx, r.look)
	defer cancel()
	if err := s.PgConn().WaitForNotification(waiting); waiting.Err() == nil {
		return err
	}
	return nil
}

// lookAhead sets the time at which the next lease expires.
func (r *consumer) lookAhead(ctx context.Context, s *session) error {
	var micros *int64
	if err := s.QueryRow(ctx, "look").Scan(&micros); err != nil {
		return err
	}
	wait := r.time
	if micros != nil {
		wait = min(wait, max(time.Duration(*micros)*time.Microsecond, time.Millisecond))
	}
	r.look = time.Now().Add(wait)
	return nil
}
