package js

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/samples"
)

// That the results so far are old is told once, while the disk still writes; those of a disk that keeps up are not, nor is the end of the test.
func TestResultsThatFailToKeepUp(t *testing.T) {
	full := errors.New("the disk is full")
	for name, c := range map[string]struct {
		takes time.Duration
		fails error
		want  time.Duration // when it is told, 0: never
	}{
		"in time":  {takes: samples.Interval / 2},
		"too slow": {takes: 5 * samples.Interval, want: staleAfter},
		"full":     {fails: full, want: samples.Interval},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began, told := time.Now(), make(chan time.Duration, 20)
				m := startMeanwhile(func() error {
					time.Sleep(c.takes)
					return c.fails
				}, func(err error) {
					if !errors.Is(err, c.fails) {
						t.Errorf("told of %v", err)
					}
					told <- time.Since(began)
				})
				halt := samples.Each(func(time.Time) { m.again() })
				time.Sleep(20 * samples.Interval)
				halt()
				m.halt()
				time.Sleep(2 * staleAfter)
				n, first := len(told), time.Duration(0)
				if n > 0 {
					first = <-told
				}
				if n > 1 || first != c.want {
					t.Errorf("told %d times, after %v, and it should be %v", n, first, c.want)
				}
			})
		})
	}
}
