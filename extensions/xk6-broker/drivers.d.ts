// Written by `make generate`.
declare module 'k6/x/broker' {
  export interface DriverConnectOptions {
    /** all drivers: How long connecting to a server may take, until it has answered. Default: `10s`. */
    connectTimeout?: Duration;
    /** nats, nats-jetstream: Path of a credentials file: a user's JWT and seed. */
    creds?: string;
    /** redis-list, redis-pubsub, redis-streams: The number of the database, where it is not the URL's path. */
    db?: number;
    /** nats-jetstream: JetStream domain to use, where the server is a leaf node or a hub. */
    domain?: string;
    /** rabbitmq, rabbitmq-pubsub, rabbitmq-stream: Largest frame in bytes; the server may ask for less. Default: `128KiB`. */
    frameMax?: Size;
    /** rabbitmq, rabbitmq-pubsub, rabbitmq-stream: Interval of heartbeats, whole seconds; a connection silent for one and a half of them is broken. Default: `10s`. */
    heartbeat?: Duration;
    /** kafka, kafka-share: Connect to the URL's one host whatever address the broker advertises: for one broker behind a proxy or a forwarded port. Default: `false`. */
    ignoreAdvertised?: boolean;
    /** redis-list, redis-pubsub, redis-streams: The name by which the sentinels know the master. */
    master?: string;
    /** redis-list, redis-pubsub, redis-streams: What the URL's hosts are: one server, the sentinels that know the master, or nodes of a cluster; auto is sentinel where master is set, else cluster where there are several hosts. One of auto, single, sentinel, cluster. Default: `auto`. */
    mode?: 'auto' | 'single' | 'sentinel' | 'cluster';
    /** nats, nats-jetstream: Name of the connection in the server's monitoring, instead of the one that the tool gives. */
    name?: string;
    /** nats, nats-jetstream: Path of a file that holds the seed of an nkey. */
    nkey?: string;
    /** all drivers: The user's password, instead of the URL's. Secret: never shown. */
    password?: string;
    /** nats, nats-jetstream: Pause between pings that find a dead connection; it counts as broken after two without an answer. Default: `20s`. */
    pingInterval?: Duration;
    /** nats, nats-jetstream: Try the URL's servers in random order instead of the given one. Default: `false`. */
    randomize?: boolean;
    /** nats, nats-jetstream: Pause before the same server is tried again after the connection broke. Default: `100ms`. */
    reconnectWait?: Duration;
    /** kafka, kafka-share: How long any request other than producing and consuming is tried, and how long an answer may be overdue before the connection is given up. Default: `10s`. */
    requestTimeout?: Duration;
    /**
     * kafka, kafka-share: How to authenticate; auto is oauthbearer where there is a token, plain where there is a user, else none. One of auto, none, plain, scram-sha-256, scram-sha-512, oauthbearer. Default: `auto`.
     * rabbitmq, rabbitmq-pubsub, rabbitmq-stream: How to authenticate: user and password of the URL, or the client's certificate. One of plain, external. Default: `plain`.
     */
    sasl?: 'auto' | 'none' | 'plain' | 'scram-sha-256' | 'scram-sha-512' | 'oauthbearer' | 'external';
    /** redis-list, redis-pubsub, redis-streams: The password at the sentinels. Secret: never shown. */
    sentinelPassword?: string;
    /** redis-list, redis-pubsub, redis-streams: The user's name at the sentinels. */
    sentinelUser?: string;
    /** redis-pubsub: Use SPUBLISH and SSUBSCRIBE, which stay within the shard that has the channel (Redis 7 or later). */
    sharded?: boolean;
    /** redis-list, redis-pubsub, redis-streams: How long a server may be silent while an answer is due, before the connection is given up. Default: `5s`. */
    timeout?: Duration;
    /** all drivers: Use TLS; a scheme that ends in tls, and every other option of TLS, imply it. */
    tls?: boolean;
    /** all drivers: A PEM file with the authorities to trust, instead of the system's. */
    tlsCA?: string;
    /** all drivers: A PEM file with the client's certificate, for servers that ask for one. */
    tlsCert?: string;
    /** all drivers: Accept any certificate of the server. */
    tlsInsecure?: boolean;
    /** all drivers: A PEM file with the key of the client's certificate. */
    tlsKey?: string;
    /** all drivers: The name that the server's certificate must bear, instead of the URL's host. */
    tlsServerName?: string;
    /**
     * kafka, kafka-share: The bearer token of oauthbearer. Secret: never shown.
     * nats, nats-jetstream: Token; a user without a password in the URL is a token, too. Secret: never shown.
     */
    token?: string;
    /** kafka, kafka-share: File with the bearer token of oauthbearer, read again for each connection. */
    tokenFile?: string;
    /** all drivers: The user, instead of the URL's. */
    user?: string;
    /** nats, nats-jetstream: How long the socket may refuse to take data before the connection counts as broken. Default: `30s`. */
    writeTimeout?: Duration;
  }

