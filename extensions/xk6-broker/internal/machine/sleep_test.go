package machine_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/machine"
)

func TestNeverBeforeTheMoment(t *testing.T) {
	sleeper := &machine.Sleeper{Sleep: machine.Until}
	for _, ahead := range []time.Duration{-time.Second, 0, 5 * time.Microsecond, 50 * time.Microsecond, time.Millisecond, 5 * time.Millisecond} {
		for name, sleep := range map[string]func(context.Context, int64) error{"Until": machine.Until, "Timer": machine.Timer, "Sleeper": sleeper.Until} {
			until := driver.Now() + int64(ahead)
			if err := sleep(t.Context(), until); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if now := driver.Now(); now < until {
				t.Errorf("%s woke %v early", name, time.Duration(until-now))
			}
		}
	}
}

func TestAContextThatEndsWakes(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	ending, stop := context.WithTimeout(t.Context(), 5*time.Millisecond)
	defer stop()
	sleeper := &machine.Sleeper{Sleep: machine.Until}
	for name, sleep := range map[string]func(context.Context, int64) error{"Until": machine.Until, "Timer": machine.Timer, "Sleeper": sleeper.Until} {
		for _, ahead := range []time.Duration{-time.Second, time.Millisecond, time.Hour} {
			if err := sleep(ended, driver.Now()+int64(ahead)); !errors.Is(err, context.Canceled) {
				t.Errorf("%s %v ahead with an ended context: %v", name, ahead, err)
			}
		}
		if err := sleep(ending, driver.Now()+int64(time.Hour)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTimerIsExactUnderVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		until := driver.Now() + int64(time.Hour)
		if err := machine.Timer(t.Context(), until); err != nil || driver.Now() != until {
			t.Errorf("woke at %d with %v, want %d", driver.Now(), err, until)
		}
	})
}

// BenchmarkSleep tells what it costs to wake, and how late.
func BenchmarkSleep(b *testing.B) {
	for _, every := range []time.Duration{20 * time.Microsecond, 100 * time.Microsecond, time.Millisecond} {
		sleeper := &machine.Sleeper{Sleep: machine.Until}
		for name, sleep := range map[string]func(context.Context, int64) error{"Until": machine.Until, "Timer": machine.Timer, "Sleeper": sleeper.Until} {
			b.Run(name+"/"+every.String(), func(b *testing.B) {
				before, next := machine.CPU(), driver.Now()
				var late int64
				for range b.N {
					next += int64(every)
					_ = sleep(b.Context(), next)
					late += driver.Now() - next
				}
				b.ReportMetric(float64(machine.CPU()-before)/1e3/float64(b.N), "cpu-µs/op")
				b.ReportMetric(float64(late)/1e3/float64(b.N), "late-µs/op")
			})
		}
	}
}
