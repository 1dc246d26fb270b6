package account_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
)

// TestExactUnderConcurrency runs a small broker: producers send to every group at once, messages are confirmed before
// and after they are received, and what is lost, repeated and never confirmed is known beforehand.
func TestExactUnderConcurrency(t *testing.T) {
	const (
		producers = 4
		each      = 40_000
		readers   = 3
		lost      = 1000 // one in so many
		failed    = 77
		doubled   = 50
	)
	type copy struct {
		id, seq uint64
		attempt int32
	}
	topic := account.NewTopic()
	names := []string{"a", "b"}
	queues := map[string][]chan copy{}
	var sending, confirming, receiving, watching sync.WaitGroup
	for _, name := range names {
		group := topic.Group(name, false)
		group.Ready()
		for range readers {
			queue := make(chan copy, 1000)
			queues[name] = append(queues[name], queue)
			receiving.Go(func() {
				reader := group.Reader()
				for c := range queue {
					reader.Received(c.id, c.seq, int32(c.id), c.attempt)
					reader.Settled(c.id, c.seq)
				}
			})
		}
	}
	var done atomic.Bool
	watching.Go(func() {
		for !done.Load() {
			for _, group := range topic.Groups() {
				tally := group.Tally()
				if tally.Missing > tally.Expected || tally.Expected-tally.Missing+tally.Unexpected != tally.Received {
					t.Errorf("the tally does not add up: %+v", tally)
				}
				group.Outstanding()
			}
		}
	})
	confirms := make(chan message, 1000)
	for range 2 {
		confirming.Go(func() {
			for m := range confirms {
				topic.Producer(m.id).Expect(m.seq)
			}
		})
	}
	var next atomic.Uint64
	for range producers {
		sending.Go(func() {
			id := next.Add(1)
			p := topic.Producer(id)
			var together sync.WaitGroup
			for range 2 { // goroutines that share a producer
				together.Go(func() {
					for range each / 2 {
						seq := p.Next()
						if seq%failed == 0 {
							continue
						}
						if seq%2 == 0 {
							confirms <- message{id, seq}
						}
						for _, name := range names {
							queue := queues[name][seq%readers]
							if seq%lost != 1 {
								queue <- copy{id, seq, 1}
							}
							if seq%doubled == 2 {
								queue <- copy{id, seq, 2}
							}
						}
						if seq%2 == 1 {
							confirms <- message{id, seq}
						}
					}
				})
			}
			together.Wait()
		})
	}
	sending.Wait()
	close(confirms)
	for _, name := range names {
		for _, queue := range queues[name] {
			close(queue)
		}
	}
	confirming.Wait()
	receiving.Wait()
	done.Store(true)
	watching.Wait()

	var want account.Tally
	for seq := range each {
		if seq%failed == 0 {
			continue
		}
		want.Expected += producers
		if seq%lost == 1 {
			want.Missing += producers
		} else {
			want.Received += producers
		}
		if seq%doubled == 2 {
			want.Redelivered += producers
			want.Duplicated += producers
		}
	}
	want.Settled = want.Received
	for _, group := range topic.Groups() {
		got := group.Tally()
		got.Reordered = 0 // that is for how the goroutines of a producer took turns
		if got != want {
			t.Errorf("got %+v\nwant %+v", got, want)
		}
		if n := group.Outstanding(); n != want.Missing {
			t.Errorf("%d outstanding, want %d", n, want.Missing)
		}
	}
}

// TestReadersOfOneWord makes readers receive neighbouring messages at the same time, some of them the same one.
func TestReadersOfOneWord(t *testing.T) {
	const messages, readers = 300_000, 4
	topic := account.NewTopic()
	p := topic.Producer(1)
	group := topic.Group("workers", true)
	for range messages {
		p.Next()
	}
	var next, firsts atomic.Uint64
	var all sync.WaitGroup
	for range readers {
		all.Go(func() {
			reader := group.Reader()
			for n := next.Add(1) - 1; n < 2*messages; n = next.Add(1) - 1 {
				seq := n / 2 // each is received twice
				p.Expect(seq)
				if reader.Received(1, seq, 0, 0)&account.First != 0 {
					firsts.Add(1)
				}
				reader.Settled(1, seq)
			}
		})
	}
	all.Wait()
	got := group.Tally()
	copies := got.Redelivered + got.Duplicated
	got.Redelivered, got.Duplicated, got.Reordered = 0, 0, 0
	if got != (account.Tally{Expected: messages, Received: messages, Settled: messages}) {
		t.Errorf("%+v", got)
	}
	if firsts.Load() != messages || copies != messages {
		t.Errorf("%d first and %d further copies, want %d of each", firsts.Load(), copies, messages)
	}
}
