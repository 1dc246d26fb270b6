// Package blueflood has the driver blueflood, which sends data points to Blueflood, Rackspace's
// store of metrics on Cassandra. It only sends. The client is net/http; a producer has as many
// connections as workers.
//
// # Points
//
//	blueflood://127.0.0.1:19000/tenant
//
// A topic is the prefix of the names of some metrics. Messages sent together are one request (POST
// /v2.0/tenant/ingest), and workers is the number of requests. Each message is one point:
//
//   - the metrics topic.producer.0, topic.producer.1 and so on take turns, as many as the option
//     metrics; the middle part is unique unless the option producerName sets it,
//   - its value is the number in the body, or with value=size the body's size,
//   - its time in milliseconds is unique for the metric.
//
// So as many points are stored as messages are confirmed. Beyond one point per metric and
// millisecond the times run ahead of the clock. At the server's limit of ten minutes messages fail
// (throttled).
//
// # Confirm means
//
// The server answered 200, or 207 without naming the point. That does not prove that the point is
// stored: the answer is 200 too if Cassandra refuses the write, or is away and the metric was seen
// before. So the points are read back from the query service (option queryAddress) at the end, once
// the store returns new points, and confirmed points that are missing are lost. The option readBack
// disables that.
//
// 202 means that the points were not stored in time (timeout). Points named by 207 or 400 are
// rejected; if an unknown point is named, the whole request is. 401 and 403 are denied, 429 and 503
// throttled, all other rejected. Nothing is repeated.
//
// # Limits
//
//   - Proven on Blueflood 2.1.1-SNAPSHOT with Cassandra 5.0.9. With Cassandra stopped for 17 s of a
//     test of 45 s, the server confirmed 9,000 points; 5,980 were read back, as many as Cassandra
//     had, and 3,020 were lost.
//   - The server never answers a request larger than its HTTP_MAX_CONTENT_LENGTH, 1 MiB by default.
//     The option maxRequest refuses such a batch.
//   - Points must expire before 2038-01-19, which the option ttl checks: Cassandra would refuse
//     them without an error of Blueflood.
//   - Keys are not kept, headers are refused.
package blueflood
