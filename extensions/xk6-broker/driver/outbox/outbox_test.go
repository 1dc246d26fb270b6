package outbox_test

import (
	"slices"
	"sync"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver/outbox"
)

func of(items ...int) (int, func(int) int) { return len(items), func(i int) int { return items[i] } }

// What was put comes in order, as many at a time as may go together, and all of it after Close.
func TestNext(t *testing.T) {
	o := outbox.New(func(size int) int { return size })
	o.Put(of(1, 2, 3, 4, 50, 1, 1))
	var got []int
	for _, want := range [][]int{{1, 2, 3}, {4}, {50}, {1, 1}} {
		if got = o.Next(got, 3, 7); !slices.Equal(got, want) {
			t.Fatalf("%v, want %v", got, want)
		}
	}
	o.Put(of(8))
	o.Close()
	if o.Put(of(9)) {
		t.Error("put after Close")
	}
	if got = o.Next(got, 3, 7); !slices.Equal(got, []int{8}) {
		t.Errorf("%v was left", got)
	}
	if got = o.Next(got, 3, 7); len(got) != 0 {
		t.Errorf("%v after all", got)
	}
}

// Many put and one takes: each item comes once, and those of one in order.
func TestManyPut(t *testing.T) {
	const each, who = 10_000, 4
	o := outbox.New[int](nil)
	var all sync.WaitGroup
	for w := range who {
		all.Go(func() {
			for i := range each {
				o.Put(of(w*each + i))
			}
		})
	}
	go func() { all.Wait(); o.Close() }()
	next := make([]int, who)
	var got []int
	for got = o.Next(nil, 100, 0); len(got) > 0; got = o.Next(got, 100, 0) {
		for _, item := range got {
			if w := item / each; item%each != next[w] {
				t.Fatalf("%d of %d came after %d", item%each, w, next[w]-1)
			}
			next[item/each]++
		}
	}
	if !slices.Equal(next, slices.Repeat([]int{each}, who)) {
		t.Errorf("%v came", next)
	}
}

// What is put once wakes as many that take as there are requests for it: each item comes once.
func TestManyTake(t *testing.T) {
	const all, who = 10_000, 4
	o := outbox.New[int](nil)
	var taking sync.WaitGroup
	taken := make([][]int, who)
	for w := range who {
		taking.Go(func() {
			for got := o.Next(nil, 7, 0); len(got) > 0; got = o.Next(got, 7, 0) {
				taken[w] = append(taken[w], got...)
			}
		})
	}
	for first := 0; first < all; first += 100 {
		o.Put(100, func(i int) int { return first + i })
	}
	o.Close()
	taking.Wait()
	got := slices.Sorted(slices.Values(slices.Concat(taken...)))
	want := make([]int, all)
	for i := range want {
		want[i] = i
	}
	if !slices.Equal(got, want) {
		t.Errorf("%d came of %d", len(got), all)
	}
}

func BenchmarkPutAndNext(b *testing.B) {
	o := outbox.New(func(int) int { return 100 })
	item := func(i int) int { return i }
	var got []int
	for b.Loop() {
		o.Put(1, item)
		got = o.Next(got, 1000, 1<<20)
	}
}
