// Package sqs registers the drivers sqs, for standard queues of Amazon SQS and compatible servers,
// and sqs-fifo, for FIFO queues, over aws-sdk-go-v2.
//
// # Delivery
//
// A producer sends up to inFlight requests at a time, each with up to ten of the messages that wait
// and 1 MiB. Each message has its own result. In a FIFO queue a message group has one request at a
// time. Nothing is retried: a send that timed out may have arrived.
//
// A consumer has up to inFlight long polls at a time, within its prefetch. A consumer that closes
// waits for its polls, up to waitTime, because the service leases messages to a poll whose connection
// is gone; then it gives back its unsettled messages. Settlements are confirmed, ten a request: Ack
// is DeleteMessageBatch, Requeue is ChangeMessageVisibilityBatch. Reject is not supported; the option
// deadLetterQueue receives messages that were delivered maxReceiveCount times.
//
// The visibility timeout begins when the service sends a message, and includes the time that it waits
// in the consumer.
//
// # Connection string
//
//	sqs://accessKey:secretKey@127.0.0.1:9324?region=eu-central-1
//	sqs://?region=eu-central-1
//
// sqs+tls is HTTPS. A URL without a host is Amazon's own service, or AWS_ENDPOINT_URL_SQS or
// AWS_ENDPOINT_URL. Credentials and region default to those of AWS's own programs.
//
// # Names, bodies, headers, keys
//
// The driver sqs-fifo adds .fifo to a topic's name. A body that is empty or not valid in XML 1.0 is
// sent as base64, with the attribute Content-Transfer-Encoding. Headers are message attributes, at
// most ten, each name once.
//
// A key is the message group of a FIFO queue. Messages without a key are spread over messageGroups
// groups. A message's partition is the number of its group, in the order of the first messages.
// Every message of a FIFO queue has its own deduplication id, or the property deduplicationId; the
// service confirms and drops duplicates, which count as missing.
//
// # Confirm means
//
// Amazon's own service, recognized by the endpoint, stores several copies. Other servers accepted
// the message.
//
// # Limits
//
//   - Proven on ElasticMQ, another implementation of the protocol, and not on Amazon's own service.
//   - The service's numbers of messages are estimates, so missing messages are uncertain.
//   - One group for each topic, without a name. A queue has no start new, fan-out or replay.
//   - A standard queue has no order and may deliver a message twice.
//   - Amazon's own service limits purging and creating a deleted queue to once a minute.
package sqs
