package kafka

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// crowd opens consumers of one group on each of many topics, all at once. What is sent to a topic after the first of its consumers is
// ready must come to one of them, and nothing from before.
func crowd(t *testing.T, f *fixture, topics, members int, given map[string]any) {
	t.Helper()
	const partitions, each = 4, 12
	group := newTopicName()
	var running sync.WaitGroup
	for range topics {
		topic := f.topic(t, partitions)
		p := f.producer(t, topic, map[string]any{"partitioner": "roundrobin"})
		f.send(t, p, numbered("before", each))
		var once sync.Once
		var mu sync.Mutex
		received := map[string]bool{}
		complete, enough := context.WithCancel(within(t))
		for range members {
			running.Go(func() {
				c, err := f.conn.NewConsumer(within(t), driver.ConsumerConfig{
					Topic: topic, Group: group, Prefetch: 100, Start: driver.StartNew, Options: f.values(t, driver.OnConsumer, given),
				})
				if err != nil {
					t.Error(err)
					enough()
					return
				}
				defer closed(t, c)
				once.Do(func() {
					for _, err := range sendAll(within(t), p, numbered("after", each)) {
						if err != nil {
							t.Error(err)
						}
					}
				})
				b := make(driver.Batch, each)
				for {
					n, err := c.Receive(complete, b)
					if err != nil {
						if !errors.Is(err, context.Canceled) {
							t.Errorf("%s: of %d messages %d came: %v", topic, each, len(received), err)
						}
						return
					}
					mu.Lock()
					for _, m := range b[:n] {
						received[string(m.Body)] = true
					}
					if len(received) == each {
						enough()
					}
					mu.Unlock()
					if err := c.Settle(within(t), b[:n], driver.Ack); err != nil && !errors.Is(err, errRevoked) { // another has joined
						t.Error(err)
					}
				}
			})
		}
		t.Cleanup(func() {
			enough()
			for body := range received {
				if !strings.HasPrefix(body, "after") {
					t.Errorf("%s: received %s", topic, body)
				}
			}
		})
	}
	running.Wait()
}

// A group whose members are on different topics has members before all of its topics have committed offsets.
func TestOneGroupOnManyTopics(t *testing.T) {
	if testing.Short() {
		t.Skip("part of make test-full")
	}
	for _, members := range []int{1, 2} {
		t.Run(fmt.Sprint(members), func(t *testing.T) {
			protocols(t, func(t *testing.T, protocol string) {
				f := single(t)
				for range 2 {
					crowd(t, f, 10/members, members, map[string]any{"groupProtocol": protocol})
				}
			})
		})
	}
}

func TestOneShareGroupOnManyTopics(t *testing.T) {
	if testing.Short() {
		t.Skip("part of make test-full")
	}
	url := server("BROKER_URL_KAFKA_SHARE")
	if url == "" {
		t.Skip("no BROKER_URL_KAFKA_SHARE")
	}
	f := newFixture(t, url)
	for _, members := range []int{1, 2} {
		for range 2 {
			crowd(t, f, 10/members, members, nil)
		}
	}
}
