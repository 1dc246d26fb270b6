// Package mongodb holds the driver mongodb: MongoDB's collections as queues. Importing it registers the driver.
//
// The client library is MongoDB's own, mongo-driver. The producers and consumers of a connection share its pool.
//
// The driver is not proven on a real MongoDB: see Limits.
//
// # Delivery
//
// A topic is a collection of one database, with the topic's name, an index of nextDelivery, and documents of these fields:
//
//	_id            an ObjectID that the sender makes
//	key, body      binary; not there where a message has none
//	headers        an array of {name, value}, the value a string, or binary where it is no text; not there where there are none
//	nextDelivery   a date: it is delivered when that is over
//	attempts       an integer: how often it was delivered
//	lease          the token of the delivery under way; not there where there is none
//
// Messages wait for one of a producer's commands (the option inFlight) to be free, and go together by one unordered insertMany, up to so many as the option
// batch says; nothing waits for more to come. Each has its own fate: what the server refuses of a command is refused alone.
//
// All consumers of a topic compete for its messages. A consumer has so many findOneAndUpdate under way as inFlight says, within its prefetch: each takes the
// document whose nextDelivery is oldest, and moves that to the end of the lease. MongoDB leases one document at a time, so a message costs a command, and the
// order of a topic is that of its index only roughly: commands that are under way together overtake each other.
//
// A consumer that finds nothing waits. At a replica set, or at mongos, it is told by a change stream of what is inserted or given back, and else looks when the
// first lease or delay is over. A standalone server has no change streams: there it asks each pollInterval.
//
// Each settlement of a batch is one command and is confirmed:
//
//   - Ack is deleteMany.
//   - Requeue is updateMany; the option requeueDelay says when the message may be delivered again.
//   - Reject is deleteMany, after a copy to the topic that the option deadLetter names. Who fails between the two and rejects again finds the copy there, by its
//     _id; where the dead letter was settled meanwhile it comes twice.
//
// A message whose maxAttempts is over is rejected by whoever leases it next. A settlement is of one delivery, by the token of its lease: where the lease is over
// and another delivery has begun nothing is settled, and that is an error of kind rejected. A consumer that closes gives back what it has not settled, and what it
// never received as if it had not been delivered. After a connection broke it gives back what was on its way over it. What a consumer that died has comes again
// when its lease is over. Leases begin when they are asked for, and are by the server's clock as the connection found it when it opened.
//
// The client's own retries of reads and writes are off.
//
// # Connection string
//
//	mongodb://user:password@127.0.0.1:27017/database?authSource=admin&tlsCA=ca.pem
//	mongodb://host1,host2/database?replicaSet=rs0&w=majority&journal=true
//
// The database is test where the URL names none, and then users are those of admin. mongodb+srv: is none of its schemes: the hosts are named, and TLS is asked for
// by mongodb+tls: or an option. Of MongoDB's own parameters only those are known that are options here.
//
// # Confirm means
//
// What the write concern (the options w and journal) waits for. w=0: nothing: the command is in the connection, and what the server refuses of it is confirmed all
// the same. 1: one server has it; more, or majority: at a replica set of
// several members with data so many of them, and the message is replicated. At a standalone server, at a set of one, and at mongos, which does not tell how many
// members a shard has, no more than accepted is said. Members with data are those that the server's hello names, hidden ones and arbiters not counted. journal=true
// says that it is on their disks; without it that is the servers' to say. A replica set that has fewer members than when a producer opened proves less for
// w=majority: its messages fail.
//
// Where the write concern is not reached in time the server may have the message: an error of kind timeout. The client library knows no wtimeout any more: the
// option timeout bounds the wait.
//
// A consumer's settlements wait for the same options, and with w=0 for one server. A lease waits for the primary alone: one that a failover takes back is over.
//
// # Limits
//
//   - Not proven on a real MongoDB: none was to be had where this was made. The conformance kit and the scenarios have run on mongo-java-server, another
//     implementation of the protocol that keeps everything in memory, and users, write concerns, members and refusals were answered by the tests themselves.
//   - One group for each topic, without a name. Start new, groups, fan-out and replay need a log, which a queue is not.
//   - Messages come in no promised order.
//   - A consumer that polls adds up to pollInterval, half of it on average, to the latency of each message that finds it waiting; and asks the server as often.
//   - A change stream tells of a message when a majority of the members has it, and tells every consumer of every message: an event of some hundred bytes.
//   - Commands that lease at the same time want the same document: the server has all but one of them try again. More consumers are not always faster.
//   - A document may have 16 MiB: a body may have that less 16 KiB, for the key, the headers and the rest. Names of headers are text in UTF-8.
//   - A collection that is dropped while somebody sends is made again by the next message, without its index; createTopic adds that.
//   - Sharded collections are not supported: findOneAndUpdate by anything but the shard key is not in all versions.
//   - Other programs' documents are delivered where they have a nextDelivery that is a date.
//   - The backlog is counted, in one pass over the collection.
//   - While no server can be used, messages wait for one for connectTimeout.
//   - MongoDB 4.4 or later, which is what the client library asks for.
//
// # As
//
// Connections lend *mongo.Client.
package mongodb