  export interface DriverProducerOptions {
    /** nats-jetstream: How long to wait for the broker's answer to a message before it fails as a timeout. Default: `30s`. */
    ackTimeout?: Duration;
    /** kafka, kafka-share: Who has written a message when it is confirmed: all in-sync replicas, the leader, or nobody. One of all, leader, none. Default: `all`. */
    acks?: 'all' | 'leader' | 'none';
    /** rabbitmq, rabbitmq-pubsub, rabbitmq-stream: Which application sent it. */
    appId?: string;
    /** kafka, kafka-share: The largest batch, in bytes before compression; the broker's message.max.bytes has the last word. Default: `1048588`. */
    batchMaxBytes?: Size;
    /** rabbitmq, rabbitmq-pubsub, rabbitmq-stream: While the broker blocks publishing (connection.blocked): let messages wait, so that their latency shows it, or fail each at once as throttled. One of wait, fail. Default: `wait`. */
    blocked?: 'wait' | 'fail';
    /** kafka, kafka-share: The codec of batches. One of none, gzip, snappy, lz4, zstd. Default: `none`. */
    compression?: 'none' | 'gzip' | 'snappy' | 'lz4' | 'zstd';
    /** rabbitmq, rabbitmq-pubsub, rabbitmq-stream: Encoding of the body, such as gzip. */
    contentEncoding?: string;
    /** rabbitmq, rabbitmq-pubsub, rabbitmq-stream: MIME type of the body. */
    contentType?: string;
    /** rabbitmq, rabbitmq-pubsub, rabbitmq-stream: Identifier of what a message belongs to; request() uses its own. */
    correlationId?: string;
    /** redis-list, redis-streams: Send to a topic that does not exist, which makes it; otherwise that is an error. */
    create?: boolean;
    /** kafka, kafka-share: How long a message may wait to be sent, or for the broker's answer, before it fails. Default: `30s`. */
    deliveryTimeout?: Duration;
    /** rabbitmq, rabbitmq-stream: Exchange to publish to, and to create and bind with the topic; the default exchange, which leads straight to the queue, where empty. */
    exchange?: string;
    /** rabbitmq, rabbitmq-pubsub, rabbitmq-stream: How long a message may wait in a queue before it is dropped or dead-lettered; 0 is without end. */
    expiration?: Duration;
    /** redis-list, redis-streams: Whether the server must have a message on disk before it is confirmed (WAITAOF, once per pipeline, Redis 7.2 or later); auto is where the server can when the producer opens, and stays so after a reconnect. One of no, yes, auto. Default: `no`; durable `auto`. */
    fsync?: 'no' | 'yes' | 'auto';
    /** kafka, kafka-share: Number the messages so that the broker drops what a retry sends twice; without effect unless acks is all. Default: `true`. */
    idempotence?: boolean;
    /** kafka, kafka-share: Produce requests in flight per broker where idempotence is off; with it there are always up to 5. Default: `5`. */
    inFlight?: number;
    /** kafka, kafka-share: How long a batch waits for more messages. Default: `0`; throughput `5ms`. */
    linger?: Duration;
    /**
     * rabbitmq, rabbitmq-stream: Fail a message that no queue takes; without it the broker confirms such a message and drops it. Default: `true`.
     * rabbitmq-pubsub: Fail a message that no queue takes; without it the broker confirms such a message and drops it. Default: `false`.
     */
    mandatory?: boolean;
    /** redis-streams: Have the server drop the oldest messages, settled or not, when there are about so many; 0 is never. */
    maxLen?: number;
    /** rabbitmq, rabbitmq-pubsub, rabbitmq-stream: Refuse larger bodies in the client, because the broker would close the channel and fail all that is in flight on it. Default: `16MiB`. */
    maxMessageBytes?: Size;
    /** kafka, kafka-share: The one partition to send to; -1 leaves it to the partitioner. Default: `-1`. */
    partition?: number;
    /** kafka, kafka-share: Where messages without a key go: sticky to one partition until its batch is full or sent, uniform to one for 64 KiB, roundrobin in turn (keys ignored). Keys are hashed as Kafka's own client does (murmur2). One of sticky, uniform, roundrobin. Default: `sticky`. */
    partitioner?: 'sticky' | 'uniform' | 'roundrobin';
    /** rabbitmq, rabbitmq-pubsub, rabbitmq-stream: Ask a durable classic queue to keep the message on disk (delivery mode 2); quorum queues and streams always do. Default: `true`. */
    persistent?: boolean;
    /** rabbitmq, rabbitmq-pubsub, rabbitmq-stream: Priority of a message in a queue with maxPriority; 0 is none. */
    priority?: number;
    /** redis-pubsub: Treat it as an error that a message reached no subscriber. */
    requireSubscriber?: boolean;
    /** kafka, kafka-share: How often the client sends a message again before it fails, within deliveryTimeout; see Limits before setting it to 0. Default: `2147483647`. */
    retries?: number;
    /**
     * rabbitmq, rabbitmq-stream: Take a message's key as its routing key, where it has one and an exchange is named.
     * rabbitmq-pubsub: Take a message's key as its routing key, where it has one.
     */
    routeByKey?: boolean;
    /** rabbitmq, rabbitmq-pubsub, rabbitmq-stream: Routing key of every message; the topic's name where empty. */
    routingKey?: string;
    /** rabbitmq, rabbitmq-pubsub, rabbitmq-stream: What kind of message it is, for the application. */
    type?: string;
    /** redis-list, redis-streams: How many replicas must have a message before it is confirmed (WAIT, once per pipeline); -1 is as many as are connected when the producer opens. It waits for no fewer after a reconnect: where they are not there any more, its messages fail by waitTimeout. Default: durable `-1`. */
    wait?: number;
    /** redis-list, redis-streams: How long wait and fsync may take, each, before the messages of the pipeline fail. Default: `1s`. */
    waitTimeout?: Duration;
  }

