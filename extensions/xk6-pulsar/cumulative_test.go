package pulsar

import (
	"fmt"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// cumulative opens a consumer whose acks are of all before them.
func (f *fixture) cumulative(topic string, confirm bool, given map[string]any) driver.Consumer {
	f.Helper()
	given["ackType"] = cumulative
	c, err := f.conn.NewConsumer(within(f), driver.ConsumerConfig{
		Topic: topic, Group: "group", Prefetch: 100, Start: driver.StartEarliest, ConfirmSettle: confirm, Options: f.values(driver.OnConsumer, given),
	})
	if err != nil {
		f.Fatal(err)
	}
	f.closes(c)
	return c
}

func (f *fixture) backlogBecomes(topic string, want int64) {
	f.Helper()
	for ctx := within(f); ; time.Sleep(5 * time.Millisecond) {
		got, err := f.conn.Backlog(ctx, topic, "group")
		if err != nil {
			f.Fatal(err)
		}
		if got.Messages == want {
			return
		}
		if ctx.Err() != nil {
			f.Fatalf("the backlog stays at %d, want %d", got.Messages, want)
		}
	}
}

// A message is settled with the last of its partition that is, and what came after that comes again: to a consumer that confirms or does not, that
// gathers acks, and within a batch of the producer's.
func TestCumulativeAcks(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "BROKER_URL_PULSAR_FAILOVER")
	for _, confirm := range []bool{false, true} {
		for _, delay := range []string{"0", "5ms"} {
			for _, batching := range []string{"none", "default"} {
				t.Run(fmt.Sprintf("confirmed %v, ackDelay %s, batching %s", confirm, delay, batching), func(t *testing.T) {
					f := &fixture{t, f.address, f.conn}
					topic := f.topic(1)
					c := f.cumulative(topic, confirm, map[string]any{"ackDelay": delay, "subscriptionType": "exclusive"})
					f.send(f.producer(topic, map[string]any{"batching": batching, "batchDelay": "50ms"}), numbered(10))
					b := f.take(c, 10)
					for _, i := range []int{1, 5, 3, 5} { // once more, and what was settled with a later one: no harm, and no mistake
						if err := c.Settle(within(t), b[i:i+1], driver.Ack); err != nil {
							t.Errorf("message %d: %v", i, err)
						}
					}
					if batching == "none" { // of a batch that is settled in part the broker counts the whole
						f.backlogBecomes(topic, 4)
					}
					if err := c.Close(within(t)); err != nil {
						t.Fatal(err)
					}
					c = f.cumulative(topic, confirm, map[string]any{"ackDelay": delay, "subscriptionType": "exclusive"})
					for i, m := range f.take(c, 4) {
						if want := fmt.Sprintf("%05d", 6+i); string(m.Body) != want {
							t.Errorf("%s comes again, want %s", m.Body, want)
						}
						if i == 3 {
							if err := c.Settle(within(t), driver.Batch{m}, driver.Ack); err != nil {
								t.Error(err)
							}
						}
					}
					f.backlogBecomes(topic, 0)
				})
			}
		}
	}
}

// An ack in one partition is of nothing in another, and makes room for all that it settles.
func TestCumulativeAcksOfPartitions(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "BROKER_URL_PULSAR_FAILOVER")
	topic := f.topic(3)
	c := f.cumulative(topic, true, map[string]any{})
	f.send(f.producer(topic, nil), numbered(900)) // nine times the prefetch
	last := map[int32]driver.Message{}
	for range 18 {
		for _, m := range f.take(c, 50) {
			last[m.Partition] = m
		}
		var acked driver.Batch
		for _, m := range last {
			acked = append(acked, m)
		}
		if err := c.Settle(within(t), acked, driver.Ack); err != nil {
			t.Fatal(err)
		}
	}
	f.backlogBecomes(topic, 0)

	f.send(f.producer(topic, nil), numbered(30))
	last = map[int32]driver.Message{}
	of := map[int32]int64{}
	for _, m := range f.take(c, 30) {
		last[m.Partition] = m
		of[m.Partition]++
	}
	if err := c.Settle(within(t), driver.Batch{last[0], last[2]}, driver.Ack); err != nil {
		t.Fatal(err)
	}
	f.backlogBecomes(topic, of[1])
}

// What is settled with a later one takes up no permit, be it in the client's queue or out of it.
func TestPermitsOfCumulativeAcks(t *testing.T) {
	p := newPermits(100)
	var all driver.Batch
	for n := range 100 {
		d := messageOf(int32(n%2), int64(n)) //gosec:disable G115 -- 0 or 1
		p.arrive(d)
		for partition := range int32(2) {
			for queue := p.queues[partition]; p.surplus() && len(queue) > 0; queue = p.queues[partition] {
				p.taken(queue[0].Message)
			}
		}
		all = append(all, driver.Message{Token: d})
	}
	for _, c := range []struct{ settled, open int }{{49, 75}, {25, 75}, {98, 25}, {98, 25}, {99, 0}} {
		if _, err := p.settleThrough(all[c.settled:c.settled+1], nil); err != nil {
			t.Error(err)
		}
		if p.open != c.open {
			t.Errorf("after message %d was settled %d are open, want %d", c.settled, p.open, c.open)
		}
	}
	ids, err := p.settleThrough(driver.Batch{{Token: messageOf(0, 7)}, {Token: messageOf(1, 8)}, {Token: messageOf(0, 9)}, {Token: messageOf(0, 6)}}, nil)
	if err != nil || len(ids) != 2 || ids[0].EntryID() != 9 || ids[1].EntryID() != 8 {
		t.Errorf("acknowledged %v, %v", ids, err)
	}
}
