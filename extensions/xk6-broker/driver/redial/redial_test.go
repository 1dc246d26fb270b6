package redial_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver/redial"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errRefused = errors.New("refused")

// connection breaks when it is told to.
type connection struct{ broken atomic.Bool }

// server is what is dialed: it takes a second to answer and counts.
type server struct {
	dialed  atomic.Int64
	refuses atomic.Bool
}

func (s *server) dial(ctx context.Context) (*connection, error) {
	s.dialed.Add(1)
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if s.refuses.Load() {
		return nil, errRefused
	}
	return &connection{}, nil
}

func (s *server) link() *redial.Link[*connection] {
	return redial.New(s.dial, func(c *connection) bool { return c.broken.Load() })
}

func TestOneDialServesAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s server
		l := s.link()
		if _, ok := l.Last(); ok {
			t.Error("there is a connection before any was dialed")
		}
		for round := int64(1); round <= 2; round++ {
			var all sync.WaitGroup
			for range 10 {
				all.Go(func() {
					if c, err := l.Get(t.Context()); err != nil || c.broken.Load() {
						t.Error(err)
					}
				})
			}
			all.Wait()
			if n := s.dialed.Load(); n != round {
				t.Errorf("dialed %d times, want %d", n, round)
			}
			c, ok := l.Last()
			if !ok {
				t.Fatal("no connection")
			}
			c.broken.Store(true)
		}
	})
}

// Who comes while another dials in vain dials itself.
func TestAFailureIsNotRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s server
		s.refuses.Store(true)
		l := s.link()
		for range 2 {
			if _, err := l.Get(t.Context()); !errors.Is(err, errRefused) {
				t.Error(err)
			}
		}
		s.refuses.Store(false)
		if _, err := l.Get(t.Context()); err != nil || s.dialed.Load() != 3 {
			t.Error(err, s.dialed.Load())
		}
	})
}

// The context of one who waits for another's dialing ends the waiting only.
func TestWaitingEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s server
		l := s.link()
		first := make(chan error)
		go func() {
			_, err := l.Get(t.Context())
			first <- err
		}()
		synctest.Wait()
		brief, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := l.Get(brief); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if err := <-first; err != nil || s.dialed.Load() != 1 {
			t.Error(err, s.dialed.Load())
		}
	})
}

// Close ends the dialing and all who wait for it, and hangs up once where there is a connection.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s server
		l := s.link()
		errs := make(chan error)
		for range 3 {
			go func() {
				_, err := l.Get(t.Context())
				errs <- err
			}()
		}
		synctest.Wait()
		if err := l.Close(func(*connection) error { t.Error("there is no connection"); return nil }); err != nil {
			t.Error(err)
		}
		for range 3 {
			if err := <-errs; !errors.Is(err, driver.ErrClosed) {
				t.Error(err)
			}
		}
		if _, err := l.Get(t.Context()); !errors.Is(err, driver.ErrClosed) {
			t.Error(err)
		}

		l = s.link()
		made, err := l.Get(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var hungUp, failed atomic.Int64
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				err := l.Close(func(c *connection) error {
					if hungUp.Add(1); c != made {
						t.Error("another connection")
					}
					time.Sleep(time.Second)
					return errRefused
				})
				if hungUp.Load() != 1 {
					t.Error("closed before it was hung up")
				}
				if err != nil {
					failed.Add(1)
				}
			})
		}
		all.Wait()
		if hungUp.Load() != 1 || failed.Load() != 1 {
			t.Errorf("hung up %d times, %d errors", hungUp.Load(), failed.Load())
		}
		if c, ok := l.Last(); !ok || c != made {
			t.Error("nothing is left to look at")
		}
		if _, err := l.Get(t.Context()); !errors.Is(err, driver.ErrClosed) {
			t.Error("a good connection is still given: ", err)
		}
	})
}

// A dialing that succeeds just when the link is closed leaves its connection to who closes.
func TestCloseFindsWhatIsDialedMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := redial.New(func(context.Context) (*connection, error) {
			time.Sleep(time.Second) // and does not look at its context
			return &connection{}, nil
		}, func(*connection) bool { return false })
		got := make(chan error)
		go func() {
			_, err := l.Get(t.Context())
			got <- err
		}()
		synctest.Wait()
		hungUp := false
		_ = l.Close(func(*connection) error { hungUp = true; return nil })
		if !hungUp {
			t.Error("nobody will close the connection")
		}
		if err := <-got; !errors.Is(err, driver.ErrClosed) {
			t.Error(err)
		}
	})
}

func TestPause(t *testing.T) {
	var all []time.Duration
	for n := range 9 {
		all = append(all, redial.Pause(n+1)/time.Millisecond)
	}
	if want := []time.Duration{25, 50, 100, 200, 400, 800, 1000, 1000, 1000}; !slices.Equal(all, want) {
		t.Errorf("%v, want %v", all, want)
	}
	if p := redial.Pause(1 << 40); p != time.Second {
		t.Errorf("after very many failures: %v", p)
	}
}

func TestUntil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, failures := time.Now(), 0
		got, ok := redial.Until(t.Context(), func(context.Context) (int, error) {
			if failures < 3 {
				return 0, errRefused
			}
			return 7, nil
		}, func(err error) {
			if failures++; !errors.Is(err, errRefused) {
				t.Error(err)
			}
		})
		if took := time.Since(began); got != 7 || !ok || failures != 3 || took != 175*time.Millisecond {
			t.Errorf("%d, %v after %d failures and %v", got, ok, failures, took)
		}
	})
}

// The end of the context is no failure: it ends the pause, and an attempt, and there is none after it.
func TestUntilEnds(t *testing.T) {
	for name, after := range map[string]time.Duration{"in a pause": 10 * time.Millisecond, "in an attempt": 500 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), after)
				defer cancel()
				attempts, failures := 0, 0
				_, ok := redial.Until(ctx, func(ctx context.Context) (int, error) {
					if attempts++; attempts == 1 {
						return 0, errRefused
					}
					<-ctx.Done()
					return 0, ctx.Err()
				}, func(error) { failures++ })
				if ok || failures != 1 || attempts > 2 {
					t.Error(ok, failures, attempts)
				}
				if _, ok := redial.Until(ctx, func(context.Context) (int, error) { return 1, nil }, func(error) {}); ok {
					t.Error("opened after the end")
				}
			})
		})
	}
}
