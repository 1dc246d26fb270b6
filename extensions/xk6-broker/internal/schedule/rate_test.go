package schedule_test

import (
	"math"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/schedule"
)

func TestNewRate(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		events float64
		unit   time.Duration
		want   schedule.Rate
	}{
		{0, time.Minute, schedule.Rate{Per: time.Minute}},
		{2000, time.Second, perSecond(2000)},
		{1, 3 * time.Second, schedule.Rate{Events: 1, Per: 3 * time.Second}},
		{0.5, time.Second, schedule.Rate{Events: 1, Per: 2 * time.Second}},
		{0.1, time.Second, schedule.Rate{Events: 1, Per: 10 * time.Second}},
		{2000.25, time.Second, schedule.Rate{Events: 8001, Per: 4 * time.Second}},
		{33.3333, time.Second, schedule.Rate{Events: 333333, Per: 10000 * time.Second}},
		{1e9, time.Second, perSecond(1e9)},
		{1, 1 << 62, schedule.Rate{Events: 1, Per: 1 << 62}},
	} {
		if got, err := schedule.NewRate(c.events, c.unit); err != nil || got != c.want {
			t.Errorf("NewRate(%v, %v) is %v, %v, want %v", c.events, c.unit, got, err, c.want)
		}
	}
}

// Without a simple fraction a rate is rounded.
func TestNewRateIsClose(t *testing.T) {
	t.Parallel()
	for _, unit := range []time.Duration{1, time.Microsecond, time.Second, time.Minute, time.Hour} {
		for _, events := range []float64{math.Pi, math.Sqrt2 * 1e-3, 0.12345678, 1.23456789e-5, math.E * 1e5, 123456.789} {
			if events > float64(unit) || events*(1<<62) < 1e5*float64(unit) {
				continue
			}
			r, err := schedule.NewRate(events, unit)
			if err != nil {
				t.Errorf("NewRate(%v, %v): %v", events, unit, err)
				continue
			}
			want := new(big.Rat).SetFloat64(events)
			want.Quo(want, new(big.Rat).SetInt64(int64(unit)))
			off := new(big.Rat).SetFrac64(r.Events, int64(r.Per))
			off.Sub(off, want).Quo(off, want)
			if f, _ := off.Float64(); math.Abs(f) > 1e-5 {
				t.Errorf("NewRate(%v, %v) is %v, off by %v", events, unit, r, f)
			}
		}
	}
}

func TestNewRateRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		events float64
		unit   time.Duration
		want   string
	}{
		{-1, time.Second, "-1 per 1s is no rate: it must be from 0"},
		{math.NaN(), time.Second, "NaN per 1s is no rate: it must be a finite number"},
		{math.Inf(1), time.Second, "finite"},
		{1, 0, "the time unit more than 0"},
		{1, -time.Second, "the time unit more than 0"},
		{1, 1<<62 + 1, "at most 146 years"},
		{1e9 + 1, time.Second, "one arrival per nanosecond"},
		{math.MaxFloat64, time.Hour, "one arrival per nanosecond"},
		{1e-10, time.Second, "too low"},
		{math.SmallestNonzeroFloat64, time.Second, "too low"},
	} {
		if r, err := schedule.NewRate(c.events, c.unit); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("NewRate(%v, %v) is %v, %v, want an error with %q", c.events, c.unit, r, err, c.want)
		}
	}
}

func TestRateString(t *testing.T) {
	t.Parallel()
	for want, r := range map[string]schedule.Rate{
		"0":         {},
		"2000/s":    perSecond(2000),
		"1/3s":      {Events: 1, Per: 3 * time.Second},
		"5/1m0s":    {Events: 5, Per: time.Minute},
		"300/100ms": {Events: 300, Per: 100 * time.Millisecond},
	} {
		if got := r.String(); got != want {
			t.Errorf("%#v is %q, want %q", r, got, want)
		}
	}
}
