package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// Each settles a batch of deliveries by one statement, those of them that are still this consumer's.
const (
	deleting = `
DELETE FROM %s AS t USING unnest($1::bigint[], $2::integer[]) AS s (id, attempt) WHERE t.id = s.id AND t.attempts = s.attempt`

	burying = `
WITH gone AS (
  DELETE FROM %s AS t USING unnest($1::bigint[], $2::integer[]) AS s (id, attempt) WHERE t.id = s.id AND t.attempts = s.attempt
  RETURNING t.id, t.key, t.body, t.headers
)
INSERT INTO %s (key, body, headers) SELECT key, body, headers FROM gone ORDER BY id`

	// attempts become those in $3: what was never received was not delivered.
	returning = `
UPDATE %s AS t SET next_delivery = now() + $4::bigint * interval '1 microsecond', attempts = s.become, receiver = NULL
FROM unnest($1::bigint[], $2::integer[], $3::integer[]) AS s (id, attempt, become) WHERE t.id = s.id AND t.attempts = s.attempt`
)

// prepareSettle makes a session of the settling connection ready.
func (r *consumer) prepareSettle(ctx context.Context, s *session, commit string) error {
	if _, err := s.Exec(ctx, planning+"; SET synchronous_commit = "+commit, pgx.QueryExecModeSimpleProtocol); err != nil {
		return err
	}
	statements := map[string]string{
		"ack":     fmt.Sprintf(deleting, r.topic.table),
		"reject":  fmt.Sprintf(deleting, r.topic.table),
		"requeue": fmt.Sprintf(returning, r.topic.table),
	}
	if r.dead.name != "" {
		statements["reject"] = fmt.Sprintf(burying, r.topic.table, r.dead.table)
	}
	for name, sql := range statements {
		if _, err := s.Prepare(ctx, name, sql); err != nil {
			return err
		}
	}
	return nil
}

// Settle ends deliveries. Those whose lease is over are another's by now or will be: that is an error, and all others are settled.
func (r *consumer) Settle(ctx context.Context, b driver.Batch, o driver.Outcome) error {
	if r.leaving.Load() {
		return driver.ErrClosed
	}
	var all settlement
	for i := range b {
		if d, ours := b[i].Token.(*delivery); ours {
			all.add(d, d.attempt)
		}
	}
	settled, err := r.end(ctx, &all, o, r.delay)
	r.release(all.deliveries, err == nil)
	if err != nil {
		return err
	}
	if settled < int64(len(b)) {
		return &driver.PartError{Settled: int(settled), Err: errSettled}
	}
	return nil
}

// release has deliveries take no room any more: of those whose settlement failed nobody knows whether the server has done it. What is settled is not held
// any more, and the rest may be settled again, or given back when the consumer closes.
func (r *consumer) release(all []*delivery, settled bool) {
	for _, d := range all {
		if settled {
			r.held.Settled(d)
		} else {
			r.held.Doubted(d)
		}
	}
}

// settlement is the parameters of a statement.
type settlement struct {
	deliveries        []*delivery
	ids               []int64
	attempts, becomes []int32
}

func (s *settlement) add(d *delivery, becomes int32) {
	s.deliveries, s.ids = append(s.deliveries, d), append(s.ids, d.id)
	s.attempts, s.becomes = append(s.attempts, d.attempt), append(s.becomes, becomes)
}

// end runs the statement of an outcome and returns how many messages it was about.
func (r *consumer) end(ctx context.Context, all *settlement, o driver.Outcome, delay time.Duration) (int64, error) {
	var tag pgconn.CommandTag
	err := r.settling.do(ctx, func(ctx context.Context, s *session) (err error) {
		if o == driver.Requeue {
			tag, err = s.Exec(ctx, o.String(), all.ids, all.attempts, all.becomes, delay.Microseconds())
		} else {
			tag, err = s.Exec(ctx, o.String(), all.ids, all.attempts)
		}
		if err == nil && s.doubt != "" {
			err = doubtError(s.doubt)
		}
		if err == nil && (o == driver.Requeue || o == driver.Reject && r.dead.name != "") {
			err = r.tell(ctx, s, o, delay)
		}
		return err
	})
	return tag.RowsAffected(), err
}

// tell wakes who waits for what was given back, or for dead letters.
func (r *consumer) tell(ctx context.Context, s *session, o driver.Outcome, delay time.Duration) error {
	channel, what := r.topic.name, ""
	if o == driver.Reject {
		channel = r.dead.name
	}
	if delay > 0 {
		what = delayed
	}
	_, err := s.Exec(ctx, "SELECT pg_notify($1, $2)", pgx.QueryExecModeExec, channel, what)
	return err
}

// giveBack requeues what is not settled when the consumer closes, and what was never received as if it had not been delivered.
func (r *consumer) giveBack(ctx context.Context) error {
	var all settlement
	for _, d := range r.in.Waiting() {
		all.add(d, d.attempt-1)
	}
	for _, d := range r.held.Clear() {
		all.add(d, d.attempt)
	}
	r.in.Clear()
	if len(all.deliveries) == 0 {
		return nil
	}
	_, err := r.end(ctx, &all, driver.Requeue, 0)
	return err
}
