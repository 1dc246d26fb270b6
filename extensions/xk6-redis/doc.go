// Package redis holds three drivers for Redis and Valkey: redis-streams, redis-pubsub and redis-list. Importing it
// registers them.
//
// The client library, go-redis, finds the server that has a key (also through sentinels and in a cluster), dials it, and
// runs what is not measured. What is measured flows over connections of the package's own, each of which sends and
// receives at once: see "wire" in the source for why, and bench_test.go for what that is worth.
//
// # Delivery
//
// redis-streams appends each message to a stream with XADD. The key is the field "key", headers are fields whose names
// begin with "h:", the body is the field "body"; what other programs put into other fields comes as headers. Order is
// that of the stream. A consumer with a group reads with XREADGROUP COUNT n BLOCK, where n is what its prefetch leaves
// room for, and each settlement is confirmed:
//
//   - Ack is XACK; the option deleteSettled adds XDEL.
//   - Requeue is XCLAIM, and the same consumer delivers the message again, at once.
//   - Reject is XACK too: streams have no dead letters.
//
// What a consumer has not settled when it closes it hands to a consumer named xk6-broker-nobody, as idle for very long,
// and then leaves the group. The other members look there every claimInterval, and a new member looks at once. They also
// take over what is with a consumer, alive or not, for longer than minIdle; that is looked for each tenth of minIdle. After
// a connection broke a consumer first claims what was sent over it and never came. Attempt is the server's count.
//
// A consumer without a group reads with XREAD and gets every message. The server knows nothing of its settlements, so
// nothing is confirmed, prefetch bounds what waits to be received, and Requeue delivers again within the process.
//
// redis-pubsub delivers at most once and to those who are subscribed. A consumer whose prefetch is full stops reading,
// and the server drops it when its output buffer is full (client-output-buffer-limit pubsub): Receive then fails once,
// subscribes again, and what came between is lost.
//
// redis-list appends with RPUSH and takes with BLMOVE, which moves an element to a list of the consumer's own, and with
// as many LMOVE behind it as there were elements last time. Bodies are plain; there are no keys, headers or attempts. Ack
// and Reject are LREM, Requeue is LREM and LPUSH to the head, by a script. Each consumer gives a sign of life every third
// of its lease. When it closes, or has given none for its lease, its list goes back to the head of the topic's. Beside the
// list TOPIC there are the keys {TOPIC}:consumers, {TOPIC}:processing:NAME and {TOPIC}:alive:NAME.
//
// # Connection string
//
//	redis-streams://user:password@127.0.0.1:6379/0?tlsCA=ca.pem
//	redis-list://sentinel1,sentinel2:26380?master=mymaster
//	redis-pubsub://node1:7001,node2:7002?sharded=true
//
// A cluster of which only one node is named needs mode=cluster. In a cluster a topic is on one node, that of its name's slot.
//
// # Confirm means
//
// Accepted: the server has answered, so the message is in its memory. What of it survives a restart is up to the
// server's appendfsync. For redis-pubsub the server has given the message to those who are subscribed, be there none;
// the option requireSubscriber makes that an error. For the other two the options wait and fsync ask for more, by WAIT
// and WAITAOF after each pipeline, so that a pipeline waits for one answer and a message for at most two. The profile
// durable asks for all replicas that are connected, and for the disk where the server can tell (Redis 7.2 or later,
// Valkey, with an append-only file), as they are when the producer opens. It asks for no less after a reconnect or a
// failover. A message that was accepted but not proven so in time fails with kind timeout, and may be delivered.
//
// # Limits
//
//   - A producer does not make its stream or list: sending to one that does not exist is an error of kind not_found, for
//     lists when the producer is made. The option create allows it. A consumer does make its stream.
//   - Nothing is trimmed unless maxLen or deleteSettled say so: XACK does not free memory.
//   - What the server trimmed before it was delivered stays in its lag for ever, and is none of the backlog that is told. Where that, or
//     XDEL, or a server before Redis 7, leaves no other way, the entries are counted by reading the stream from the nearer end.
//   - A body may have as many bytes as the server's proto-max-bulk-len, 512 MiB by default. A larger one is refused in the client, because the
//     server would close the connection and fail all that is in flight on it. Where CONFIG GET is not allowed the default is assumed.
//   - Redis 6.2 or later; sharded and the lag need 7.0, fsync needs 7.2.
//   - The client library's retries are off. In a cluster administrative commands follow redirections.
//   - The client library's log is switched off for the whole process.
//
// # As
//
// Connections, producers and consumers lend redis.UniversalClient, and *redis.Client or *redis.ClusterClient according
// to the mode.
package redis
