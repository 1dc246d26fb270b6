// Written by `make generate`.
declare module 'k6/x/broker' {
  export interface DriverConnectOptions {
    /** amqp1, amqp1-pubsub: The address of a topic, with {topic} in place of its name; where empty it is the name, and at RabbitMQ /queues/{topic} or /exchanges/{topic}. */
    address?: string;
    /** pulsar, pulsar-failover: The admin API, such as http://127.0.0.1:8080; the URL's first host at port 8080, or 8443 with TLS, where it is not given. */
    adminUrl?: string;
    /** mongodb: How the user is authenticated; auto is the strongest SCRAM that the server has for the user, and MONGODB-X509 needs tlsCert. One of auto, SCRAM-SHA-256, SCRAM-SHA-1, PLAIN, MONGODB-X509. Default: `auto`. */
    authMechanism?: 'auto' | 'SCRAM-SHA-256' | 'SCRAM-SHA-1' | 'PLAIN' | 'MONGODB-X509';
    /** mongodb: The database that has the user, instead of the URL's database; admin where the URL names none. */
    authSource?: string;
    /** all drivers: How long connecting to a server may take, until it has answered. Default: `10s`. */
    connectTimeout?: Duration;
    /** influxdb: Create the URL's database where it is not there. */
    createDatabase?: boolean;
    /** nats, nats-jetstream: A credentials file: a user's JWT and seed. A path relative to the script, or the file's text. */
    creds?: string;
    /** redis-list, redis-pubsub, redis-streams: The number of the database, where it is not the URL's path. */
    db?: number;
    /** mongodb: Speak to the URL's host only, and to no other members of its replica set. */
    directConnection?: boolean;
    /** nats-jetstream: JetStream domain to use, where the server is a leaf node or a hub. */
    domain?: string;
    /** rocketmq: Where messages are sent and received: at the addresses that the servers advertise for a topic, or at the URL's alone, for a proxy in front of one server. One of advertised, url. Default: `advertised`. */
    endpoints?: 'advertised' | 'url';
    /** rabbitmq, rabbitmq-pubsub, rabbitmq-stream: Largest frame in bytes; the server may ask for less. Default: `128KiB`. */
    frameMax?: Size;
    /** rabbitmq, rabbitmq-pubsub, rabbitmq-stream: Interval of heartbeats, whole seconds; a connection silent for one and a half of them is broken. Default: `10s`. */
    heartbeat?: Duration;
    /** amqp1, amqp1-pubsub: How long the server may be silent before the connection is broken; the server is asked for a sign of life in half of that. Default: `1m`. */
    idleTimeout?: Duration;
    /** kafka, kafka-share, kmq: Connect to the URL's one host whatever address the broker advertises: for one broker behind a proxy or a forwarded port. Default: `false`. */
    ignoreAdvertised?: boolean;
    /** pulsar, pulsar-failover: Which of the brokers' advertisedListeners to connect to. */
    listenerName?: string;
    /** redis-list, redis-pubsub, redis-streams: The name by which the sentinels know the master. */
    master?: string;
    /** blueflood: How large a request may be: the server's HTTP_MAX_CONTENT_LENGTH. It never answers a larger one, so that a batch that makes one is refused here. Default: `1MiB`. */
    maxRequest?: Size;
    /** redis-list, redis-pubsub, redis-streams: What the URL's hosts are: one server, the sentinels that know the master, or nodes of a cluster; auto is sentinel where master is set, else cluster where there are several hosts. One of auto, single, sentinel, cluster. Default: `auto`. */
    mode?: 'auto' | 'single' | 'sentinel' | 'cluster';
    /** nats, nats-jetstream: Name of the connection in the server's monitoring, instead of the one that the tool gives. */
    name?: string;
    /** rocketmq: The name servers, host:port and comma-separated, by which topics and groups are made and asked for; by default port 9876 of the URL's hosts. */
    nameServer?: string | string[];
    /**
     * pulsar, pulsar-failover: Tenant and namespace of topics that are named without them. Default: `public/default`.
     * rocketmq: The namespace of topics and groups, where the servers have several.
     */
    namespace?: string;
    /** nats, nats-jetstream: A file with the seed of an nkey. A path relative to the script, or the file's text. */
    nkey?: string;
    /** pulsar, pulsar-failover: How long the broker may take to answer anything but a message that was sent. Default: `5s`. */
    operationTimeout?: Duration;
    /** all drivers: The user's password, instead of the URL's. Secret: never shown. */
    password?: string;
    /** nats, nats-jetstream: Pause between pings that find a dead connection; it counts as broken after two without an answer. Default: `20s`. */
    pingInterval?: Duration;
    /** blueflood: Where the query service is, as host:port; port 20000 of the URL's host where empty. */
    queryAddress?: string;
    /** nats, nats-jetstream: Try the URL's servers in random order instead of the given one. Default: `false`. */
    randomize?: boolean;
    /** nats, nats-jetstream: Pause before the same server is tried again after the connection broke. Default: `100ms`. */
    reconnectWait?: Duration;
    /** sqs, sqs-fifo: The region, instead of that of the environment or of AWS's configuration files; us-east-1 where there is none and the URL names a host. */
    region?: string;
    /** mongodb: The name that the replica set must have; servers of another one are not used. */
    replicaSet?: string;
    /**
     * kafka, kafka-share, kmq: How long a request other than produce and fetch is retried, and how long an answer may be overdue until the connection is closed. Default: `10s`.
     * kurrentdb, rocketmq: How long the answer to one request may take, a connection that has to be made again included. Default: `10s`.
     */
    requestTimeout?: Duration;
    /** influxdb: The retention policy to write to; the database's default where empty. */
    retentionPolicy?: string;
    /**
     * amqp1, amqp1-pubsub: How to authenticate: by user and password (plain), as nobody (anonymous), or by the client's certificate (external); auto is plain where there is a user, else anonymous. One of auto, plain, anonymous, external. Default: `auto`.
     * kafka, kafka-share, kmq: How to authenticate; auto is oauthbearer where there is a token, plain where there is a user, else none. One of auto, none, plain, scram-sha-256, scram-sha-512, oauthbearer. Default: `auto`.
     * rabbitmq, rabbitmq-pubsub, rabbitmq-stream: How to authenticate: user and password of the URL, or the client's certificate. One of plain, external. Default: `plain`.
     */
    sasl?: 'auto' | 'plain' | 'anonymous' | 'external' | 'none' | 'scram-sha-256' | 'scram-sha-512' | 'oauthbearer';
    /** postgres: The schema in which topics are tables. Default: `public`. */
    schema?: string;
    /** redis-list, redis-pubsub, redis-streams: The password at the sentinels. Secret: never shown. */
    sentinelPassword?: string;
    /** redis-list, redis-pubsub, redis-streams: The user's name at the sentinels. */
    sentinelUser?: string;
    /** sqs, sqs-fifo: The session token of temporary credentials whose access key is the URL's user. Secret: never shown. */
    sessionToken?: string;
    /** redis-pubsub: Use SPUBLISH and SSUBSCRIBE, which stay within the shard that has the channel (Redis 7 or later). */
    sharded?: boolean;
    /**
     * amqp1, amqp1-pubsub: How long the answer to anything but a message may take, and one write to the network. Default: `30s`.
     * blueflood, influxdb: How long the answer to a request may take before it is given up. Default: `30s`.
     * mongodb: How long the answer to one command may take, what the write concern waits for included. Default: `30s`.
     * postgres: How long the answer to one statement may take, before the connection is given up. Default: `30s`.
     * redis-list, redis-pubsub, redis-streams: How long a server may be silent while an answer is due, before the connection is given up. Default: `5s`.
     * sqs, sqs-fifo: How long the answer to a request may take before it is given up; of a receive beyond its waitTime. Default: `30s`.
     */
    timeout?: Duration;
    /** all drivers: Use TLS; a scheme that ends in tls or ssl, amqps, and every other option of TLS, imply it. */
    tls?: boolean;
    /** all drivers: A PEM file with the authorities to trust instead of the system's. A path relative to the script, or the file's text. */
    tlsCA?: string;
    /** all drivers: A PEM file with the client's certificate. A path relative to the script, or the file's text. */
    tlsCert?: string;
    /** all drivers: Accept any certificate of the server. */
    tlsInsecure?: boolean;
    /** all drivers: A PEM file with the key of the client's certificate. A path relative to the script, or the file's text. */
    tlsKey?: string;
    /** all drivers: The name in the server's certificate, instead of the URL's host. */
    tlsServerName?: string;
    /**
     * blueflood: The token to authenticate with (X-Auth-Token), instead of a user. Secret: never shown.
     * influxdb: The token to authenticate with, instead of a user. Secret: never shown.
     * kafka, kafka-share, kmq: The bearer token of oauthbearer. Secret: never shown.
     * nats, nats-jetstream: Token; a user without a password in the URL is a token, too. Secret: never shown.
     * pulsar, pulsar-failover: The token (JWT) to authenticate with. Secret: never shown.
     */
    token?: string;
    /**
     * kafka, kafka-share, kmq: File with the bearer token of oauthbearer, read again for each connection. A path relative to the script, or the file's text.
     * pulsar, pulsar-failover: File with the token, read again for each connection. A path relative to the script, or the file's text.
     */
    tokenFile?: string;
    /** all drivers: The user, instead of the URL's. */
    user?: string;
    /** nats, nats-jetstream: How long the socket may refuse to take data before the connection counts as broken. Default: `30s`. */
    writeTimeout?: Duration;
  }

