// Package raw has loops written by hand over go-redis, to compare the drivers with. Every loop
// returns its duration.
package raw

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// Publish adds count messages to a stream in pipelines of window.
func Publish(client *redis.Client, stream string, body []byte, count, window int) (time.Duration, error) {
	ctx := context.Background()
	conn := client.Conn()
	defer func() { _ = conn.Close() }()
	start := time.Now()
	for sent := 0; sent < count; sent += window {
		pipe := conn.Pipeline()
		for range min(window, count-sent) {
			pipe.Do(ctx, "XADD", stream, "NOMKSTREAM", "*", "body", body)
		}
		if _, err := pipe.Exec(ctx); err != nil {
			return 0, fmt.Errorf("pipeline: %w", err)
		}
	}
	return time.Since(start), nil
}

// PublishFullDuplex adds count messages by the library's automatic pipelines, with up to window
// unanswered, over one connection in both directions.
func PublishFullDuplex(client *redis.Client, stream string, body []byte, count, window int) (time.Duration, error) {
	ctx := context.Background()
	options := *client.Options()
	own := redis.NewClient(&options)
	defer func() { _ = own.Close() }()
	config := redis.DefaultAutoPipelineOptions()
	config.FullDuplex = true
	pipe, err := own.AsyncAutoPipelineWithOptions(config)
	if err != nil {
		return 0, fmt.Errorf("pipeline: %w", err)
	}
	unanswered := make(chan *redis.StringCmd, window)
	answered := make(chan error, 1)
	start := time.Now()
	go func() {
		var err error
		for one := range unanswered {
			if e := one.Err(); e != nil {
				err = e
			}
		}
		answered <- err
	}()
	for range count {
		unanswered <- pipe.XAdd(ctx, &redis.XAddArgs{Stream: stream, NoMkStream: true, Values: []any{"body", body}})
	}
	close(unanswered)
	err = <-answered
	return time.Since(start), err
}

// Consume creates a group and, as its only member, receives and acknowledges count messages in
// batches. The time begins when the group exists.
func Consume(client *redis.Client, stream, group string, count, batch int) (time.Duration, error) {
	ctx := context.Background()
	if err := client.XGroupCreate(ctx, stream, group, "0").Err(); err != nil {
		return 0, fmt.Errorf("group: %w", err)
	}
	start := time.Now()
	for got := 0; got < count; {
		streams, err := client.XReadGroup(ctx, &redis.XReadGroupArgs{
			Group: group, Consumer: "raw", Streams: []string{stream, ">"}, Count: int64(batch), Block: time.Second,
		}).Result()
		if err != nil {
			return 0, fmt.Errorf("read: %w", err)
		}
		ids := make([]string, 0, batch)
		for _, m := range streams[0].Messages {
			if _, ok := m.Values["body"]; !ok {
				return 0, fmt.Errorf("entry %s has no body", m.ID)
			}
			ids = append(ids, m.ID)
		}
		if err := client.XAck(ctx, stream, group, ids...).Err(); err != nil {
			return 0, fmt.Errorf("ack: %w", err)
		}
		got += len(ids)
	}
	return time.Since(start), nil
}
