package outbox_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver/outbox"
)

func items(all ...int) []outbox.Item[int] {
	out := make([]outbox.Item[int], len(all))
	for i, n := range all {
		out[i] = outbox.Item[int]{Message: n, Report: func(int, error) {}}
	}
	return out
}

func numbers(all []outbox.Item[int]) []int {
	out := make([]int, len(all))
	for i, item := range all {
		out[i] = item.Message
	}
	return out
}

// What was put goes in order, as many at a time as may go together, and all of it before Close returns.
func TestWorkers_OneWorker_OldestThatGoTogether(t *testing.T) {
	var got [][]int
	first := make(chan struct{})
	w := outbox.Start(1, 3, 7, func(size int) int { return size }, func(_ context.Context, all []outbox.Item[int]) {
		<-first
		got = append(got, numbers(all))
	})
	w.Put(items(50)...)
	w.Put(items(1, 2, 3, 4, 50, 1, 1)...)
	close(first)
	w.Close(t.Context())
	for _, want := range [][]int{{50}, {1, 2, 3}, {4}, {50}, {1, 1}} {
		if len(got) == 0 || !slices.Equal(got[0], want) {
			t.Fatalf("%v, want %v", got, want)
		}
		got = got[1:]
	}
	var err error
	w.Put(outbox.Item[int]{Message: 9, Report: func(_ int, e error) { err = e }})
	if !errors.Is(err, driver.ErrClosed) {
		t.Errorf("put after Close: %v", err)
	}
}

// Many put and many send: each item is sent once.
func TestWorkers_ManyPutManySend_EachOnce(t *testing.T) {
	const each, putters = 10_000, 4
	var mu sync.Mutex
	var sent []int
	w := outbox.Start(3, 7, 0, func(int) int { return 0 }, func(_ context.Context, all []outbox.Item[int]) {
		mu.Lock()
		defer mu.Unlock()
		sent = append(sent, numbers(all)...)
	})
	var putting sync.WaitGroup
	for p := range putters {
		putting.Go(func() {
			for i := 0; i < each; i += 2 {
				w.Put(items(p*each+i, p*each+i+1)...)
			}
		})
	}
	putting.Wait()
	w.Close(t.Context())
	slices.Sort(sent)
	for i, n := range sent {
		if i != n {
			t.Fatalf("%d at %d", n, i)
		}
	}
	if len(sent) != each*putters {
		t.Errorf("%d sent", len(sent))
	}
}

func BenchmarkWorkers(b *testing.B) {
	w := outbox.Start(1, 1000, 1<<20, func(int) int { return 100 }, func(context.Context, []outbox.Item[int]) {})
	item := items(1)
	for b.Loop() {
		w.Put(item...)
	}
	w.Close(context.Background())
}