  export interface DriverProducerOptions {
    /** nats-jetstream: How long to wait for the broker's answer to a message before it fails as a timeout. Default: `30s`. */
    ackTimeout?: Duration;
    /** kafka, kafka-share, kmq: Who has written a message when it is confirmed: all in-sync replicas, the leader, or none. One of all, leader, none. Default: `all`. */
    acks?: 'all' | 'leader' | 'none';
    /** rabbitmq, rabbitmq-pubsub, rabbitmq-stream: Which application sent it. */
    appId?: string;
    /**
     * kurrentdb: How many of the messages that wait for a producer's last append one append has at most, which share their fate; 1 gives each one of its own. Default: `1000`.
     * mongodb: How many of the messages that wait for a command one insertMany has at most; 1 gives each one of its own. Default: `1000`.
     * rocketmq: How many of the messages that wait for a request it may have, which share its fate and a queue; nothing waits for more to come. One message of a fifo topic goes by itself. Default: `1`; throughput `32`.
     */
    batch?: number;
    /** pulsar, pulsar-failover: The most bytes of a batch, before compression. Default: `128KiB`. */
    batchBytes?: Size;
    /** pulsar, pulsar-failover: How long a batch waits for more messages. Default: `1ms`. */
    batchDelay?: Duration;
    /**
     * kafka, kafka-share: The largest batch, in bytes before compression; the broker's message.max.bytes has the last word. Default: `1048588`.
     * kmq: The largest batch, in bytes before compression; a larger one could not be sent again within a broker's default message.max.bytes. Default: `1047564`.
     */
    batchMaxBytes?: Size;
    /** pulsar, pulsar-failover: The most messages of a batch. Default: `1000`. */
    batchMessages?: number;
    /** pulsar, pulsar-failover: Send messages one by one, in batches, or in batches of one key each, which key-shared subscriptions need. One of none, default, key. Default: `none`; throughput `default`. */
    batching?: 'none' | 'default' | 'key';
    /** rabbitmq, rabbitmq-pubsub, rabbitmq-stream: While the broker blocks publishing (connection.blocked): let messages wait, so that their latency shows it, or fail each at once as throttled. One of wait, fail. Default: `wait`. */
    blocked?: 'wait' | 'fail';
    /** influxdb: What a body is: one string field of the point, or all its fields in the line protocol, such as value=1.5,count=3i. One of field, fields. Default: `field`. */
    body?: 'field' | 'fields';
    /**
     * kafka, kafka-share, kmq: The codec of batches. One of none, gzip, snappy, lz4, zstd. Default: `none`.
     * pulsar, pulsar-failover: The codec of messages or batches. One of none, lz4, zlib, zstd, snappy. Default: `none`.
     */
    compression?: 'none' | 'gzip' | 'snappy' | 'lz4' | 'zstd' | 'zlib';
    /** amqp1, amqp1-pubsub, rabbitmq, rabbitmq-pubsub, rabbitmq-stream: Encoding of the body, such as gzip. */
    contentEncoding?: string;
    /** amqp1, amqp1-pubsub, rabbitmq, rabbitmq-pubsub, rabbitmq-stream: MIME type of the body. */
    contentType?: string;
    /**
     * amqp1, amqp1-pubsub: Identifier of what the message belongs to.
     * rabbitmq, rabbitmq-pubsub, rabbitmq-stream: Identifier of what a message belongs to; request() uses its own.
     */
    correlationId?: string;
    /** redis-list, redis-streams: Send to a topic that does not exist, which makes it; otherwise that is an error. */
    create?: boolean;
    /**
     * amqp1, amqp1-pubsub: How long the broker keeps the message back: Artemis and Azure Service Bus do.
     * sqs: How long the service keeps the message from consumers, whole seconds.
     */
    delay?: Duration;
    /** rocketmq: How long the broker keeps a message before it delivers it; of topics whose messageType is delay or mixed. */
    deliverAfter?: Duration;
    /** kafka, kafka-share, kmq: How long a message may wait to be sent, or for the broker's answer, before it fails. Default: `30s`. */
    deliveryTimeout?: Duration;
    /** kurrentdb: The type of the event. Of what is received it is told where it is not the default. Default: `message`. */
    eventType?: string;
    /** rabbitmq, rabbitmq-stream: Exchange to publish to, and to create and bind with the topic; the default exchange, which leads straight to the queue, where empty. */
    exchange?: string;
    /** rabbitmq, rabbitmq-pubsub, rabbitmq-stream: How long a message may wait in a queue before it is dropped or dead-lettered; 0 is without end. */
    expiration?: Duration;
    /** redis-list, redis-streams: Whether the server must have a message on disk before it is confirmed (WAITAOF, once per pipeline, Redis 7.2 or later); auto is where the server can when the producer opens, and stays so after a reconnect. One of no, yes, auto. Default: `no`; durable `auto`. */
    fsync?: 'no' | 'yes' | 'auto';
    /** amqp1, amqp1-pubsub: The group of messages (the session, at Azure Service Bus) that go to one consumer in order. */
    groupId?: string;
    /** influxdb: Compress the requests. */
    gzip?: boolean;
    /** kafka, kafka-share, kmq: Number the messages so that the broker drops what a retry sends twice; without effect unless acks is all. Default: `true`. */
    idempotence?: boolean;
    /**
     * kafka, kafka-share, kmq: Produce requests in flight per broker where idempotence is off; with it there are always up to 5. Default: `5`.
     * mongodb: How many commands may be under way at a time: of a producer, each with as many messages as batch says; of a consumer, each for one message, which is all that MongoDB leases at once. Default: `8`.
     * sqs, sqs-fifo: How many requests may be under way at a time, each with up to ten messages: of a producer to send, of a consumer to receive and as many to settle. Default: `8`.
     */
    inFlight?: number;
    /** mongodb: A write also waits for the journals, on disk, of the members that it waits for; false leaves that to the servers. Default: durable `true`. */
    journal?: boolean;
    /** kafka, kafka-share, kmq: How long a batch waits for more messages. Default: `0`; throughput `5ms`. */
    linger?: Duration;
    /**
     * rabbitmq, rabbitmq-stream: Fail a message that no queue takes; without it the broker confirms such a message and drops it. Default: `true`.
     * rabbitmq-pubsub: Fail a message that no queue takes; without it the broker confirms such a message and drops it. Default: `false`.
     */
    mandatory?: boolean;
    /** kurrentdb: How much one append of several messages has at most; what does not fit goes with the next. Servers before 25.1 take 1 MiB (MaxAppendSize). Default: `1MiB`. */
    maxAppendSize?: Size;
    /** redis-streams: Have the server drop the oldest messages, settled or not, when there are about so many; 0 is never. */
    maxLen?: number;
    /** rabbitmq, rabbitmq-pubsub, rabbitmq-stream: Refuse larger bodies in the client, because the broker would close the channel and fail all that is in flight on it. Default: `16MiB`. */
    maxMessageBytes?: Size;
    /** sqs-fifo: Over how many message groups messages without a key are spread, each in turn; 1 keeps the order of all of them. Default: `1000`. */
    messageGroups?: number;
    /** amqp1, amqp1-pubsub: Identifier of the message; some brokers drop a second one with the same. */
    messageId?: string;
    /** blueflood: How many metrics a producer has, which take turns: as many at least as a batch has messages, for each to be of a metric of its own. Default: `1000`. */
    metrics?: number;
    /**
     * kafka, kafka-share, kmq: The one partition to send to; -1 leaves it to the partitioner. Default: `-1`.
     * pulsar, pulsar-failover: The one partition to send to; -1 leaves it to the key, by Java's hash of strings as Pulsar's own client does, and without one to each in turn. Default: `-1`.
     */
    partition?: number;
    /** kafka, kafka-share, kmq: Where messages without a key go: sticky to one partition until its batch is full or sent, uniform to one for 64 KiB, roundrobin in turn (keys ignored). Keys are hashed as Kafka's own client does (murmur2). One of sticky, uniform, roundrobin. Default: `sticky`. */
    partitioner?: 'sticky' | 'uniform' | 'roundrobin';
    /**
     * amqp1, amqp1-pubsub: Ask that the message outlives a restart of the broker (durable). Default: `true`.
     * rabbitmq, rabbitmq-pubsub, rabbitmq-stream: Ask a durable classic queue to keep the message on disk (delivery mode 2); quorum queues and streams always do. Default: `true`.
     */
    persistent?: boolean;
    /**
     * amqp1, amqp1-pubsub: Priority of the message, the greater the sooner. Default: `4`.
     * rabbitmq, rabbitmq-pubsub, rabbitmq-stream: Priority of a message in a queue with maxPriority; 0 is none.
     */
    priority?: number;
    /** blueflood: What stands in the metrics' names between the topic and the number; a name of its own for each producer where empty. Two producers must not share it at a time. */
    producerName?: string;
    /** blueflood: Read back what was confirmed at the end of the test, which finds what is lost, and takes the server some seconds for each 100,000 points. Default: `true`. */
    readBack?: boolean;
    /** rocketmq: How many requests of a producer may be unanswered; further messages wait for one of them. A topic of fifo messages has one for each partition. Default: `64`. */
    requests?: number;
    /** redis-pubsub: Treat it as an error that a message reached no subscriber. */
    requireSubscriber?: boolean;
    /** kafka, kafka-share, kmq: How often the client sends a message again before it fails, within deliveryTimeout. With 0 the first failure fails all messages that are buffered for its partition, too. Default: `2147483647`. */
    retries?: number;
    /**
     * rabbitmq, rabbitmq-stream: Take a message's key as its routing key, where it has one and an exchange is named.
     * rabbitmq-pubsub: Take a message's key as its routing key, where it has one.
     */
    routeByKey?: boolean;
    /** rabbitmq, rabbitmq-pubsub, rabbitmq-stream: Routing key of every message; the topic's name where empty. */
    routingKey?: string;
    /** pulsar, pulsar-failover: How long a message may wait for the broker's answer, broken connections included, before it fails. Default: `30s`. */
    sendTimeout?: Duration;
    /** amqp1, amqp1-pubsub: What the message is about; at RabbitMQ its routing key. */
    subject?: string;
    /** postgres: What a commit waits for, as the server's synchronous_commit says: of a producer what a confirmation proves, of a consumer what a settlement does. One of on, off, local, remote_write, remote_apply. Default: `on`. */
    synchronousCommit?: 'on' | 'off' | 'local' | 'remote_write' | 'remote_apply';
    /** rocketmq: A message's tag, by which consumers may choose. */
    tag?: string;
    /** influxdb: Tags of every point, such as { host: 'a' }; in a URL tags=name=value, once for each. */
    tags?: string | string[] | { [name: string]: string | number | boolean };
    /** postgres: How many of the messages that wait for a producer's connection one transaction has at most, which share their fate; 1 gives each one of its own. Default: `1000`. */
    transaction?: number;
    /**
     * amqp1, amqp1-pubsub: How long the message may wait before it expires; 0 is without end.
     * blueflood: How long a point is kept. Default: `24h`.
     */
    ttl?: Duration;
    /** rabbitmq, rabbitmq-pubsub, rabbitmq-stream: What kind of message it is, for the application. */
    type?: string;
    /**
     * amqp1, amqp1-pubsub: Application properties that are numbers or booleans to the broker, such as { price: 5 } for a selector, beside the message's headers, which are strings.
     * rabbitmq, rabbitmq-pubsub, rabbitmq-stream: Headers that are numbers or booleans to the broker, such as { 'x-delay': 500 }, beside the message's headers, which are strings.
     */
    typedHeaders?: string | string[] | { [name: string]: string | number | boolean };
    /** blueflood: The metrics' unit; none where empty. */
    unit?: string;
    /** blueflood: What a point's value is: the number whose text the body is, or how many bytes the body has. One of body, size. Default: `body`. */
    value?: 'body' | 'size';
    /** mongodb: How many members a write waits for, a number up to 50 or majority: of a producer what a confirmation proves, and 0 proves nothing; of a consumer what a settlement does, and 0 is 1. Default: `majority`. */
    w?: string;
    /** redis-list, redis-streams: How many replicas must have a message before it is confirmed (WAIT, once per pipeline); -1 is as many as are connected when the producer opens. It waits for no fewer after a reconnect: where they are not there any more, its messages fail by waitTimeout. Default: durable `-1`. */
    wait?: 'auto' | 'changeStream' | 'poll' | number;
    /** redis-list, redis-streams: How long wait and fsync may take, each, before the messages of the pipeline fail. Default: `1s`. */
    waitTimeout?: Duration;
  }

