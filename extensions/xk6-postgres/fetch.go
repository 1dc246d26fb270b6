package postgres

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// fetching leases messages to the consumer. The common table expression is evaluated once; as a subquery it could be as often as the planner likes, and
// lease more than the limit.
const fetching = `
WITH chosen AS MATERIALIZED (
  SELECT id FROM %[1]s WHERE next_delivery <= now() ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED
)
UPDATE %[1]s AS t SET next_delivery = now() + $2::bigint * interval '1 microsecond', attempts = attempts + 1, receiver = $3
FROM chosen WHERE t.id = chosen.id
RETURNING t.id, t.attempts, t.key, t.body, t.headers::text`

// looking tells in how many microseconds the first lease is over of those messages that come next. It reads the index, as the table may be all but empty
// and large, and no further than where it would take long.
const looking = `
SELECT (extract(epoch FROM min(next_delivery) - now()) * 1000000)::bigint FROM (SELECT next_delivery FROM %s ORDER BY id LIMIT 10000) AS head`

// reclaiming gives back what a connection that broke was bringing: it is leased to this consumer, which has never seen it.
const reclaiming = `
UPDATE %s SET next_delivery = now(), attempts = attempts - 1, receiver = NULL WHERE receiver = $1 AND NOT id = ANY($2::bigint[])`

// planning keeps the planner to the indexes: what it knows of a queue's size is never true for long.
const planning = "SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; SET jit = off"

// prepareFetch makes a session of the fetching connection ready: it listens before it looks. A lease that a crash takes back is one that is over, so no
// disk is waited for.
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
	if _, again := r.fetching.link.Last(); again {
		known := r.known()
		_, err := s.Exec(ctx, fmt.Sprintf(reclaiming, r.topic.table), pgx.QueryExecModeExec, r.me, known)
		if err != nil {
			return err
		}
	}
	r.dry, r.look = false, time.Time{}
	return nil
}

// known are the messages that have come and are not settled. What waits is asked for first: it becomes held, and never the other way round.
func (r *consumer) known() []int64 {
	ids := []int64{} // an array without elements is not NULL
	for _, d := range r.in.Waiting() {
		ids = append(ids, d.id)
	}
	for _, d := range r.held.All() {
		ids = append(ids, d.id)
	}
	return ids
}

// fetch waits for messages and takes as many as there are, for [inbox.Inbox.Poll]. Its context ends the waiting, and not the taking.
func (r *consumer) fetch(ctx context.Context, most int) ([]*delivery, error) {
	for ctx.Err() == nil {
		if r.dry {
			if err := r.await(ctx); err != nil {
				return nil, err
			}
			if ctx.Err() != nil {
				break
			}
		}
		var got []*delivery
		err := r.fetching.do(r.work, func(ctx context.Context, s *session) (err error) {
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
	return nil, ctx.Err()
}

// take leases messages and reads them, in their order, which the server does not promise.
func (r *consumer) take(ctx context.Context, s *session, most int) ([]*delivery, error) {
	rows, err := s.Query(ctx, "fetch", most, r.lease.Microseconds(), r.me)
	if err != nil {
		return nil, err
	}
	var got []*delivery
	for rows.Next() {
		d := &delivery{}
		d.message.Received = driver.Now()
		var headers []byte
		if err := rows.Scan(&d.id, &d.attempt, &d.message.Key, &d.message.Body, &headers); err != nil {
			rows.Close()
			return nil, err
		}
		d.message.Topic, d.message.Attempt, d.message.Headers = r.topic.name, d.attempt, decodeHeaders(headers)
		got = append(got, d)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	slices.SortFunc(got, func(a, b *delivery) int { return int(a.id - b.id) })
	return got, nil
}

// await returns when there may be something: after a notification, or when a lease is over. Producers tell of each commit; of what other programs insert
// without a word it learns after a lease at the latest.
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
	if s.woken || !r.dry { // dry no more where that was a new connection
		return nil
	}
	waiting, cancel := context.WithDeadline(ctx, r.look)
	defer cancel()
	if err := s.PgConn().WaitForNotification(waiting); waiting.Err() == nil {
		return err
	}
	return nil
}

// lookAhead finds out when the next lease is over.
func (r *consumer) lookAhead(ctx context.Context, s *session) error {
	var in *int64
	if err := s.QueryRow(ctx, "look").Scan(&in); err != nil {
		return err
	}
	wait := r.lease
	if in != nil {
		wait = min(wait, max(time.Duration(*in)*time.Microsecond, time.Millisecond))
	}
	r.look = time.Now().Add(wait)
	return nil
}