  export interface DriverConsumerOptions {
    /** nats-jetstream: Whether each message is acknowledged, or the last of a batch for all before it, or none (the server settles what it delivers). One of explicit, all, none. Default: `explicit`. */
    ackPolicy?: 'explicit' | 'all' | 'none';
    /** nats-jetstream: After what time without settlement the server delivers a message again. Default: `30s`. */
    ackWait?: Duration;
    /** rabbitmq-pubsub: Binding key of the consumer's queue to the exchange, for the types that have one. Default: `#`. */
    bindingKey?: string;
    /** redis-streams: How often a consumer looks for messages that another one gave back when it closed, or has held for longer than minIdle. Default: `250ms`. */
    claimInterval?: Duration;
    /** kafka: How long an ack may wait for its commit where no confirmation is asked for. Default: `250ms`. */
    commitInterval?: Duration;
    /** rabbitmq, rabbitmq-pubsub: Priority of the consumer among those of the queue. */
    consumerPriority?: number;
    /** rabbitmq-pubsub: Exchange that rejected and expired messages go to. */
    deadLetterExchange?: string;
    /** rabbitmq-pubsub: Queue, created with the topic and of the same kind, that rejected and expired messages go to. */
    deadLetterQueue?: string;
    /** rabbitmq-pubsub: Routing key of dead-lettered messages; their own where empty. */
    deadLetterRoutingKey?: string;
    /** redis-streams: Delete a message from the stream when it is acknowledged or rejected, for all groups (XDEL); otherwise the stream keeps it. */
    deleteSettled?: boolean;
    /** rabbitmq-pubsub: After how many failed deliveries a quorum queue drops or dead-letters a message; the broker's default where 0. */
    deliveryLimit?: number;
    /** rabbitmq-pubsub: Whether a classic queue survives a restart of the broker; a quorum queue always does, and refuses false. Default: `true`. */
    durable?: boolean;
    /** rabbitmq-pubsub: After how long without consumers the queue is deleted, whole milliseconds; never where 0. */
    expires?: Duration;
    /** kafka, kafka-share: The most bytes of one fetch. Default: `50MiB`. */
    fetchMaxBytes?: Size;
    /** kafka, kafka-share: The most bytes of one partition in one fetch. Default: `1MiB`. */
    fetchMaxPartitionBytes?: Size;
    /**
     * kafka: How long the broker holds a fetch that finds no message; a message that comes ends it at once. Default: `500ms`.
     * kafka-share: How long the broker holds a fetch that finds no message; a message that comes ends it at once. Default: `100ms`.
     */
    fetchMaxWait?: Duration;
    /** kafka, kafka-share: How many bytes the broker waits for, up to fetchMaxWait, before it answers a fetch. Default: `1`. */
    fetchMinBytes?: Size;
    /** kafka: Who assigns partitions: a member (classic, cooperative-sticky) or the broker (consumer, KIP-848, Kafka 4). One of classic, consumer. Default: `classic`. */
    groupProtocol?: 'classic' | 'consumer';
    /** kafka: How often a member asks whether the group has changed, and so how long a new member may wait for the others; classic only. Default: `500ms`. */
    heartbeatInterval?: Duration;
    /** nats-jetstream: After what time of absence the server forgets a consumer that has no group. Default: `30s`. */
    inactiveThreshold?: Duration;
    /** kafka: Static membership: members are named instanceId-0, instanceId-1 and so on, and one that comes back within sessionTimeout gets its partitions back without a rebalance. */
    instanceId?: string;
    /** rabbitmq-pubsub: Let a classic queue keep messages on disk only (x-queue-mode; broker versions before 3.12). */
    lazy?: boolean;
    /** rabbitmq-pubsub: Where the leader of a replicated queue starts: on the node of this connection, or on the least loaded (balanced, which a classic queue refuses). One of client-local, balanced. Default: `client-local`. */
    leaderLocator?: 'client-local' | 'balanced';
    /** redis-list: How long after a consumer's last sign of life the others take its messages; each gives one, and looks, every third of it. Default: `10s`. */
    lease?: Duration;
    /** kafka: A static member that is closed gives its partitions up at once, instead of keeping them for sessionTimeout. Default: `true`. */
    leaveOnClose?: boolean;
    /** nats-jetstream: How many messages may be delivered and not settled in the whole group; -1 is no limit; each member is bounded by its prefetch. Default: `100000`. */
    maxAckPending?: number;
    /** nats-jetstream: How many times a message is delivered at most; -1 is no limit. Default: `-1`. */
    maxDeliver?: number;
    /** rabbitmq-pubsub: Most messages that the queue holds; no limit where 0. */
    maxLength?: number;
    /** rabbitmq-pubsub: Most bytes of bodies that the queue holds; no limit where 0. */
    maxLengthBytes?: Size;
    /** rabbitmq-pubsub: Number of priorities of a classic queue; none where 0. */
    maxPriority?: number;
    /** rabbitmq-pubsub: How long a message may wait in the queue, whole milliseconds; for ever where 0. */
    messageTTL?: Duration;
    /** redis-streams: How long a message may be with a consumer and not settled before another consumer of the group takes it over. Default: `30s`. */
    minIdle?: Duration;
    /** nats-jetstream: How long the server waits before it delivers a requeued message again. Default: `0s`. */
    nakDelay?: Duration;
    /** rabbitmq-pubsub: What happens at the limit: the oldest message goes, or the new one is rejected. One of drop-head, reject-publish, reject-publish-dlx. Default: `drop-head`. */
    overflow?: 'drop-head' | 'reject-publish' | 'reject-publish-dlx';
    /** nats: How many bytes of payload may wait for Receive; what is beyond it is dropped, counted, and reported as throttled. Default: `256MiB`. */
    pendingBytes?: Size;
    /** nats: How many messages may wait for Receive; those beyond it are dropped, counted, and reported as throttled. Default: `1048576`. */
    pendingMessages?: number;
    /** rabbitmq-pubsub: Kind of queue to create: on one node, or replicated by Raft. One of classic, quorum. Default: `classic`; durable `quorum`. */
    queueType?: 'classic' | 'quorum';
    /** kafka: How long a silent member keeps its partitions; classic only. Default: `45s`. */
    sessionTimeout?: Duration;
    /** rabbitmq-pubsub: Deliver to one consumer at a time, the others standing by. */
    singleActiveConsumer?: boolean;
  }