  export interface DriverConsumerOptions {
    /** pulsar, pulsar-failover: How long acks that are not confirmed may wait to go together, up to 1000 of them. Default: `0`; throughput `5ms`. */
    ackDelay?: Duration;
    /** nats-jetstream: After what time without settlement the server delivers a message again. Default: `30s`. */
    ackWait?: Duration;
    /** rabbitmq-pubsub: Arguments of that binding, such as { 'x-match': 'all', type: 'create' } of an exchange of type headers, which else gives the queue every message. */
    bindingArguments?: string | string[] | { [name: string]: string | number | boolean };
    /** rabbitmq-pubsub: Binding key of the consumer's queue to the exchange, for the types that have one. Default: `#`. */
    bindingKey?: string;
    /** redis-streams: How often a consumer looks for messages that another one gave back when it closed, or has held for longer than minIdle. Default: `250ms`. */
    claimInterval?: Duration;
    /** kafka: How long an ack may wait for its commit if no confirmation is asked for. Default: `250ms`. */
    commitInterval?: Duration;
    /** rabbitmq, rabbitmq-pubsub: Priority of the consumer among those of the queue. */
    consumerPriority?: number;
    /**
     * mongodb: The topic that gets the messages that are rejected or given up; otherwise they are deleted.
     * postgres: The topic that gets the messages that are rejected; otherwise they are deleted.
     */
    deadLetter?: string;
    /** rabbitmq-pubsub: Exchange that rejected and expired messages go to. */
    deadLetterExchange?: string;
    /** rabbitmq-pubsub: Queue, created with the topic and of the same kind, that rejected and expired messages go to. */
    deadLetterQueue?: string;
    /** rabbitmq-pubsub: Routing key of dead-lettered messages; their own where empty. */
    deadLetterRoutingKey?: string;
    /** kmq: The topic, which must be there, that gets messages that are rejected or given up; without it they are dropped. */
    deadLetterTopic?: string;
    /** redis-streams: Delete a message from the stream when it is acknowledged or rejected, for all groups (XDEL); otherwise the stream keeps it. */
    deleteSettled?: boolean;
    /** rabbitmq-pubsub: After how many failed deliveries a quorum queue drops or dead-letters a message; the broker's default where 0. */
    deliveryLimit?: number;
    /** rabbitmq-pubsub: Whether a classic queue survives a restart of the broker; a quorum queue always does, and refuses false. Default: `true`. */
    durable?: boolean;
    /** rabbitmq-pubsub: After how long without consumers the queue is deleted, whole milliseconds; never where 0. */
    expires?: Duration;
    /** kafka, kafka-share, kmq: The most bytes of one fetch. Default: `50MiB`. */
    fetchMaxBytes?: Size;
    /** kafka, kafka-share, kmq: The most bytes of one partition in one fetch. Default: `1MiB`. */
    fetchMaxPartitionBytes?: Size;
    /**
     * kafka, kmq: How long the broker holds a fetch that finds no message; a message that comes ends it at once. Default: `500ms`.
     * kafka-share: How long the broker holds a fetch that finds no message; a message that comes ends it at once. Default: `100ms`.
     */
    fetchMaxWait?: Duration;
    /** kafka, kafka-share, kmq: How many bytes the broker waits for, up to fetchMaxWait, before it answers a fetch. Default: `1`. */
    fetchMinBytes?: Size;
    /** amqp1-pubsub: The address of a group's subscription that is there already, with {topic} and {group} in place of the names, such as {topic}/Subscriptions/{group} at Azure Service Bus. */
    groupAddress?: string;
    /** kafka, kmq: Who assigns partitions: a member (classic, cooperative-sticky) or the broker (consumer, KIP-848, Kafka 4). One of classic, consumer. Default: `classic`. */
    groupProtocol?: 'classic' | 'consumer';
    /** kafka, kmq: How often a member asks whether the group has changed, and so how long a new member may wait for the others; classic only. Default: `500ms`. */
    heartbeatInterval?: Duration;
    /**
     * mongodb: How many commands may be under way at a time: of a producer, each with as many messages as batch says; of a consumer, each for one message, which is all that MongoDB leases at once. Default: `8`.
     * sqs, sqs-fifo: How many requests may be under way at a time, each with up to ten messages: of a producer to send, of a consumer to receive and as many to settle. Default: `8`.
     */
    inFlight?: number;
    /** nats-jetstream: After what time of absence the server forgets a consumer that has no group. Default: `30s`. */
    inactiveThreshold?: Duration;
    /** rocketmq: How long a message may be with a consumer and not settled before it is delivered again. Default: `30s`. */
    invisibleTime?: Duration;
    /** mongodb: A write also waits for the journals, on disk, of the members that it waits for; false leaves that to the servers. Default: durable `true`. */
    journal?: boolean;
    /** rabbitmq-pubsub: Where the leader of a replicated queue starts: on the node of this connection, or on the least loaded (balanced, which a classic queue refuses). One of client-local, balanced. Default: `client-local`. */
    leaderLocator?: 'client-local' | 'balanced';
    /**
     * mongodb, postgres: How long a message may be with a consumer and not settled before it is delivered again. Default: `30s`.
     * redis-list: How long after a consumer's last sign of life the others take its messages; each gives one, and looks, every third of it. Default: `10s`.
     */
    lease?: Duration;
    /** nats-jetstream: How many messages may be delivered and not settled in the whole group; -1 is no limit; each member is bounded by its prefetch. Default: `100000`. */
    maxAckPending?: number;
    /**
     * kmq: After how many deliveries a message that is not acknowledged is given up: sent to deadLetterTopic, or dropped where there is none; 0 is without end. Default: `0`.
     * mongodb: After how many deliveries a message that is not acknowledged is given up: sent to deadLetter, or deleted where there is none; 0 is without end. Default: `0`.
     * rocketmq: How often a message is delivered again before it is a dead letter, of a group that is new; 16 is the server's own. Default: `16`.
     */
    maxAttempts?: number;
    /** nats-jetstream: How many times a message is delivered at most; -1 is no limit. Default: `-1`. */
    maxDeliver?: number;
    /** rabbitmq-pubsub: Most messages that the queue holds; no limit where 0. */
    maxLength?: number;
    /** rabbitmq-pubsub: Most bytes of bodies that the queue holds; no limit where 0. */
    maxLengthBytes?: Size;
    /** rabbitmq-pubsub: Number of priorities of a classic queue; none where 0. */
    maxPriority?: number;
    /** kurrentdb: How often a message is delivered again before the group parks it. Default: `10`. */
    maxRetryCount?: number;
    /** rabbitmq-pubsub: How long a message may wait in the queue, whole milliseconds; for ever where 0. */
    messageTTL?: Duration;
    /** kurrentdb: How long a message may be with a consumer, received or prefetched, and not settled before the group delivers it again. Default: `30s`. */
    messageTimeout?: Duration;
    /** redis-streams: How long a message may be with a consumer and not settled before another consumer of the group takes it over. Default: `30s`. */
    minIdle?: Duration;
    /** pulsar: How long the client waits before it gives a requeued message back; 0 is as soon as it can, which is 9 ms. Default: `0`. */
    nackDelay?: Duration;
    /** nats-jetstream: How long the server waits before it delivers a requeued message again. Default: `0s`. */
    nakDelay?: Duration;
    /** rabbitmq-pubsub: What happens at the limit: the oldest message goes, or the new one is rejected. One of drop-head, reject-publish, reject-publish-dlx. Default: `drop-head`. */
    overflow?: 'drop-head' | 'reject-publish' | 'reject-publish-dlx';
    /** nats: How many bytes of payload may wait for Receive; what is beyond it is dropped, counted, and reported as throttled. Default: `256MiB`. */
    pendingBytes?: Size;
    /** nats: How many messages may wait for Receive; those beyond it are dropped, counted, and reported as throttled. Default: `1048576`. */
    pendingMessages?: number;
    /** mongodb: How often a consumer that polls asks whether there is a message; on average half of it is in the latency of every message that finds the consumer waiting. Default: `10ms`. */
    pollInterval?: Duration;
    /** rocketmq: How long a server waits for a message before it answers that there is none; 5s is the least that servers do by default. A consumer that closes waits for it. Default: `5s`. */
    pollTime?: Duration;
    /** rabbitmq-pubsub: Any other arguments of the queue to create, such as { 'x-max-in-memory-length': 1000 }; one that another option sets is refused. */
    queueArguments?: string | string[] | { [name: string]: string | number | boolean };
    /** rabbitmq-pubsub: Kind of queue to create: on one node, or replicated by Raft. Streams have the driver rabbitmq-stream. One of classic, quorum. Default: `classic`; durable `quorum`. */
    queueType?: 'classic' | 'quorum';
    /** rocketmq: How many requests for messages, of up to 32 each, a consumer has with each broker at a time. Default: `1`. */
    receives?: number;
    /** kmq: How long a message may be with a consumer, from when it is marked as begun, until it is sent again, whole milliseconds. Default: `30s`. */
    redeliverAfter?: Duration;
    /** kurrentdb: What becomes of messages that are rejected: parked with the group, where the server can replay them, or skipped. One of park, skip. Default: `park`. */
    reject?: 'park' | 'skip';
    /** amqp1, amqp1-pubsub: How nack gives a message back: as a delivery that failed, which counts (modify), so that this consumer gets it no more (elsewhere), or as if it had not been delivered (release). One of modify, elsewhere, release. Default: `modify`. */
    requeue?: 'modify' | 'elsewhere' | 'release';
    /**
     * mongodb, postgres: How long after a message was given back it is delivered again at the earliest.
     * rocketmq: How long after a message was given back it is delivered again at the earliest. Default: `0s`.
     * sqs, sqs-fifo: How long after a message was given back it is delivered again at the earliest, whole seconds.
     */
    requeueDelay?: Duration;
    /** amqp1, amqp1-pubsub: Which messages the consumer gets: a condition in the syntax of JMS on their headers and properties, such as color = 'red'. */
    selector?: string;
    /** kafka, kmq: How long a silent member keeps its partitions; classic only. Default: `45s`. */
    sessionTimeout?: Duration;
    /** rabbitmq-pubsub: Deliver to one consumer at a time, the others standing by. */
    singleActiveConsumer?: boolean;
    /** kurrentdb: How a group's messages are shared: PinnedByCorrelation by their keys, Pinned by the stream that a link leads to, so that of a topic without links one consumer has all. One of RoundRobin, DispatchToSingle, Pinned, PinnedByCorrelation. Default: `RoundRobin`. */
    strategy?: 'RoundRobin' | 'DispatchToSingle' | 'Pinned' | 'PinnedByCorrelation';
    /**
     * pulsar: How the group, or a consumer without one, is subscribed; all members must say the same. One of shared, key-shared. Default: `shared`.
     * pulsar-failover: How the group, or a consumer without one, is subscribed; all members must say the same. One of failover, exclusive. Default: `failover`.
     */
    subscriptionType?: 'shared' | 'key-shared' | 'failover' | 'exclusive';
    /** postgres: What a commit waits for, as the server's synchronous_commit says: of a producer what a confirmation proves, of a consumer what a settlement does. One of on, off, local, remote_write, remote_apply. Default: `on`. */
    synchronousCommit?: 'on' | 'off' | 'local' | 'remote_write' | 'remote_apply';
    /** rocketmq: The tags of the messages to receive, as in "red || blue"; * is all messages. Default: `*`. */
    tags?: string | string[] | { [name: string]: string | number | boolean };
    /** sqs, sqs-fifo: How long a message may be with a consumer and not settled before it is delivered again, whole seconds; it runs while the message waits to be received, too. Default: `30s`. */
    visibilityTimeout?: Duration;
    /** mongodb: How many members a write waits for, a number up to 50 or majority: of a producer what a confirmation proves, and 0 proves nothing; of a consumer what a settlement does, and 0 is 1. Default: `majority`. */
    w?: string;
    /** mongodb: How a consumer that found nothing learns of messages: by a change stream, or by asking each pollInterval; auto polls only where the server is no replica set and has no change streams. One of auto, changeStream, poll. Default: `auto`. */
    wait?: 'auto' | 'changeStream' | 'poll' | number;
    /** sqs, sqs-fifo: How long the service holds a receive that finds no message, whole seconds; closing a consumer waits as long for those under way. Default: `1s`. */
    waitTime?: Duration;
  }

