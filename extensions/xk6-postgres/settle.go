package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver/lease"
)

// The statements settle a batch, if its deliveries are still this consumer's.
const (
	deleting = `
DELETE FROM %s AS t USING unnest($1::bigint[], $2::integer[]) AS s (id, attempt)
WHERE t.id = s.id AND t.attempts = s.attempt`

	burying = `
WITH gone AS (
  DELETE FROM %s AS t USING unnest($1::bigint[], $2::integer[]) AS s (id, attempt)
  WHERE t.id = s.id AND t.attempts = s.attempt
  RETURNING t.id, t.key, t.body, t.headers
)
INSERT INTO %s (key, body, headers) SELECT key, body, headers FROM gone ORDER BY id`

	// $3 has the attempts to store: a message that was not received was not delivered.
	returning = `
UPDATE %s AS t
SET next_delivery = now() + $4::bigint * interval '1 microsecond', attempts = s.become
FROM unnest($1::bigint[], $2::integer[], $3::integer[]) AS s (id, attempt, become)
WHERE t.id = s.id AND t.attempts = s.attempt`
)

// prepareSettle prepares a session of the settling connection.
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

// Settle settles with one statement. Messages whose lease has expired are an error, the others are
// settled.
func (r *consumer) Settle(ctx context.Context, b driver.Batch, o driver.Outcome) error {
	return r.Consumer.Settle(b, func(all []*delivery) []error {
		var p parameters
		p.add(all, 0)
		settled, err := r.end(ctx, &p, o, r.delay)
		return lease.Count(len(all), settled, err, errSettled)
	})
}

// parameters are the parameters of a statement.
type parameters struct {
	ids               []int64
	attempts, becomes []int32
}

// add adds deliveries. undone is subtracted from their attempts if they are given back.
func (p *parameters) add(all []*delivery, undone int32) {
	for _, d := range all {
		p.ids = append(p.ids, d.Handle.id)
		p.attempts = append(p.attempts, d.Handle.attempt)
		p.becomes = append(p.becomes, d.Handle.attempt-undone)
	}
}

// end runs the statement of an outcome and returns the number of its messages.
func (r *consumer) end(ctx context.Context, p *parameters, o driver.Outcome, delay time.Duration) (int64, error) {
	if len(p.ids) == 0 {
		return 0, nil
	}
	var tag pgconn.CommandTag
	err := r.settling.do(ctx, func(ctx context.Context, s *session) (err error) {
		values := []any{p.ids, p.attempts}
		if o == driver.Requeue {
			values = append(values, p.becomes, delay.Microseconds())
		}
		tag, err = s.Exec(ctx, o.String(), values...)
		if err == nil && s.doubt != "" {
			err = doubtError(s.doubt)
		}
		if err == nil && (o == driver.Requeue || o == driver.Reject && r.dead.name != "") {
			err = r.notify(ctx, s, o, delay)
		}
		return err
	})
	return tag.RowsAffected(), err
}

// notify wakes the consumers of the topic, or of the dead-letter topic.
func (r *consumer) notify(ctx context.Context, s *session, o driver.Outcome, delay time.Duration) error {
	channel, payload := r.topic.name, ""
	if o == driver.Reject {
		channel = r.dead.name
	}
	if delay > 0 {
		payload = delayed
	}
	_, err := s.Exec(ctx, "SELECT pg_notify($1, $2)", pgx.QueryExecModeExec, channel, payload)
	return err
}

// giveBack requeues messages when the consumer closes. Messages that were not received count as not
// delivered.
func (r *consumer) giveBack(ctx context.Context, held, unseen []*delivery) error {
	var p parameters
	p.add(held, 0)
	p.add(unseen, 1)
	_, err := r.end(ctx, &p, driver.Requeue, 0)
	return err
}
