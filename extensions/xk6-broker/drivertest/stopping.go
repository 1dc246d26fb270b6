package drivertest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// Stop stops a subscriber amid a load while it reads on, and acknowledges what comes; received is what came in all, and more is how much comes after that.
func Stop(ctx context.Context, t *testing.T, c driver.Consumer) (received int, more func() int) {
	t.Helper()
	stopper, ok := c.(driver.Stopper)
	if !ok {
		t.Fatal("the consumer is no driver.Stopper")
	}
	b := make(driver.Batch, 100)
	read := func() int {
		now, cancel := context.WithTimeout(ctx, 100*time.Millisecond) // on a slow machine what is there takes a while
		defer cancel()
		n, err := c.Receive(now, b)
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if n > 0 {
			if err := c.Settle(ctx, b[:n], driver.Ack); err != nil && !errors.Is(err, errors.ErrUnsupported) {
				t.Error(err)
			}
		}
		return n
	}
	stopped := make(chan error, 1)
	go func() { stopped <- stopper.Stop(ctx) }()
	for over := false; !over; {
		received += read()
		select {
		case err := <-stopped:
			if over = true; err != nil {
				t.Fatal(err)
			}
		default:
		}
	}
	for n := read(); n > 0; n = read() {
		received += n
	}
	return received, read
}
