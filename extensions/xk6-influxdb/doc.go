// Package influxdb has the driver influxdb, which writes points to InfluxDB by its line protocol.
// It only sends. The client is net/http; a producer has as many connections as workers.
//
// # Points
//
//	influxdb://user:password@127.0.0.1:8086/database
//
// A topic is a measurement of the URL's database. Messages sent together are one request (POST
// /write), and workers is the number of requests. Each message is one point:
//
//   - the tag producer, unique for each producer, the tags of the option tags, and the tag key if
//     the message has a key,
//   - its body as the string field body, or in base64 as the field base64 if it is no text; with
//     body=fields the body has the fields of the point, such as value=1.5,count=3i,
//   - a time in nanoseconds, unique in this process.
//
// A script's bodies are stored as they are, without a trace stamp. As many points are stored as
// messages are confirmed.
//
// # Confirm means
//
// The server answered 204: it has written the points to its log and, unless its wal-fsync-delay
// delays that, to disk. Copies are not known. Everything else is an error of all messages of the
// request: 401 and 403 are denied, an absent database not_found, 429 and 503 throttled, a time-out
// of the server timeout, all other rejected. After a partial write some of the points are stored,
// so there may be more than were confirmed. Nothing is repeated.
//
// # Limits
//
//   - Proven on InfluxDB 1.6.7. Later versions answer /write too; the option token is for them.
//   - A string field has at most 64 KiB; base64 leaves three quarters.
//   - A key is a tag: text in one line without a backslash at its end. Every key is a series.
//   - Headers are refused, because a tag cannot be empty or hold any bytes. The option tags has
//     tags of all points.
package influxdb
