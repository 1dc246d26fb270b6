// Package redis registers three drivers for Redis and Valkey: redis-streams, redis-pubsub and
// redis-list.
//
// The client library, go-redis, finds the server of a key, also through sentinels and in a cluster,
// dials it, and runs administrative commands. Messages use connections of this package (wire.go),
// which send and receive at the same time.
//
// # Delivery
//
// redis-streams appends with XADD: the field "key", fields "h:" and a header's name, and the field
// "body". Other fields arrive as headers. A consumer with a group reads with XREADGROUP, within its
// prefetch. Settlements are confirmed: Ack is XACK, with deleteSettled XDEL too; Requeue is XCLAIM by
// the same consumer; Reject is XACK.
//
// A consumer that closes assigns its unsettled messages to the consumer xk6-broker-nobody, where
// other members look each claimInterval. They also claim messages that a consumer has had for longer
// than minIdle. A consumer without a group reads with XREAD and gets every message; its settlements
// stay in the process.
//
// redis-pubsub delivers at most once. A consumer whose prefetch is full stops reading, and the server
// drops it when its output buffer is full: Receive fails once and subscribes again.
//
// redis-list appends with RPUSH and takes with BLMOVE to a list of the consumer's own. Ack and Reject
// are LREM; Requeue moves to the head of the list. There are no keys, headers or attempts. A consumer
// refreshes a key each third of its lease. When it closes, or the key expires, its list goes back to
// the head of the topic. The other keys are {TOPIC}:consumers, {TOPIC}:processing:NAME and
// {TOPIC}:alive:NAME.
//
// # Connection string
//
//	redis-streams://user:password@127.0.0.1:6379/0?tlsCA=ca.pem
//	redis-list://sentinel1,sentinel2:26380?master=mymaster
//	redis-pubsub://node1:7001,node2:7002?sharded=true
//
// A cluster with one node in the URL needs mode=cluster. A topic is on the node of its name's slot.
//
// # Confirm means
//
// Accepted: the message is in the server's memory. appendfsync decides whether it survives a restart.
// redis-pubsub needs no subscriber, unless requireSubscriber is set. The options wait and fsync send
// WAIT and WAITAOF after each pipeline. The profile durable asks for all connected replicas, and for
// the disk if the server has WAITAOF and an append-only file, as they are when the producer opens. A
// message without this proof in time fails with kind timeout, and may be delivered.
//
// # Limits
//
//   - Sending to a stream or list that does not exist is not_found, unless the option create is set.
//   - Nothing is trimmed without maxLen or deleteSettled: XACK does not free memory.
//   - Trimmed entries stay in the server's lag, so the backlog is an estimate after a trim.
//   - A body larger than proto-max-bulk-len is refused in the client.
//   - Redis 6.2 or later; sharded and the lag need 7.0, fsync needs 7.2.
//   - The client library's retries are off, and its log is off in the whole process.
//
// Connections, producers and consumers lend redis.UniversalClient, and *redis.Client or
// *redis.ClusterClient.
package redis
