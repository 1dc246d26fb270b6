package kafka

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

func single(t testing.TB) *fixture {
	t.Helper()
	url := server("BROKER_URL_KAFKA")
	if url == "" {
		t.Skip("no BROKER_URL_KAFKA")
	}
	return newFixture(t, url)
}

// with sets an option of a consumer.
func with(t testing.TB, f *fixture, given map[string]any) func(*driver.ConsumerConfig) {
	return func(c *driver.ConsumerConfig) { c.Options = f.values(t, driver.OnConsumer, given) }
}

func earliest(c *driver.ConsumerConfig) { c.Start = driver.StartEarliest }

// until receives and settles nothing until the wanted bodies have all come.
func until(t testing.TB, c driver.Consumer, wanted driver.Batch) driver.Batch {
	t.Helper()
	missing := map[string]bool{}
	for _, m := range wanted {
		missing[string(m.Body)] = true
	}
	var all driver.Batch
	b := make(driver.Batch, 10)
	for ctx := within(t); len(missing) > 0; {
		n, err := c.Receive(ctx, b)
		if err != nil {
			t.Fatalf("%d messages are missing: %v", len(missing), err)
		}
		for _, m := range b[:n] {
			delete(missing, string(m.Body))
		}
		all = append(all, b[:n]...)
	}
	return all
}

func protocols(t *testing.T, test func(t *testing.T, protocol string)) {
	for _, protocol := range []string{"classic", "consumer"} {
		t.Run(protocol, func(t *testing.T) { test(t, protocol) })
	}
}

// A second member takes partitions over: what the first has settled in them is done with, what it has not comes again,
// and settling it afterwards is an error.
func TestPartitionsChangeHands(t *testing.T) {
	t.Parallel()
	protocols(t, func(t *testing.T, protocol string) {
		f := single(t)
		topic := f.topic(t, 2)
		config := with(t, f, map[string]any{"groupProtocol": protocol, "commitInterval": "1h"})
		first := f.consumer(t, topic, topic, config)
		defer func() { closed(t, first) }()
		for partition := range 2 {
			f.send(t, f.producer(t, topic, map[string]any{"partition": partition}), numbered("m", 10))
		}
		held := take(t, first, 20)
		counts := map[int32]int{}
		var open driver.Batch
		for _, m := range held {
			if counts[m.Partition]++; counts[m.Partition] > 4 {
				open = append(open, m)
				continue
			}
			if err := first.Settle(within(t), driver.Batch{m}, driver.Ack); err != nil {
				t.Fatal(err)
			}
		}
		second := f.consumer(t, topic, topic, config)
		defer func() { closed(t, second) }()
		again := until(t, second, numbered("m", 10)[4:])
		moved := again[0].Partition
		if len(again) != 6 {
			t.Errorf("%d messages came again, want the 6 of one partition that were not settled", len(again))
		}
		var late error
		for _, m := range open {
			if err := first.Settle(within(t), driver.Batch{m}, driver.Ack); err != nil {
				late = errors.Join(late, err)
			} else if m.Partition == moved {
				t.Error("a message was settled of a partition that had gone to another member")
			}
		}
		if !errors.Is(late, errRevoked) {
			t.Errorf("settling what another member has got: %v", late)
		}
	})
}

// The room for unsettled messages must come back when the partition that they are of goes.
func TestRevocationFreesThePrefetch(t *testing.T) {
	t.Parallel()
	f := single(t)
	topic := f.topic(t, 2)
	small := func(c *driver.ConsumerConfig) { c.Prefetch = 10 }
	first := f.consumer(t, topic, topic, small)
	defer func() { closed(t, first) }()
	p := [2]driver.Producer{}
	for partition := range p {
		p[partition] = f.producer(t, topic, map[string]any{"partition": partition})
		f.send(t, p[partition], numbered("held", 5))
	}
	take(t, first, 10)
	second := f.consumer(t, topic, topic, small)
	defer func() { closed(t, second) }()
	gone := until(t, second, numbered("held", 5))[0].Partition
	f.send(t, p[1-gone], numbered("more", 5))
	take(t, first, 5)
}

