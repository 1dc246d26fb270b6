package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver/inbox"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver/redial"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// number turns numbers into messages that bear them.
func number(b driver.Batch, came []int) {
	for i, n := range came {
		b[i] = driver.Message{Token: n}
	}
}

func numbers(b driver.Batch) (all []int) {
	for i := range b {
		all = append(all, b[i].Token.(int))
	}
	return all
}

var errStop = errors.New("stop")

// FuzzInbox does what the bytes say to an inbox and to the simplest model of one.
func FuzzInbox(f *testing.F) {
	f.Add([]byte{1, 1, 8, 3, 0, 9, 1, 7, 8, 2, 6, 5, 9, 4, 9})
	f.Add([]byte{1, 1, 1, 17, 1, 8, 6, 8, 9, 2, 2, 10, 18, 5, 8, 4, 8})
	for range 20 {
		random := make([]byte, 200)
		for i := range random {
			random[i] = byte(rand.IntN(256))
		}
		f.Add(random)
	}
	f.Fuzz(func(t *testing.T, ops []byte) {
		in := inbox.New(number)
		var waiting []int
		var failure error
		closed, next := false, 0
		for _, op := range ops {
			switch n := int(op) / 8; op % 8 {
			case 0, 1: // something comes
				var some []int
				for range n % 5 {
					next++
					some = append(some, next)
				}
				in.Put(some...)
				waiting = append(waiting, some...)
			case 2: // something goes wrong
				err := fmt.Errorf("error %d", n%3)
				in.Fail(err)
				if failure == nil {
					failure = err
				}
			case 3, 4: // somebody receives
				b := make(driver.Batch, n%7)
				got, err := in.Take(b)
				switch {
				case closed:
					if got != 0 || !errors.Is(err, driver.ErrClosed) {
						t.Fatalf("closed: %d, %v", got, err)
					}
				case failure != nil:
					if got != 0 || err != failure { //nolint:errorlint // this very one
						t.Fatalf("%d, %v, want %v", got, err, failure)
					}
					failure = nil
				default:
					want := waiting[:min(len(b), len(waiting))]
					if err != nil || !slices.Equal(numbers(b[:got]), want) {
						t.Fatalf("%v, %v, want %v", numbers(b[:got]), err, want)
					}
					waiting = waiting[got:]
				}
			case 5:
				in.Clear()
				waiting = nil
			case 6:
				if n%8 == 0 { // else nothing would be tried but closed ones
					if first := in.Close(); first == closed {
						t.Fatal("the first to close: ", first)
					}
					closed = true
				}
			}
			if got := in.Waiting(); !slices.Equal(got, waiting) || in.Len() != len(waiting) {
				t.Fatalf("%v wait, %d in number, want %v", got, in.Len(), waiting)
			}
		}
	})
}

// What several goroutines put comes once, and what each put in its order.
func TestEverythingComesOnceAndInOrder(t *testing.T) {
	const putters, each = 4, 20_000
	in := inbox.New(func(b driver.Batch, came [][2]int) {
		for i, n := range came {
			b[i].Token = n
		}
	})
	var putting sync.WaitGroup
	for p := range putters {
		putting.Go(func() {
			for i := 0; i < each; {
				some := [][2]int{}
				for range 1 + i%3 {
					if i < each {
						some = append(some, [2]int{p, i})
						i++
					}
				}
				in.Put(some...)
			}
		})
	}
	var last [putters]int
	b := make(driver.Batch, 100)
	for got := 0; got < putters*each; {
		n, err := in.Receive(t.Context(), b)
		if err != nil || n == 0 {
			t.Fatal(n, err)
		}
		for i := range b[:n] {
			at := b[i].Token.([2]int)
			if at[1] != last[at[0]] {
				t.Fatalf("%d of putter %d came, want %d", at[1], at[0], last[at[0]])
			}
			last[at[0]]++
		}
		got += n
	}
	putting.Wait()
	in.Close()
}

