package nats

import (
	"context"
	"sync"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// Who has a stream open while it is deleted and created again goes on with the new one, and misses nothing of it.
func TestAStreamThatIsCreatedAgain(t *testing.T) {
	if testing.Short() {
		t.Skip("part of make test-full")
	}
	t.Run("alone", func(t *testing.T) { streamAgain(t, "") })
	t.Run("in a group", func(t *testing.T) { streamAgain(t, "group") })
}

func streamAgain(t *testing.T, group string) {
	c, a := open(t, "jetstream://"+startProcess(t).address)
	topic := unique("again")
	create(t, c, a, topic, nil)
	p := producer(t, c, a, topic, nil)

	const members, n = 2, 100
	want := n // in all
	if group == "" {
		want *= members
	}
	life, end := context.WithCancel(within(t))
	var busy sync.WaitGroup
	defer busy.Wait()
	defer end()
	came := make(chan int)
	for range members {
		k := consumer(t, c, a, driver.ConsumerConfig{Topic: topic, Group: group, Prefetch: 10}, nil)
		busy.Go(func() {
			for b := make(driver.Batch, 10); life.Err() == nil; {
				m, err := k.Receive(life, b)
				if err == nil {
					err = k.Settle(life, b[:m], driver.Ack)
				}
				if err != nil && life.Err() == nil && a.Driver.KindOf(err) != driver.NotFound {
					t.Error(err)
				}
				select {
				case came <- m:
				case <-life.Done():
				}
			}
		})
	}
	for range 2 {
		if err := c.(driver.Admin).DeleteTopic(within(t), topic); err != nil {
			t.Fatal(err)
		}
		create(t, c, a, topic, nil)
		for i, err := range send(t, p, bodies(n)) {
			if err != nil {
				t.Fatal(i, err)
			}
		}
		for got := 0; got < want && life.Err() == nil; {
			select {
			case m := <-came:
				got += m
			case <-life.Done():
				t.Errorf("%d of %d have come", got, want)
			}
		}
	}
}
