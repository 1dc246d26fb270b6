package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver/outbox"
)

// inserting runs one transaction at a time, and reuses the slices for the parameters.
type inserting struct {
	topic        topic
	keys, bodies [][]byte
	headers      []*string
}

// insertions are the statements. The second is faster, for messages without keys and headers.
var insertions = map[string]string{
	"insert":       "INSERT INTO %s (key, body, headers) SELECT k, b, h::jsonb FROM unnest($1::bytea[], $2::bytea[], $3::text[]) AS m (k, b, h)",
	"insertBodies": "INSERT INTO %s (body) SELECT unnest($1::bytea[])",
}

// notification wakes the consumers of a topic. Its transaction does not wait for the disk.
const notification = "SELECT set_config('synchronous_commit', 'off', true), pg_notify($1, '')"

// insert commits the messages, calls confirmed, and notifies in a second transaction. A notifying
// transaction holds up all others of its kind, so it must not wait for the disk.
func (in *inserting) insert(
	ctx context.Context, s *session, all []outbox.Item[outgoing], confirmed func(),
) (err error) {
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

// committed reads the answers up to the commit, and returns the number of rows.
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

// parameters returns the statement and its arrays. A missing key, body or header is NULL.
func (in *inserting) parameters(
	types *pgtype.Map, all []outbox.Item[outgoing],
) (statement string, values [][]byte, err error) {
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