// Whatever happens while Receive waits ends its waiting.
func TestReceiveWakes(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(in *inbox.Inbox[int])
		n    int
		want error
	}{
		"put":   {do: func(in *inbox.Inbox[int]) { in.Put(1) }, n: 1},
		"fail":  {do: func(in *inbox.Inbox[int]) { in.Fail(errStop) }, want: errStop},
		"close": {do: func(in *inbox.Inbox[int]) { in.Close() }, want: driver.ErrClosed},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				in := inbox.New(number)
				defer in.Close()
				go func() {
					time.Sleep(time.Second) // by then it waits
					c.do(in)
				}()
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if n, err := in.Receive(ctx, make(driver.Batch, 2)); n != c.n || !errors.Is(err, c.want) {
					t.Error(n, err)
				}
			})
		})
	}
}

func TestReceiveEndsWithItsContext(t *testing.T) {
	in := inbox.New(number)
	defer in.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if n, err := in.Receive(ctx, make(driver.Batch, 1)); n != 0 || !errors.Is(err, context.Canceled) {
		t.Error(n, err)
	}
	in.Put(1)
	if n, err := in.Receive(ctx, make(driver.Batch, 1)); n != 1 || err != nil {
		t.Error("what is there already does not come: ", n, err)
	}
	if n, err := in.Receive(t.Context(), nil); n != 0 || err != nil {
		t.Error("into nothing: ", n, err)
	}
}

// Once it is warm an inbox makes nothing for a message.
func TestPutAndTakeDoNotAllocate(t *testing.T) {
	in := inbox.New(func(b driver.Batch, came []driver.Message) { copy(b, came) })
	defer in.Close()
	b := make(driver.Batch, 10)
	if n := testing.AllocsPerRun(1000, func() {
		for range 10 {
			in.Put(driver.Message{})
		}
		if n, err := in.Take(b); n != 10 || err != nil {
			t.Fatal(n, err)
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// No more are with a consumer than its prefetch, whoever polls for it, and all of it is used.
func TestPollKeepsToThePrefetch(t *testing.T) {
	const prefetch, total = 10, 5000
	in, room := inbox.New(number), inbox.NewRoom(prefetch)
	var sent, with, most atomic.Int64
	var polling sync.WaitGroup
	for range 3 {
		polling.Go(func() {
			in.Poll(room, 7, func(_ context.Context, n int) ([]int, error) {
				if n < 1 || n > 7 {
					t.Errorf("asked for %d", n)
				}
				some := make([]int, rand.IntN(n+1)) // a broker need not have as many
				if sent.Add(int64(len(some))) > total {
					sent.Add(int64(-len(some)))
					return nil, nil
				}
				now := with.Add(int64(len(some)))
				for old := most.Load(); now > old && !most.CompareAndSwap(old, now); old = most.Load() {
				}
				return some, nil
			})
		})
	}
	settled := make(chan int, prefetch)
	var settling sync.WaitGroup
	settling.Go(func() {
		for n := range settled {
			with.Add(int64(-n))
			room.Give(n)
		}
	})
	b := make(driver.Batch, 4)
	for got := 0; got < total-7; { // the last of them need not fit
		n, err := in.Receive(t.Context(), b)
		if err != nil {
			t.Fatal(err)
		}
		got += n
		settled <- n
	}
	in.Close()
	polling.Wait()
	close(settled)
	settling.Wait()
	if n := most.Load(); n != prefetch {
		t.Errorf("up to %d were with the consumer, want %d", n, prefetch)
	}
	if free := room.Free(); free != prefetch-int(with.Load()) {
		t.Errorf("room for %d, with %d there", free, with.Load())
	}
}

// What fetch fails with is told, and fetch is called again later and later, until it succeeds.
func TestPollBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, room := inbox.New(number), inbox.NewRoom(1)
		began := time.Now()
		var at []time.Duration
		var polling sync.WaitGroup
		polling.Go(func() {
			in.Poll(room, 1, func(context.Context, int) ([]int, error) {
				at = append(at, time.Since(began))
				if len(at) == 9 || len(at) == 11 {
					return []int{len(at)}, nil
				}
				return nil, fmt.Errorf("failure %d", len(at))
			})
		})
		b := make(driver.Batch, 1)
		for i := 1; i <= 11; i++ {
			n, err := in.Receive(t.Context(), b)
			if i == 9 || i == 11 {
				if n != 1 || err != nil || b[0].Token != i {
					t.Errorf("%d, %v, want the message", n, err)
				}
				room.Give(1)
			} else if want := fmt.Sprintf("failure %d", i); n != 0 || err == nil || err.Error() != want {
				t.Errorf("%d, %v, want %s", n, err, want)
			}
		}
		in.Close()
		polling.Wait()
		var due time.Duration
		want := []time.Duration{0}
		for n := 1; n <= 8; n++ {
			due += redial.Pause(n)
			want = append(want, due)
		}
		want = append(want, due, due+redial.Pause(1)) // it begins anew after a success
		if !slices.Equal(at[:11], want) {
			t.Errorf("fetched after %v, want %v", at, want)
		}
	})
}

// Close ends a fetch, and what it brings then is there to be given back.
func TestCloseEndsPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := inbox.New(number)
		var polling sync.WaitGroup
		polling.Go(func() {
			in.Poll(inbox.NewRoom(5), 5, func(ctx context.Context, _ int) ([]int, error) {
				<-ctx.Done()
				return []int{1, 2}, ctx.Err()
			})
		})
		synctest.Wait()
		if !in.Close() || in.Close() {
			t.Error("who closed it first?")
		}
		polling.Wait()
		if waiting := in.Waiting(); !slices.Equal(waiting, []int{1, 2}) {
			t.Errorf("%v wait", waiting)
		}
	})
}

func TestReserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		room := inbox.NewRoom(10)
		if n, err := room.Reserve(t.Context(), 1, 4); n != 4 || err != nil {
			t.Error(n, err)
		}
		if n, err := room.Reserve(t.Context(), 1, 100); n != 6 || err != nil {
			t.Error(n, err)
		}
		brief, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if n, err := room.Reserve(brief, 1, 1); n != 0 || !errors.Is(err, context.DeadlineExceeded) {
			t.Error(n, err)
		}
		// Several wait for different amounts: what is given is enough for the small one, and later for the other.
		var all sync.WaitGroup
		var small, large atomic.Int64
		for least, at := range map[int]*atomic.Int64{2: &small, 5: &large} {
			all.Go(func() {
				if n, err := room.Reserve(t.Context(), least, least); n != least || err != nil {
					t.Error(n, err)
				}
				at.Store(int64(time.Since(epoch())))
			})
		}
		synctest.Wait()
		room.Give(3)
		synctest.Wait()
		if small.Load() == 0 || large.Load() != 0 {
			t.Error("three were free: ", small.Load(), large.Load())
		}
		room.Give(4)
		all.Wait()
		if free := room.Free(); free != 0 {
			t.Errorf("%d are free", free)
		}
		room.Take(2)
		closing := make(chan error)
		go func() {
			_, err := room.Reserve(t.Context(), 1, 1)
			closing <- err
		}()
		synctest.Wait()
		room.Close()
		if err := <-closing; !errors.Is(err, driver.ErrClosed) {
			t.Error(err)
		}
	})
}

// epoch is before any time of a test.
func epoch() time.Time { return time.Unix(0, 0) }

// A number is what most drivers keep of a message: a few words.
func BenchmarkInbox(b *testing.B) {
	in := inbox.New(number)
	defer in.Close()
	batch := make(driver.Batch, 100)
	go func() {
		for range b.N {
			in.Put(1)
		}
	}()
	for got := 0; got < b.N; {
		n, err := in.Receive(context.Background(), batch)
		if err != nil {
			b.Fatal(err)
		}
		got += n
	}
}
