// Package postgres holds the driver postgres: PostgreSQL's tables as queues. Importing it registers the driver.
//
// The client library is pgx. Each producer has a connection, each consumer two.
//
// # Delivery
//
// A topic is a table of one schema (the option schema), with the topic's name, and these columns:
//
//	id             bigint, an identity and the primary key: the order
//	key, body      bytea; NULL where a message has none
//	headers        jsonb, an object of strings; NULL where there are none
//	created        timestamptz, of the transaction that sent it
//	next_delivery  timestamptz: it is delivered when that is over
//	attempts       integer: how often it was delivered
//	receiver       text: the consumer that has it
//
// A producer has one transaction under way at a time, so the order of the topic is that of its messages. Messages that come meanwhile wait and
// go together with the next, up to so many as the option transaction says, by one INSERT of arrays; nothing waits for more to come. A second
// transaction, sent with it, notifies the topic's consumers (NOTIFY on the channel of the topic's name). They are two because the server lets
// only one transaction that notifies commit at a time: one that also wrote would keep all others waiting for the disk.
//
// All consumers of a topic compete for its messages. One takes what its prefetch leaves room for, by one UPDATE of what SELECT ... FOR UPDATE SKIP LOCKED
// finds, which leases the messages to it; where there are fewer than that it waits for a notification (LISTEN), and for the end of the next lease. What
// other programs insert without a notification is found after a lease at the latest. Each settlement of a batch is one statement and is confirmed:
//
//   - Ack is DELETE.
//   - Requeue is UPDATE; the option requeueDelay says when the message may be delivered again.
//   - Reject is DELETE, and the option deadLetter names a topic that gets the message, in the same statement.
//
// A settlement is of one delivery, by id and attempts: of one whose lease is over nothing is settled any more, and that is an error of kind rejected. A
// consumer that closes gives back what it has not settled, and what it never received as if it had not been delivered. After a connection broke it gives
// back what was on its way over it. What a consumer that died has comes again when its lease is over. A topic that is dropped and created again is gone
// on with.
//
// # Connection string
//
//	postgres://user:password@127.0.0.1:5432/database?tlsCA=ca.pem
//	postgres://host1,host2/database?schema=queues
//
// User and database are postgres where the URL names none. Of several hosts the first is used that takes writes. The variables and files of libpq
// (PGHOST, .pgpass) are of no effect.
//
// # Confirm means
//
// The transaction is committed, and what the option synchronousCommit says: on, that one server has it on disk, as far as its setting fsync is on; off,
// that it has it in memory. Where the server's synchronous_standby_names is not empty, on, remote_write and remote_apply wait for standbys too, and the
// message is replicated. A producer asks for these settings when it opens and each time it connects again: where they prove less than before its messages
// fail. A commit that the server gave up waiting for standbys for, with a warning, is an error of kind timeout; the driver's sessions have warnings on
// (client_min_messages), whatever the role's are. What a standby's own fsync is set to the primary does not know. Nothing of a table that is unlogged
// survives a crash, or is replicated.
//
// Messages of one transaction share its fate: all are confirmed, or all fail with the same error. They also fail, as rejected, where the server stored
// another number of rows than there are messages, as where a trigger leaves some out: which, it does not say, so some of them may be in the table. The
// option transaction at 1 has each know its own.
//
// The option says the same of a consumer's settlements. A lease is never waited for: one that a crash takes back is over.
//
// # Limits
//
//   - One group for each topic, without a name. Start new, groups, fan-out and replay need a log, which a queue is not.
//   - A name has up to 63 bytes.
//   - A body may have 1 GiB less 4 KiB, and headers are text in UTF-8 without zero bytes, each name once.
//   - A topic's partitions are of no effect: createTopic makes one table, of which any number of consumers take messages beside each other (SKIP LOCKED). Partitions would
//     bring parallel vacuuming and smaller indexes, and cost each taking a look into all of them, as the oldest messages are wanted. A table that its user partitioned by id is a topic as any other;
//     where one of its partitions is unlogged, it counts as unlogged.
//   - Every commit of every producer wakes all consumers of the topic that wait.
//   - A delivery makes a second version of a row, and a settlement leaves both to autovacuum. The option fillFactor leaves room on the page for the second
//     one, and next_delivery is in no index, so that it is in no index either. A transaction that stays open, anywhere in the database, or a replication slot
//     that nobody reads, keeps all of them: deliveries then get slower and slower, which is what a queue in this database does.
//   - Autovacuum is the server's. It comes once a minute, by its defaults, and a test that ends before that has not met it.
//   - A consumer's sessions have the planner's sequential scans, bitmap scans, hash and merge joins, and JIT off: what it knows of a queue's size is out
//     of date.
//   - Bodies are stored without compression (STORAGE EXTERNAL).
//   - LISTEN and prepared statements need sessions: a pooler must not give each transaction to another one.
//   - PostgreSQL 12 or later.
//
// # As
//
// Connections lend *pgx.ConnConfig, a copy, with the password.
package postgres