  export interface DriverTopicOptions {
    /** sqs, sqs-fifo: Any other attributes of the queue, such as { VisibilityTimeout: 7 }; in a URL attributes=Name=value, once for each. */
    attributes?: string | string[] | { [name: string]: string | number | boolean };
    /** rabbitmq, rabbitmq-stream: Arguments of these bindings, such as { 'x-match': 'all', type: 'create' } for an exchange of type headers. */
    bindingArguments?: string | string[] | { [name: string]: string | number | boolean };
    /** rabbitmq, rabbitmq-stream: Keys that bind the queue to the exchange, by default the topic's name. An existing queue keeps its other bindings. */
    bindings?: string | string[];
    /** kafka, kafka-share, kmq: Any other topic configs, such as { 'cleanup.policy': 'compact,delete' }; in a URL configs=name=value, once for each. */
    configs?: string | string[] | { [name: string]: string | number | boolean };
    /** rabbitmq: Exchange that rejected and expired messages go to. */
    deadLetterExchange?: string;
    /**
     * rabbitmq: Queue, created with the topic and of the same kind, that rejected and expired messages go to.
     * sqs, sqs-fifo: Queue, created with the topic where there is none, that gets what was delivered maxReceiveCount times and not settled.
     */
    deadLetterQueue?: string;
    /** rabbitmq: Routing key of dead-lettered messages; their own where empty. */
    deadLetterRoutingKey?: string;
    /** rabbitmq: After how many failed deliveries a quorum queue drops or dead-letters a message; the broker's default where 0. */
    deliveryLimit?: number;
    /** nats-jetstream: What gives way when a limit is reached: the oldest message, or the new one, whose sender then gets an error. One of old, new. Default: `old`. */
    discard?: 'old' | 'new';
    /** nats-jetstream: How long the stream remembers the header Nats-Msg-Id in order to drop duplicates, whose sends fail as rejected; 0 is the server's default of 2 minutes, and takes a stream that exists as it is. Default: `0s`. */
    duplicates?: Duration;
    /**
     * amqp1: Whether the queue outlives a restart of the broker. Default: `true`.
     * rabbitmq: Whether a classic queue survives a restart of the broker; a quorum queue always does, and refuses false. Default: `true`.
     */
    durable?: boolean;
    /** rabbitmq, rabbitmq-stream: Exchange to publish to, and to create and bind with the topic; the default exchange, which leads straight to the queue, where empty. */
    exchange?: string;
    /** rabbitmq, rabbitmq-pubsub, rabbitmq-stream: Arguments of the exchange to create, such as { 'x-delayed-type': 'direct' }. */
    exchangeArguments?: string | string[] | { [name: string]: string | number | boolean };
    /**
     * rabbitmq, rabbitmq-stream: Type of the exchange to create: direct, fanout, topic, headers, or a plugin's. Default: `direct`.
     * rabbitmq-pubsub: Type of the exchange to create: fanout, topic, direct, headers, or a plugin's. Default: `fanout`.
     */
    exchangeType?: string;
    /** rabbitmq: After how long without consumers the queue is deleted, whole milliseconds; never where 0. */
    expires?: Duration;
    /** postgres: How much of a page, in percent, INSERT fills: what it leaves is for the second version that a message has when it was delivered. Default: `50`. */
    fillFactor?: number;
    /** rabbitmq, rabbitmq-stream: Where the leader of a replicated queue starts: on the node of this connection, or on the least loaded (balanced, which a classic queue refuses). One of client-local, balanced. Default: `client-local`. */
    leaderLocator?: 'client-local' | 'balanced';
    /**
     * kurrentdb: How long, in whole seconds, the stream keeps a message ($maxAge); no limit where 0.
     * nats-jetstream: How long the stream keeps a message; 0 is for ever. Default: `0s`.
     * rabbitmq-stream: Age, whole seconds, after which a segment of the stream is deleted; no limit where 0.
     */
    maxAge?: Duration;
    /** nats-jetstream: How many bytes the stream keeps; 0 is no limit. */
    maxBytes?: Size;
    /** kurrentdb: How many messages the stream keeps ($maxCount); no limit where 0. */
    maxCount?: number;
    /** rabbitmq: Most messages that the queue holds; no limit where 0. */
    maxLength?: number;
    /**
     * rabbitmq: Most bytes of bodies that the queue holds; no limit where 0.
     * rabbitmq-stream: Bytes after which the oldest segment of the stream is deleted; no limit where 0.
     */
    maxLengthBytes?: Size;
    /** nats-jetstream: How many messages the stream keeps; 0 is no limit. */
    maxMessages?: number;
    /** rabbitmq: Number of priorities of a classic queue; none where 0. */
    maxPriority?: number;
    /** sqs, sqs-fifo: How often a message is delivered before it goes to the deadLetterQueue. Default: `10`. */
    maxReceiveCount?: number;
    /** rabbitmq: How long a message may wait in the queue, whole milliseconds; for ever where 0. */
    messageTTL?: Duration;
    /** rocketmq: What messages a topic takes: with delay those with deliverAfter only, with fifo those in order by their keys, with mixed the first two. One of normal, delay, fifo, mixed. Default: `normal`. */
    messageType?: 'normal' | 'delay' | 'fifo' | 'mixed';
    /** kafka, kafka-share, kmq: How many replicas must have a message for acks=all to succeed (min.insync.replicas), at most all there are; 0 is the broker's default, and takes a topic that exists as it is. Default: `0`; durable `2`. */
    minInsyncReplicas?: number;
    /** rabbitmq: What happens at the limit: the oldest message goes, or the new one is rejected. One of drop-head, reject-publish, reject-publish-dlx. Default: `drop-head`. */
    overflow?: 'drop-head' | 'reject-publish' | 'reject-publish-dlx';
    /** nats-jetstream: Whether the server writes a message before it confirms it (default), or may do so afterwards (async). One of default, async. Default: `default`. */
    persist?: 'default' | 'async';
    /** rabbitmq, rabbitmq-stream: Any other arguments of the queue to create, such as { 'x-max-in-memory-length': 1000 }; one that another option sets is refused. */
    queueArguments?: string | string[] | { [name: string]: string | number | boolean };
    /** rabbitmq: Kind of queue to create: on one node, or replicated by Raft. Streams have the driver rabbitmq-stream. One of classic, quorum. Default: `classic`; durable `quorum`. */
    queueType?: 'classic' | 'quorum';
    /**
     * kafka, kafka-share, kmq: How long messages are kept (retention.ms), whole milliseconds; 0 is the broker's default, and takes a topic that exists as it is. Default: `0`.
     * nats-jetstream: What the stream keeps: all within its limits, what no consumer acknowledged, or what not every consumer acknowledged. One of limits, workqueue, interest. Default: `limits`.
     * pulsar, pulsar-failover: How long messages are kept that all groups have acknowledged, in whole minutes; 0 is the namespace's. Default: `0`.
     * sqs, sqs-fifo: How long the queue keeps a message, whole seconds from 1m; 0 is the service's default of four days, and takes a queue that exists as it is. Default: `0`.
     */
    retention?: Duration | 'limits' | 'workqueue' | 'interest';
    /** rabbitmq-stream: Size of a segment file; the broker's default where 0. */
    segmentBytes?: Size;
    /** rabbitmq: Deliver to one consumer at a time, the others standing by. */
    singleActiveConsumer?: boolean;
    /** nats-jetstream: Where the stream keeps its messages. One of file, memory. Default: `file`. */
    storage?: 'file' | 'memory';
    /** postgres: Make an UNLOGGED table: the server writes no log of it, replicates nothing, and empties it when it starts after a crash. */
    unlogged?: boolean;
  }

