// Package pulsar has two drivers for Apache Pulsar, over its Go client
// github.com/apache/pulsar-client-go:
//
//   - pulsar: a group is a shared or key-shared subscription, which spreads messages over its
//     consumers and settles each;
//   - pulsar-failover: a group is a failover or exclusive subscription, which gives a partition to
//     one consumer at a time, in order.
//
// # Delivery
//
// Both deliver at least once. Acks are individual, and the unsettled messages of a closed consumer
// are delivered again. A consumer without a group has a durable subscription of its own, named
// "xk6-broker-" and a number, which it deletes by the admin API when it closes. A killed consumer
// leaves it. All members of a group must have the same subscriptionType.
//
// pulsar claims no order; key-shared keeps the order of each key if producers use batching none or
// key. Requeue is a negative acknowledgement after nackDelay, at least 9 ms. A rejected message is
// acknowledged, because dead letters are the work of Pulsar's clients. The broker forgets the
// number of deliveries when a group's last consumer leaves, so attempts are not claimed.
//
// pulsar-failover keeps the order within a partition. It has no requeue, because the broker would
// deliver all unacked messages again.
//
// A new group begins with new messages or with the earliest of the topic. Messages acked by all
// groups are deleted with their ledger, after ten minutes by default, unless the option retention
// or the namespace keeps them.
//
// Headers are Pulsar's properties, sorted by name. A message without body and properties is sent
// with the property xk6-broker-empty, because the client would drop it as corrupt.
//
// # Connection string
//
//	pulsar://host1:6650,host2:6650?adminUrl=http://host1:8080&namespace=tenant/namespace
//	pulsar+ssl://host:6651?tlsCA=ca.pem&tokenFile=token
//	pulsar-failover://host:6650
//
// A topic is a name in the namespace, or persistent://tenant/namespace/topic. Topics of
// non-persistent:// are delivered at most once. The client connects to the addresses that brokers
// advertise. Topics are managed and counted by the admin API over HTTP. Authentication is a token,
// user and password, or the certificate of tlsCert. Opening a connection asks a broker for a topic,
// without needing rights, and fails within connectTimeout.
//
// # Confirm means
//
// The bookies of the topic's ack quorum have the message. The admin API returns the quorum. If it
// is 1, as in standalone, or not known, the proof is Accepted. Clients cannot read whether bookies
// sync their journals (journalSyncData). With a non-persistent topic the broker had the message.
//
// A confirmed settlement is the broker's answer to the ack. A requeue has no answer.
//
// # Limits
//
// Defaults of the client that would distort a measurement are replaced: batching (off; 1 ms with
// profile throughput), grouping of acks (off; 5 ms), the delay of requeues (9 ms), the pause before
// a reconnection (1 s at most), idle connections (never closed), the limits of pending messages
// (none), logs (none).
//
// After a broken connection the client sends unconfirmed messages again until sendTimeout, within
// their publish time. Such a message may be stored twice unless the namespace deduplicates, and a
// failed one may be stored. Lookups are retried for operationTimeout. A refused client retries up
// to six times.
//
// If a topic is deleted, its open producers fail, and its open consumers receive nothing more, even
// if it is created again. A broker with allowAutoTopicCreation, the default, creates an absent
// topic for producers and consumers.
//
// Prefetch bounds the unsettled messages at a consumer: the client returns permits when messages
// are settled, some at a time. A consumer that holds seven eighths of its prefetch may have to
// settle some before it gets more. The client's queue is a quarter of the prefetch, for each
// partition. Batches are delivered as a whole, so more may come. Acks of parts of a batch outlive
// the consumer only with acknowledgmentAtBatchIndexLevelEnabled, and a requeue is of the whole
// batch. The backlog is counted in batches; up to 10,000 of a partition are looked into, and one
// settled in part counts as a whole.
//
// A broker stores acknowledgements from time to time, in standalone every ten seconds
// (managedLedgerDefaultMarkDeleteRateLimit). A killed one delivers messages acked since then again,
// which count as duplicates. After a change of a failover subscription's consumer, a broker (4.0.8)
// short of CPU may deliver unacked messages only with the next sent one.
//
// There are no transactions, schemas, chunks and compacted topics. Added partitions are found
// within a minute. PurgeTopic keeps the open ledger. MaxMessageBytes is the default of
// maxMessageSize. deliverAfter works with pulsar only. A message's timestamp is the producer's, in
// ms, unless brokers add theirs (AppendBrokerTimestampMetadataInterceptor).
//
// # As
package pulsar
