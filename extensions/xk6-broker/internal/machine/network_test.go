package machine_test

import (
	"context"
	"io"
	"net"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/machine"
)

// However many goroutines sleep again and again, the answers that others wait for are read when they come: a load generator would measure
// its own sleep.
func TestSleepersDoNotKeepTheNetworkWaiting(t *testing.T) {
	if testing.Short() {
		t.Skip("part of make test-full")
	}
	median := func(sleep func(context.Context, int64) error) time.Duration {
		ctx, stop := context.WithCancel(t.Context())
		var sleepers sync.WaitGroup
		for range runtime.GOMAXPROCS(0) {
			sleepers.Go(func() {
				sleeper := machine.Sleeper{Sleep: sleep}
				for next := driver.Now(); ctx.Err() == nil; next += int64(time.Millisecond) {
					_ = sleeper.Until(ctx, next)
				}
			})
		}
		defer sleepers.Wait()
		defer stop()
		return medianRoundTrip(t, 200)
	}
	by, timers := median(machine.Until), median(machine.Timer)
	t.Logf("a round trip takes %v beside sleepers, and %v beside Go's timers", by, timers)
	if by > 10*timers+time.Millisecond {
		t.Errorf("a round trip takes %v, and %v beside as many that sleep by Go's timers", by, timers)
	}
}

// medianRoundTrip is what a byte takes to an echo on this machine and back, once every 3 ms.
func medianRoundTrip(t *testing.T, n int) time.Duration {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var echo sync.WaitGroup
	echo.Go(func() {
		if conn, err := listener.Accept(); err == nil {
			_, _ = io.Copy(conn, conn)
			_ = conn.Close()
		}
	})
	defer echo.Wait()
	defer func() { _ = listener.Close() }()
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	all := make([]time.Duration, n)
	one := make([]byte, 1)
	for i := range all {
		time.Sleep(3 * time.Millisecond)
		start := time.Now()
		if _, err := conn.Write(one); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(conn, one); err != nil {
			t.Fatal(err)
		}
		all[i] = time.Since(start)
	}
	slices.Sort(all)
	return all[n/2]
}