  export interface DriverMessageOptions {
    /** rabbitmq, rabbitmq-pubsub, rabbitmq-stream: Which application sent it. */
    appId?: string;
    /** amqp1, amqp1-pubsub, rabbitmq, rabbitmq-pubsub, rabbitmq-stream: Encoding of the body, such as gzip. */
    contentEncoding?: string;
    /** amqp1, amqp1-pubsub, rabbitmq, rabbitmq-pubsub, rabbitmq-stream: MIME type of the body. */
    contentType?: string;
    /**
     * amqp1, amqp1-pubsub: Identifier of what the message belongs to.
     * rabbitmq, rabbitmq-pubsub, rabbitmq-stream: Identifier of what a message belongs to; request() uses its own.
     */
    correlationId?: string;
    /** sqs-fifo: The message's deduplication id, instead of one that no other has; the service confirms a second one of five minutes, and drops it. */
    deduplicationId?: string;
    /**
     * amqp1, amqp1-pubsub: How long the broker keeps the message back: Artemis and Azure Service Bus do.
     * sqs: How long the service keeps the message from consumers, whole seconds.
     */
    delay?: Duration;
    /**
     * pulsar, pulsar-failover: How long the broker keeps the message from consumers of shared and key-shared subscriptions, by its own clock's ticks (1 s by default); others get it at once.
     * rocketmq: How long the broker keeps a message before it delivers it; of topics whose messageType is delay or mixed.
     */
    deliverAfter?: Duration;
    /** pulsar, pulsar-failover: When what the message tells of happened, in ms since the Unix epoch; 0, the default, sends none. */
    eventTime?: number;
    /** kurrentdb: The type of the event. Of what is received it is told where it is not the default. Default: `message`. */
    eventType?: string;
    /** rabbitmq, rabbitmq-pubsub, rabbitmq-stream: How long a message may wait in a queue before it is dropped or dead-lettered; 0 is without end. */
    expiration?: Duration;
    /** amqp1, amqp1-pubsub: The group of messages (the session, at Azure Service Bus) that go to one consumer in order. */
    groupId?: string;
    /** amqp1, amqp1-pubsub: Identifier of the message; some brokers drop a second one with the same. */
    messageId?: string;
    /**
     * kafka, kafka-share, kmq: The one partition to send to; -1 leaves it to the partitioner. Default: `-1`.
     * pulsar, pulsar-failover: The one partition to send to; -1 leaves it to the key, by Java's hash of strings as Pulsar's own client does, and without one to each in turn. Default: `-1`.
     */
    partition?: number;
    /** amqp1, amqp1-pubsub: Ask that the message outlives a restart of the broker (durable). Default: `true`. */
    persistent?: boolean;
    /**
     * amqp1, amqp1-pubsub: Priority of the message, the greater the sooner. Default: `4`.
     * rabbitmq, rabbitmq-pubsub, rabbitmq-stream: Priority of a message in a queue with maxPriority; 0 is none.
     */
    priority?: number;
    /** amqp1, amqp1-pubsub: What the message is about; at RabbitMQ its routing key. */
    subject?: string;
    /** rocketmq: A message's tag, by which consumers may choose. */
    tag?: string;
    /** amqp1, amqp1-pubsub: How long the message may wait before it expires; 0 is without end. */
    ttl?: Duration;
    /** rabbitmq, rabbitmq-pubsub, rabbitmq-stream: What kind of message it is, for the application. */
    type?: string;
    /**
     * amqp1, amqp1-pubsub: Application properties that are numbers or booleans to the broker, such as { price: 5 } for a selector, beside the message's headers, which are strings.
     * rabbitmq, rabbitmq-pubsub, rabbitmq-stream: Headers that are numbers or booleans to the broker, such as { 'x-delay': 500 }, beside the message's headers, which are strings.
     */
    typedHeaders?: string | string[] | { [name: string]: string | number | boolean };
  }
}
