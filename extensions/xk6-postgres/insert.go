package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver/outbox"
)

// inserting is one transaction after the other. It keeps the slices that the parameters are made of.
type inserting struct {
	topic        topic
	keys, bodies [][]byte
	headers      []*string
}

// insertions are the statements by their names: one for messages of which none has a key or headers, which is quicker.
var insertions = map[string]string{
	"insert":       "INSERT INTO %s (key, body, headers) SELECT k, b, h::jsonb FROM unnest($1::bytea[], $2::bytea[], $3::text[]) AS m (k, b, h)",
	"insertBodies": "INSERT INTO %s (body) SELECT unnest($1::bytea[])",
}

// notification wakes the consumers of a topic. There is nothing in its transaction that the disk, or a standby, must have.
const notification = "SELECT set_config('synchronous_commit', 'off', true), pg_notify($1, '')"

// insert commits the messages, calls confirmed, and, in a second transaction, notifies who waits for some. A transaction that notifies keeps all others that do
// from committing until it has, so this one must not be the one that waits for the disk. Both are sent at once.
func (in *inserting) insert(ctx context.Context, s *session, all []outbox.Item[outgoing], confirmed func()) (err error) {
	statement, values, err := in.parameters(s.TypeMap(), all)
	if err != nil {
		return err
	}
	pipeline := s.PgConn().StartPipeline(ctx)
	defer func() {
		if closed := pipeline.Close(); err == nil {
			err = closed
		}
	}()
	pipeline.SendQueryPrepared(statement, values, []int16{pgtype.BinaryFormatCode}, nil)
	pipeline.SendPipelineSync()
	pipeline.SendQueryPrepared("notify", [][]byte{[]byte(in.topic.name)}, nil, nil)
	if err := pipeline.Sync(); err != nil {
		return err
	}
	stored, err := in.committed(pipeline)
	if err != nil {
		return err
	}
	if s.doubt != "" {
		return doubtError(s.doubt)
	}
	if stored != int64(len(all)) {
		return &missingError{stored, len(all)}
	}
	confirmed()
	return nil
}

// committed reads the answer to the first statement and to the commit behind it, and returns how many rows it is of.
func (in *inserting) committed(pipeline *pgconn.Pipeline) (rows int64, err error) {
	for {
		switch got, err := pipeline.GetResults(); got := got.(type) {
		case nil:
			if err != nil {
				return 0, err
			}
			return 0, fmt.Errorf("pipeline: %w", pgconn.ErrConnClosed)
		case *pgconn.ResultReader:
			tag, err := got.Close()
			if err != nil {
				return 0, err
			}
			rows = tag.RowsAffected()
		case *pgconn.PipelineSync:
			return rows, nil
		}
	}
}

// parameters are arrays, and the statement is that which takes them. A message without a key, a body or headers has NULL there.
func (in *inserting) parameters(types *pgtype.Map, all []outbox.Item[outgoing]) (statement string, values [][]byte, err error) {
	in.keys, in.bodies, in.headers = in.keys[:0], in.bodies[:0], in.headers[:0]
	bare := true
	for _, item := range all {
		o := item.Message
		in.keys, in.bodies, in.headers = append(in.keys, o.Key), append(in.bodies, o.Body), append(in.headers, o.headers)
		bare = bare && o.Key == nil && o.headers == nil
	}
	defer func() { // they must not live on here
		clear(in.keys)
		clear(in.bodies)
		clear(in.headers)
	}()
	encode := func(oid uint32, array any) {
		if err == nil {
			var value []byte
			value, err = types.Encode(oid, pgtype.BinaryFormatCode, array, nil)
			values = append(values, value)
		}
	}
	statement = "insertBodies"
	if !bare {
		statement = "insert"
		encode(pgtype.ByteaArrayOID, in.keys)
	}
	encode(pgtype.ByteaArrayOID, in.bodies)
	if !bare {
		encode(pgtype.TextArrayOID, in.headers)
	}
	if err != nil {
		return "", nil, fmt.Errorf("encoding messages: %w", err)
	}
	return statement, values, nil
}