  export interface DriverTopicOptions {
    /** rabbitmq, rabbitmq-stream: Binding keys of the queue to the exchange; the topic's name where empty. */
    bindings?: string | string[];
    /** kafka, kafka-share: Any other topic configs, as name=value. */
    configs?: string | string[];
    /** rabbitmq: Exchange that rejected and expired messages go to. */
    deadLetterExchange?: string;
    /** rabbitmq: Queue, created with the topic and of the same kind, that rejected and expired messages go to. */
    deadLetterQueue?: string;
    /** rabbitmq: Routing key of dead-lettered messages; their own where empty. */
    deadLetterRoutingKey?: string;
    /** rabbitmq: After how many failed deliveries a quorum queue drops or dead-letters a message; the broker's default where 0. */
    deliveryLimit?: number;
    /** nats-jetstream: What gives way when a limit is reached: the oldest message, or the new one, whose sender then gets an error. One of old, new. Default: `old`. */
    discard?: 'old' | 'new';
    /** nats-jetstream: How long the stream remembers the header Nats-Msg-Id in order to drop duplicates, whose sends fail as rejected; 0 is the server's default of 2 minutes. Default: `0s`. */
    duplicates?: Duration;
    /** rabbitmq: Whether a classic queue survives a restart of the broker; a quorum queue always does, and refuses false. Default: `true`. */
    durable?: boolean;
    /** rabbitmq, rabbitmq-stream: Exchange to publish to, and to create and bind with the topic; the default exchange, which leads straight to the queue, where empty. */
    exchange?: string;
    /**
     * rabbitmq, rabbitmq-stream: Type of the exchange to create: direct, fanout, topic, headers, or a plugin's. Default: `direct`.
     * rabbitmq-pubsub: Type of the exchange to create: fanout, topic, direct, headers, or a plugin's. Default: `fanout`.
     */
    exchangeType?: string;
    /** rabbitmq: After how long without consumers the queue is deleted, whole milliseconds; never where 0. */
    expires?: Duration;
    /** rabbitmq: Let a classic queue keep messages on disk only (x-queue-mode; broker versions before 3.12). */
    lazy?: boolean;
    /** rabbitmq, rabbitmq-stream: Where the leader of a replicated queue starts: on the node of this connection, or on the least loaded (balanced, which a classic queue refuses). One of client-local, balanced. Default: `client-local`. */
    leaderLocator?: 'client-local' | 'balanced';
    /**
     * nats-jetstream: How long the stream keeps a message; 0 is for ever. Default: `0s`.
     * rabbitmq-stream: Age, whole seconds, after which a segment of the stream is deleted; no limit where 0.
     */
    maxAge?: Duration;
    /** nats-jetstream: How many bytes the stream keeps; -1 is no limit, 0 the server's default, which is none either. Default: `-1`. */
    maxBytes?: Size;
    /** rabbitmq: Most messages that the queue holds; no limit where 0. */
    maxLength?: number;
    /**
     * rabbitmq: Most bytes of bodies that the queue holds; no limit where 0.
     * rabbitmq-stream: Bytes after which the oldest segment of the stream is deleted; no limit where 0.
     */
    maxLengthBytes?: Size;
    /** nats-jetstream: How many messages the stream keeps; -1 is no limit, 0 the server's default, which is none either. Default: `-1`. */
    maxMessages?: number;
    /** rabbitmq: Number of priorities of a classic queue; none where 0. */
    maxPriority?: number;
    /** rabbitmq: How long a message may wait in the queue, whole milliseconds; for ever where 0. */
    messageTTL?: Duration;
    /** kafka, kafka-share: How many replicas must have a message for acks=all to succeed (min.insync.replicas), at most all there are; 0 is the broker's default. Default: `0`; durable `2`. */
    minInsyncReplicas?: number;
    /** rabbitmq: What happens at the limit: the oldest message goes, or the new one is rejected. One of drop-head, reject-publish, reject-publish-dlx. Default: `drop-head`. */
    overflow?: 'drop-head' | 'reject-publish' | 'reject-publish-dlx';
    /** nats-jetstream: Whether the server writes a message before it confirms it (default), or may do so afterwards (async). One of default, async. Default: `default`. */
    persist?: 'default' | 'async';
    /** rabbitmq: Kind of queue to create: on one node, or replicated by Raft. One of classic, quorum. Default: `classic`; durable `quorum`. */
    queueType?: 'classic' | 'quorum';
    /**
     * kafka, kafka-share: How long messages are kept (retention.ms), whole milliseconds; 0 is the broker's default. Default: `0`.
     * nats-jetstream: What the stream keeps: all within its limits, what no consumer acknowledged, or what not every consumer acknowledged. One of limits, workqueue, interest. Default: `limits`.
     */
    retention?: Duration | 'limits' | 'workqueue' | 'interest';
    /** rabbitmq-stream: Size of a segment file; the broker's default where 0. */
    segmentBytes?: Size;
    /** rabbitmq: Deliver to one consumer at a time, the others standing by. */
    singleActiveConsumer?: boolean;
    /** nats-jetstream: Where the stream keeps its messages. One of file, memory. Default: `file`. */
    storage?: 'file' | 'memory';
  }

  export interface DriverMessageOptions {
    /** rabbitmq, rabbitmq-pubsub, rabbitmq-stream: Which application sent it. */
    appId?: string;
    /** rabbitmq, rabbitmq-pubsub, rabbitmq-stream: Encoding of the body, such as gzip. */
    contentEncoding?: string;
    /** rabbitmq, rabbitmq-pubsub, rabbitmq-stream: MIME type of the body. */
    contentType?: string;
    /** rabbitmq, rabbitmq-pubsub, rabbitmq-stream: Identifier of what a message belongs to; request() uses its own. */
    correlationId?: string;
    /** rabbitmq, rabbitmq-pubsub, rabbitmq-stream: How long a message may wait in a queue before it is dropped or dead-lettered; 0 is without end. */
    expiration?: Duration;
    /** rabbitmq, rabbitmq-pubsub, rabbitmq-stream: Priority of a message in a queue with maxPriority; 0 is none. */
    priority?: number;
    /** rabbitmq, rabbitmq-pubsub, rabbitmq-stream: What kind of message it is, for the application. */
    type?: string;
  }
}
