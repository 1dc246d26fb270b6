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
		{1000.0 / 7, time.Second, schedule.Rate{Events: 1000, Per: 7 * time.Second}},
		{1e9, time.Second, perSecond(1e9)},
		{1 << 62, 1 << 62, schedule.Rate{Events: 1 << 62, Per: 1 << 62}},
		{1, 1 << 62, schedule.Rate{Events: 1, Per: 1 << 62}},
	} {
		if got, err := schedule.NewRate(c.events, c.unit); err != nil || got != c.want {
			t.Errorf("NewRate(%v, %v) is %v, %v, want %v", c.events, c.unit, got, err, c.want)
		}
	}
}

// Where no simple fraction is the number, the nearest that fits is.
func TestNewRateIsClose(t *testing.T) {
	t.Parallel()
	for _, unit := range []time.Duration{1, time.Microsecond, time.Second, time.Hour, 365 * 24 * time.Hour} {
		for _, events := range []float64{math.Pi, math.Sqrt2 * 1e-3, 0.12345678, 1.23456789e-5, math.E * 1e5, 123456.789} {
			if events > float64(unit) || events < float64(unit)/(1<<62) {
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
			if f, _ := off.Float64(); math.Abs(f) > 1.0/(1<<52) {
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
		{-1, time.Second, "-1 per 1s is no rate: it must not be negative"},
		{math.NaN(), time.Second, "NaN per 1s is no rate: it must be a finite number"},
		{math.Inf(1), time.Second, "finite"},
		{math.Inf(-1), time.Second, "finite"},
		{1, 0, "the time unit must be more than 0"},
		{1, -time.Second, "the time unit must be more than 0"},
		{1, 1<<62 + 1, "the time unit must not exceed 146 years"},
		{1e9 + 1, time.Second, "must not exceed one arrival per nanosecond"},
		{math.MaxFloat64, time.Hour, "must not exceed one arrival per nanosecond"},
		{1e-10, time.Second, "less than one arrival in 146 years"},
		{math.SmallestNonzeroFloat64, time.Second, "less than one arrival in 146 years"},
	} {
		if r, err := schedule.NewRate(c.events, c.unit); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("NewRate(%v, %v) is %v, %v, want an error with %q", c.events, c.unit, r, err, c.want)
		}
	}
}

func TestParseRate(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]schedule.Rate{
		"2000/s":              perSecond(2000),
		"2000":                perSecond(2000),
		"1/3s":                {Events: 1, Per: 3 * time.Second},
		"0.5/m":               {Events: 1, Per: 2 * time.Minute},
		" 300 / 100ms ":       {Events: 300, Per: 100 * time.Millisecond},
		"1e3/h":               {Events: 1000, Per: time.Hour},
		"7/.5s":               {Events: 7, Per: 500 * time.Millisecond},
		"9007199254740993/1h": {}, // more than one per nanosecond
		"3/1m30s":             {Events: 3, Per: 90 * time.Second},
	} {
		got, err := schedule.ParseRate(s)
		if (want == schedule.Rate{}) {
			if err == nil {
				t.Errorf("ParseRate(%q) is %v, want an error", s, got)
			}
			continue
		}
		if err != nil || got != want {
			t.Errorf("ParseRate(%q) is %v, %v, want %v", s, got, err, want)
		}
	}
	for _, s := range []string{"", "/", "/s", "x", "1/", "1/0s", "0/0s", "1/-1s", "1/2", "1/x", "-1/s", "NaN/s", "Inf", "1e99/s", "1/s/s"} {
		if got, err := schedule.ParseRate(s); err == nil {
			t.Errorf("ParseRate(%q) is %v, want an error", s, got)
		}
	}
}

func TestRateString(t *testing.T) {
	t.Parallel()
	for want, r := range map[string]schedule.Rate{
		"0":         {},
		"2000/s":    perSecond(2000),
		"1/3s":      {Events: 1, Per: 3 * time.Second},
		"5/m":       {Events: 5, Per: time.Minute},
		"5/h":       {Events: 5, Per: time.Hour},
		"5/ms":      {Events: 5, Per: time.Millisecond},
		"300/100ms": {Events: 300, Per: 100 * time.Millisecond},
	} {
		if got := r.String(); got != want {
			t.Errorf("%#v is %q, want %q", r, got, want)
		}
	}
}

func FuzzRate(f *testing.F) {
	for _, s := range []string{"2000/s", "1/3s", "0.1", "1e-3/h", "142.85714285714286/m", "4611686018427387904/4611686018427387904ns", "0/s", "0/0s", "-1/s"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r, err := schedule.ParseRate(s)
		if err != nil {
			return
		}
		if r.Events < 0 || r.Per <= 0 || r.Per > 1<<62 || r.Events > int64(r.Per) {
			t.Fatalf("%q is the rate %d per %d ns", s, r.Events, r.Per)
		}
		if again, err := schedule.ParseRate(r.String()); err != nil || again != r {
			t.Fatalf("%q is %v, which is read as %v, %v", s, r, again, err)
		}
		if r.Events > 0 {
			s := schedule.Constant(r, 0)
			first, ok := s.At(0)
			second, more := s.At(1)
			if !ok || first != 0 || !more || second < 1 {
				t.Fatalf("%v: arrivals at %v (%v) and %v (%v)", r, first, ok, second, more)
			}
		}
	})
}
