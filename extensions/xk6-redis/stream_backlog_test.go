package redis_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// walk adds, reads and trims as far as a test says, and compares the backlog with what is there.
type walk struct {
	*testing.T
	s     *server
	c     driver.Conn
	topic string
}

func newWalk(t *testing.T) *walk {
	s := start(t, "--stream-node-max-entries", "10")
	c := dial(t, s.url("redis-streams"))
	w := &walk{t, s, c, topic(t, c)}
	w.do("xgroup", "create", w.topic, "g", "0")
	return w
}

func (w *walk) do(command ...any) any {
	w.Helper()
	got, err := w.s.client.Do(w.Context(), command...).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		w.Fatalf("%v: %v", command, err)
	}
	return got
}

func (w *walk) add(n int) {
	for range n {
		w.do("xadd", w.topic, "*", "b", "x")
	}
}

func (w *walk) read(n int) {
	w.do("xreadgroup", "group", "g", "c", "count", n, "noack", "streams", w.topic, ">")
}

func (w *walk) trim(left int) { w.do("xtrim", w.topic, "maxlen", left) }

// check compares, reading the whole stream for it.
func (w *walk) check(after string) {
	w.Helper()
	last := w.s.client.XInfoGroups(w.Context(), w.topic).Val()[0].LastDeliveredID
	want := int64(len(w.s.client.XRange(w.Context(), w.topic, "("+last, "+").Val()))
	if b, err := w.c.(driver.Backlogger).Backlog(w.Context(), w.topic, "g"); err != nil || !b.Estimate && b != (driver.Backlog{Messages: want, Undelivered: want}) {
		w.Fatalf("after %s: the backlog is %+v, %v; %d entries are there", after, b, err, want)
	}
}

// TestBacklogOfATrimmedStream has the server trim what was not delivered, and the group read on: what is gone is no backlog, or the answer is an estimate.
func TestBacklogOfATrimmedStream(t *testing.T) {
	if testing.Short() {
		t.Skip("part of make test-full")
	}
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r, w := rand.New(rand.NewPCG(seed, 0)), newWalk(t)
			for range 300 {
				var step string
				for range 1 + r.IntN(4) {
					n := 1 + r.IntN(60)
					switch r.IntN(8) {
					case 0, 1, 2:
						step += fmt.Sprint(" add ", n)
						w.add(n)
					case 3, 4, 5:
						step += fmt.Sprint(" read ", n)
						w.read(n)
					case 6:
						step += fmt.Sprint(" trim to ", 2*n)
						w.trim(2 * n)
					default:
						all := w.s.client.XRange(t.Context(), w.topic, "-", "+").Val()
						if len(all) > 0 && seed%2 == 1 {
							step += " delete one"
							w.do("xdel", w.topic, all[r.IntN(len(all))].ID)
						}
					}
				}
				w.check(step)
			}
		})
	}
}
