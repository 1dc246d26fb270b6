// Package sqs holds the drivers sqs, for standard queues of Amazon SQS and what speaks its protocol, and sqs-fifo, for FIFO queues. Importing it registers
// them.
//
// The client library is aws-sdk-go-v2. Every producer and consumer has a client with HTTP connections of its own, as many as it may have requests under way.
//
// # Sending
//
// A producer has up to inFlight requests under way (SendMessageBatch), each with up to ten of the messages that wait and 1 MiB of them; nothing waits for
// more to come. Each message has its own fate, as the answer says of it; where the request failed all of it have that error. Of a FIFO queue each request
// keeps to its own message groups, so that no message overtakes another of its group.
//
// Nothing is tried again, by the driver or by the client library, whose own default is three attempts: a send whose answer was lost would be in the queue
// twice, and an error would be a latency. A send that was given up (kind timeout), or whose connection broke, may have arrived.
//
// # Receiving
//
// All consumers of a topic compete for its messages. One has up to inFlight long polls under way (ReceiveMessage), each for as many of ten as its prefetch
// leaves room for. The service gives messages also to a poll whose connection is gone, and they are then nobody's until visibilityTimeout is over; so a
// consumer that closes lets its polls end, which takes up to waitTime, or as long as Close may, and gives back what came and what is not settled, by a
// visibility time-out of 0. It counts as a delivery of what was never received, too. Settlements go ten by ten, and are confirmed:
//
//   - Ack is DeleteMessageBatch.
//   - Requeue is ChangeMessageVisibilityBatch, to requeueDelay.
//   - Reject is refused: the service has no such thing. A queue whose option deadLetterQueue names another one has messages go there that were delivered
//     maxReceiveCount times and not deleted.
//
// A visibility time-out runs from when the service hands a message out, while it waits in the consumer, too, and nothing extends it: a prefetch that takes
// longer than that to work off has messages delivered twice.
//
// # Connection string
//
//	sqs://accessKey:secretKey@127.0.0.1:9324?region=eu-central-1
//	sqs://?region=eu-central-1
//
// The scheme sqs+tls, or the option tls, is for HTTPS; a URL without a host is always that, of Amazon's own service in the region, unless
// AWS_ENDPOINT_URL_SQS or AWS_ENDPOINT_URL say otherwise. Credentials and region that the URL does not name are those that AWS's own programs find: the
// environment, the shared files, the machine's or the container's role. Neither is ever printed.
//
// # Names, bodies, headers, keys
//
// The name of a FIFO queue ends in .fifo, which the driver sqs-fifo adds where a topic's name does not have it. A body that is no text as XML 1.0 has it, or
// is empty, goes in base64, with the attribute Content-Transfer-Encoding: base64; that takes a third more. Headers are message attributes: of type String
// where they are text, String.empty where they are empty, which the service takes no value for, and else Binary. A message has ten of them at most, each
// name once.
//
// A key is the message group of a FIFO queue, with what the service takes in no name written as %20. Messages without a key are spread over the option
// messageGroups, in turn, so that no order is kept between them; messageGroups: 1 keeps it, and then a consumer has ten messages at most at a time, as the
// service gives out none of a group of which some are with a consumer. What a script sees as a message's partition numbers the groups in the order in which
// the consumer met them. A standard queue has no use for keys.
//
// Every message of a FIFO queue has a deduplication id that no other has, unless its property deduplicationId returns which. A second one of five minutes is
// confirmed by the service, dropped, and counts as missing.
//
// # Confirm means
//
// Of Amazon's own service, which the endpoint tells: it has stored several copies, it says in general, and of no message how many. Of any other
// server nothing is known but that it accepted.
//
// # Limits
//
//   - Proven on ElasticMQ, which is another implementation of the protocol, in memory, and checks no credentials; not on Amazon's own service.
//   - The service's numbers of messages are estimates (ApproximateNumberOfMessages and those not visible or delayed, added up; of three moments, on Amazon's
//     own up to a minute late). So what did not come is never called lost, or still at the broker, but uncertain: also where ElasticMQ was killed, which
//     forgets its queues and all that it had confirmed.
//   - One group for each topic, without a name. Start new, groups, fan-out and replay need a log, which a queue is not.
//   - A standard queue keeps no order and may deliver a message twice: both are counted.
//   - Amazon's own service purges a queue once a minute, and makes none of a name that was deleted within the last minute: that is kind throttled.
package sqs