// What is acknowledged out of order is committed by what closes the gap, and not before.
func TestGapIsNotCommitted(t *testing.T) {
	t.Parallel()
	f := single(t)
	topic := f.topic(t, 1)
	f.send(t, f.producer(t, topic, nil), numbered("m", 10))
	confirm := func(c *driver.ConsumerConfig) { c.ConfirmSettle = true }
	c := f.consumer(t, topic, topic, earliest, confirm)
	defer func() { closed(t, c) }()
	b := take(t, c, 10)
	for _, step := range []struct {
		settle driver.Batch
		want   int64
	}{{b[5:], 10}, {b[1:5], 10}, {b[:1], 0}} {
		if err := c.Settle(within(t), step.settle, driver.Ack); err != nil {
			t.Fatal(err)
		}
		got, err := f.conn.(driver.Backlogger).Backlog(within(t), topic, topic)
		if err != nil || got.Messages != step.want {
			t.Errorf("after settling %d messages the backlog is %d, %v; want %d", len(step.settle), got.Messages, err, step.want)
		}
	}
}

// A group that begins at the end is anchored there: a partition that changes hands before its first commit does not skip
// what was sent in between.
func TestNothingIsSkippedBeforeTheFirstCommit(t *testing.T) {
	t.Parallel()
	f := single(t)
	topic := f.topic(t, 1)
	p := f.producer(t, topic, nil)
	f.send(t, p, numbered("before", 5))
	closed(t, f.consumer(t, topic, topic))
	f.send(t, p, numbered("between", 5))
	c := f.consumer(t, topic, topic)
	defer func() { closed(t, c) }()
	if got := take(t, c, 5); string(got[0].Body) != "between-000" {
		t.Errorf("the first message is %s", got[0].Body)
	}
}

// What the broker decides with one protocol of groups, an option decides with the other only.
func TestOptionsOfTheOtherProtocolAreRefused(t *testing.T) {
	t.Parallel()
	f := single(t)
	topic := f.topic(t, 1)
	for name, want := range map[string]string{"sessionTimeout": "group.consumer.session.timeout.ms", "heartbeatInterval": "group.consumer.heartbeat.interval.ms"} {
		config := driver.ConsumerConfig{
			Topic: topic, Group: topic, Prefetch: 1, Start: driver.StartNew,
			Options: f.values(t, driver.OnConsumer, map[string]any{"groupProtocol": "consumer", name: "7s"}),
		}
		_, err := f.conn.NewConsumer(within(t), config)
		if err == nil || f.address.Driver.KindOf(err) != driver.Rejected || !strings.Contains(err.Error(), `option "`+name+`": 7s is for groupProtocol=classic`) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%v; want it rejected by name of the option and of %s", err, want)
		}
		config.Options = f.values(t, driver.OnConsumer, map[string]any{name: "7s"})
		if name == "heartbeatInterval" {
			config.Options["sessionTimeout"] = 30 * time.Second
		}
		c, err := f.conn.NewConsumer(within(t), config)
		if err != nil {
			t.Error(err)
			continue
		}
		closed(t, c)
	}
}

func TestMissingTopicIsNotFound(t *testing.T) {
	t.Parallel()
	for _, env := range []string{"BROKER_URL_KAFKA", "BROKER_URL_KAFKA_SHARE"} {
		url := server(env)
		if url == "" {
			t.Skip("no " + env)
		}
		f := newFixture(t, url)
		for _, group := range []string{"", "some"} {
			_, err := f.conn.NewConsumer(within(t), driver.ConsumerConfig{
				Topic: "absent", Group: group, Prefetch: 1, Start: driver.StartNew, Options: f.values(t, driver.OnConsumer, nil),
			})
			if kind := f.address.Driver.KindOf(err); err == nil || kind != driver.NotFound {
				t.Errorf("a consumer of an absent topic: %v, kind %s", err, kind)
			}
		}
	}
}

func TestJoiningEndsWithItsContext(t *testing.T) {
	t.Parallel()
	f := single(t)
	topic := f.topic(t, 1)
	ctx, cancel := context.WithCancel(within(t))
	cancel()
	_, err := f.conn.NewConsumer(ctx, driver.ConsumerConfig{
		Topic: topic, Group: topic, Prefetch: 1, Start: driver.StartNew, Options: f.values(t, driver.OnConsumer, nil),
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("joining with a context that is over: %v", err)
	}
}
