// Package influxdb holds the driver influxdb, which writes points to InfluxDB by its line protocol. Importing it registers the driver.
//
// It only sends: nothing is received, and what is known of a message is what the server answered. The client is net/http; a producer keeps as many
// connections as it has workers.
//
// # Points
//
//	influxdb://user:password@127.0.0.1:8086/database
//
// A topic is a measurement of the URL's database. What is sent together, by send() or by produce() with its batch, is one request (POST /write), and
// workers returns how many there are at a time. Each message is one point:
//
//   - the tag producer, which no other producer has, the tags of the option tags, and the tag key where the message has a key,
//   - its body as the string field body, or in base64 as the field base64 where it is no text; with the option body at fields, the body is the fields of the
//     point themselves, such as value=1.5,count=3i,
//   - a time in nanoseconds that no other point of the process has.
//
// A script's bodies are stored as they are: no message has a trace stamp, as nobody receives it.
//
// So no point takes the place of another: as many points are stored as messages are confirmed.
//
// # Confirm means
//
// The server answered 204, which it does when it has written the points to its log and, unless its wal-fsync-delay says otherwise, to its disk; it tells
// nothing of copies. Everything else is an error of all messages of the request, with the server's own words: 401 and 403 are denied, a database that is not
// there not_found, 429 and 503 throttled, a time-out of the server's own timeout, all other rejected. A partial write is one of these: the server then
// has stored some of the points and does not tell which, so that more may be there than were confirmed. Nothing is tried again.
//
// # Limits
//
//   - Proven on InfluxDB 1.6.7. Later versions answer /write, too; the option token is for those that want one.
//   - A string field has 64 KiB at most, of which base64 leaves three quarters.
//   - A key is a tag: text in one line that does not end in a backslash, which the line protocol cannot write. Every key is a series of its own.
//   - Headers are refused: a tag cannot be empty, nor hold any bytes. Tags that all points share are the option tags.
package influxdb
