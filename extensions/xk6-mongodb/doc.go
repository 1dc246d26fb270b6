// Package mongodb registers the driver mongodb: MongoDB's collections as queues, over mongo-driver.
// It is not proven on a real MongoDB: see Limits.
//
// # Delivery
//
// A topic is a collection with an index of nextDelivery and documents of these fields:
//
//	_id            an ObjectID of the sender
//	key, body      binary; missing if a message has none
//	headers        an array of {name, value}, the value a string, or binary if it is not text
//	nextDelivery   a date: it is delivered after that
//	attempts       an integer: the number of deliveries
//	lease          the token of the current delivery
//
// A producer sends up to inFlight unordered insertMany commands at a time, each with up to batch of
// the messages that wait. Each message has its own result.
//
// A consumer sends up to inFlight findOneAndUpdate commands at a time, within its prefetch. Each
// leases the document with the oldest nextDelivery, so the order of a topic is approximate. At a
// replica set or mongos an idle consumer waits for a change stream or for an expired lease; at a
// standalone server it asks each pollInterval.
//
// A batch is settled with one command: Ack is deleteMany, Requeue is updateMany, Reject is deleteMany
// after a copy to the option deadLetter. A message beyond maxAttempts is rejected. A settlement after
// another delivery has begun is an error of kind rejected.
//
// A consumer that closes gives back its unsettled messages. The messages of a consumer that died are
// delivered again after the lease. The client's own retries are off.
//
// # Connection string
//
//	mongodb://user:password@127.0.0.1:27017/database?authSource=admin&tlsCA=ca.pem
//	mongodb://host1,host2/database?replicaSet=rs0&w=majority&journal=true
//
// The default database is test. mongodb+srv is not supported; mongodb+tls is TLS.
//
// # Confirm means
//
// The write concern (the options w and journal) is satisfied. w=0 proves nothing. Replicated is
// claimed at a replica set with several members with data only; hidden members and arbiters do not
// count. If the set has fewer members than when the producer opened, messages with w=majority fail.
// A write concern that is not satisfied within the option timeout is an error of kind timeout.
// Settlements use the same options, and wait for one server at least.
//
// # Limits
//
//   - Proven on mongo-java-server, another implementation of the protocol, in memory. The tests
//     simulate users, write concerns, members and refusals.
//   - One group for each topic, without a name. A queue has no start new, fan-out or replay.
//   - Concurrent leases want the same document, so more consumers are not always faster.
//   - A document has at most 16 MiB. Names of headers are UTF-8.
//   - A collection that is dropped while a producer sends is created again without its index.
//   - Sharded collections are not supported.
//   - MongoDB 4.4 or later.
//
// Connections lend *mongo.Client.
package mongodb
