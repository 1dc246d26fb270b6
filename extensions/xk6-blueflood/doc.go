// Package blueflood holds the driver blueflood, which sends data points to Blueflood, Rackspace's store of metrics on Cassandra. Importing it registers the
// driver.
//
// It only sends: nothing is received. The client is net/http; a producer keeps as many connections as it has workers.
//
// # Points
//
//	blueflood://127.0.0.1:19000/tenant
//
// A topic is what the names of some metrics begin with. What is sent together, by send() or by produce() with its batch, is one request (POST
// /v2.0/tenant/ingest), and workers is their number. Each message is one point, of a metric that no other point of the request is of, as
// long as there are no more points than metrics:
//
//   - the metrics are called topic.producer.0, topic.producer.1 and so on, as many as the option metrics says, and take turns. What stands for the producer
//     no other producer has, unless the option producerName says it,
//   - its value is the number whose text the body is; with the option value at size, how many bytes the body has,
//   - its time, in milliseconds, no other point of the metric has.
//
// So no point takes the place of another: as many points are stored as messages are confirmed. Where there are more of them than one per metric and millisecond
// their times run ahead of the clock, and when they are ten minutes ahead, which is as far as the server lets them, messages fail (throttled) until the clock
// has come closer.
//
// # Confirm means
//
// The server answered 200, or 207 without naming the point: it took the point. That does not prove that the point is stored: Blueflood says 200, too, where
// Cassandra refuses the write, or is away and the metric was seen before. So when the producer is closed the points are read back from the query service
// (option queryAddress), once the store is known to give back what is written now, and those that were confirmed and are not there are lost. The option readBack
// leaves that out, as of a test of millions of points.
//
// 202 says that the points were not stored in time, and nobody knows whether they are (timeout). What 207 or 400 names is rejected, with the server's own words;
// where they name what was not sent, all of the request is. 401 and 403 are denied, 429 and 503 throttled, all other rejected. Nothing is tried again.
//
// # Limits
//
//   - Proven on Blueflood 2.1.1-SNAPSHOT with Cassandra 5.0.9. With Cassandra stopped for 17 s of a test of 45 s the server confirmed 9,000 points; 5,980 were read
//     back and 3,020 called lost, and Cassandra's own table had 5,980.
//   - The server never answers a request that is larger than its HTTP_MAX_CONTENT_LENGTH, 1 MiB by default: such a batch is refused before it is sent, and the
//     option maxRequest says how large one may be.
//   - Points must not expire after 2038-01-19, which the option ttl is held to: Cassandra would refuse them, and Blueflood not say so.
//   - Keys are not kept, and headers are refused: a point has none.
package blueflood
