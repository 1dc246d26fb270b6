package sqs_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/bench"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-sqs/internal/raw"
)

// The benchmarks compare the driver, and the engine on it, with loops written by hand over aws-sdk-go-v2: the same server, queue, size of messages and
// number of requests at a time. Run them with -benchtime=1x. BROKER_URL_SQS names the server.
const (
	benchSize     = 100
	benchCount    = 20_000
	benchRequests = 8
)

func benchSession(b *testing.B) (s *bench.Session, client *sqs.Client, queue string) {
	b.Helper()
	url := os.Getenv("BROKER_URL_SQS")
	if url == "" {
		b.Skip("no BROKER_URL_SQS")
	}
	topic := fmt.Sprint("bench-", time.Now().UnixNano())
	s = bench.Open(b, url, topic, driver.TopicSpec{}, nil)
	if u, ok := s.Conn().(driver.Unwrapper); !ok || !u.As(&client) {
		b.Fatal("no client")
	}
	out, err := client.GetQueueUrl(context.Background(), &sqs.GetQueueUrlInput{QueueName: &topic})
	if err != nil {
		b.Fatal(err)
	}
	return s, client, *out.QueueUrl
}

func BenchmarkPublish(b *testing.B) {
	s, client, queue := benchSession(b)
	sending := bench.Sending{Count: benchCount, Size: benchSize, Window: 1000}
	body := bytes.Repeat([]byte("x"), benchSize)
	bench.Case{Name: "sqs publish, 8 requests of ten", Messages: benchCount, Before: s.Purge, Loops: []bench.Loop{
		{Name: "raw", Run: func() (time.Duration, error) {
			return raw.Send(client, queue, body, false, benchCount, benchRequests)
		}},
		{Name: "raw text", Run: func() (time.Duration, error) {
			return raw.Send(client, queue, body, true, benchCount, benchRequests)
		}},
		s.Produce(sending),
	}}.Compare(b)
}

func BenchmarkConsume(b *testing.B) {
	const count = benchCount
	s, client, queue := benchSession(b)
	fill := s.Filler(bench.Sending{Size: benchSize, Window: 1000})
	receiving := bench.Receiving{Count: count, Batch: 100, Config: driver.ConsumerConfig{Prefetch: 1000, Start: driver.StartEarliest}}
	bench.Case{Name: "sqs consume, 8 polls, batch ack", Messages: count, Before: func() error {
		if err := s.Purge(); err != nil {
			return err
		}
		return fill(count)
	}, Loops: []bench.Loop{
		{Name: "raw", Run: func() (time.Duration, error) { return raw.Receive(client, queue, count, benchRequests) }},
		s.Consume(receiving),
	}}.Compare(b)
}
