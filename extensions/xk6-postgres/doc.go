// Package postgres registers the driver postgres: PostgreSQL's tables as queues, over pgx.
//
// # Delivery
//
// A topic is a table with these columns:
//
//	id             bigint, an identity and the primary key: the order
//	key, body      bytea; NULL if a message has none
//	headers        jsonb, an object of strings; NULL if there are none
//	created        timestamptz, of the transaction that sent it
//	next_delivery  timestamptz: it is delivered after that
//	attempts       integer: the number of deliveries
//
// A producer has one connection and one transaction at a time, so the order of the topic is that of
// its messages. Messages sent meanwhile go together with the next INSERT. A second transaction
// notifies the consumers, because the server commits only one notifying transaction at a time.
//
// A consumer has two connections. One leases messages with UPDATE and FOR UPDATE SKIP LOCKED, within
// the prefetch, and waits for notifications and for expired leases. The other settles a batch with
// one statement: Ack is DELETE, Requeue is UPDATE, Reject is DELETE and an INSERT into the option
// deadLetter. A settlement after the lease has expired is an error of kind rejected.
//
// A consumer that closes gives back its unsettled messages. The messages of a consumer that died,
// and those whose leasing broke with the connection, are delivered again after the lease.
//
// # Connection string
//
//	postgres://user:password@127.0.0.1:5432/database?tlsCA=ca.pem
//	postgres://host1,host2/database?schema=queues
//
// The default user and database are postgres. Of several hosts the first that accepts writes is
// used. The variables and files of libpq (PGHOST, .pgpass) are ignored.
//
// # Confirm means
//
// The transaction is committed. The option synchronousCommit decides what that proves: on is the
// disk of one server; off is memory; with synchronous_standby_names a commit waits for standbys too.
// A producer checks the settings whenever it connects, and its messages fail if they prove less. A
// warning that a commit did not wait for standbys is an error of kind timeout.
//
// Messages of one transaction share its fate. If a trigger makes the server store another number of
// rows, all of them fail; transaction=1 gives each message its own result.
//
// # Limits
//
//   - One group for each topic, without a name. A queue has no start new, fan-out or replay.
//   - A name has at most 63 bytes, a body 1 GiB less 4 KiB. Headers are UTF-8, each name once.
//   - createTopic ignores partitions. A table partitioned by id is a topic.
//   - Deliveries and settlements leave dead rows to the server's autovacuum. A long transaction or an
//     unused replication slot keeps them, and deliveries become slower.
//   - Sessions turn off sequential scans, bitmap scans, hash and merge joins, and JIT.
//   - LISTEN and prepared statements need sessions, so poolers must pool sessions.
//   - PostgreSQL 12 or later.
//
// Connections lend *pgx.ConnConfig, a copy with the password.
package postgres
