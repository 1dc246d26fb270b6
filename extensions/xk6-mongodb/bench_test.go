package mongodb_test

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/bench"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-mongodb/internal/raw"
)

// The benchmarks compare the driver, and the engine on it, with loops written by hand over the client library: the same server, collection, size of messages,
// messages for each command and commands under way. Run them with -benchtime=1x. BROKER_URL_MONGODB names the server. On the stand-in they compare what a
// client costs, on a server that has no index and gets slower with each message that waits.
const benchSize = 100

func benchSession(b *testing.B) (*bench.Session, *mongo.Collection) {
	b.Helper()
	url := cmp.Or(os.Getenv("BROKER_URL_MONGODB"), os.Getenv("BROKER_URL_MONGODB_STANDIN_STANDALONE"))
	if url == "" {
		b.Skip("no BROKER_URL_MONGODB and no BROKER_URL_MONGODB_STANDIN_STANDALONE")
	}
	topic := fmt.Sprint("bench-", time.Now().UnixNano())
	s := bench.Open(b, url, topic, driver.TopicSpec{}, nil)
	var client *mongo.Client
	if u, ok := s.Conn().(driver.Unwrapper); !ok || !u.As(&client) {
		b.Fatal("no client")
	}
	return s, client.Database("test").Collection(topic)
}

func BenchmarkPublish(b *testing.B) {
	const count, window, inFlight = 3000, 400, 8
	s, collection := benchSession(b)
	body := bytes.Repeat([]byte("x"), benchSize)
	sending := bench.Sending{Count: count, Size: benchSize, Window: window}
	bench.Case{Name: "mongodb publish", Messages: count, Before: s.Purge, Loops: []bench.Loop{
		{Name: "raw", Run: func() (time.Duration, error) { return raw.Insert(collection, body, count, window/inFlight, inFlight) }},
		s.Produce(sending),
	}}.Compare(b)
}

func BenchmarkConsume(b *testing.B) {
	const count, batch, inFlight = 500, 100, 8
	s, collection := benchSession(b)
	fill := s.Filler(bench.Sending{Size: benchSize, Window: 1000})
	receiving := bench.Receiving{Count: count, Batch: batch, Config: driver.ConsumerConfig{Prefetch: 2 * batch, Start: driver.StartEarliest}}
	bench.Case{Name: "mongodb consume, batch ack", Messages: count, Before: func() error {
		if err := s.Purge(); err != nil {
			return err
		}
		return fill(count)
	}, Loops: []bench.Loop{
		{Name: "raw", Run: func() (time.Duration, error) { return raw.Consume(collection, count, batch, inFlight) }},
		s.Consume(receiving),
	}}.Compare(b)
}
