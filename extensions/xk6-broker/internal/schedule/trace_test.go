package schedule_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/schedule"
)

func TestTrace(t *testing.T) {
	t.Parallel()
	s, err := schedule.Trace(strings.NewReader("# a night in March\n\n0\n 0.25 \n.5\r\n\t1. # a second\n1.000000001\n1s500ms\n" +
		"1.5\n1.6000000004\n1.6000000005\n2e0\n250e-2\n104d\n"))
	if err == nil {
		t.Fatalf("%v, want an error: days are no unit", s)
	}
	s, err = schedule.Trace(strings.NewReader("# a night in March\n\n0\n 0.25 \n.5\r\n\t1. # a second\n1.000000001\n1s500ms\n" +
		"1.5\n1.6000000004\n1.6000000005\n2e0\n250e-2\n1h\n7776000.123456789"))
	if err != nil {
		t.Fatal(err)
	}
	want := []time.Duration{
		0, 250e6, 500e6, 1e9, 1_000_000_001, 1500e6, 1500e6, 1_600_000_000, 1_600_000_001, 2e9, 2500e6, time.Hour,
		90*24*time.Hour + 123_456_789,
	}
	if got := all(t, s); !slices.Equal(got, want) {
		t.Errorf("due at %v, want %v", got, want)
	}
}

func TestTraceErrors(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                    "trace: there is no due time in it",
		"# nothing\n\n":                       "trace: there is no due time in it",
		"0\n\nx":                              `trace: line 3: "x" is neither seconds such as "1.25" nor a duration such as "1s250ms"`,
		"1 2":                                 `line 1: "1 2" is neither`,
		"0,5":                                 `line 1: "0,5" is neither`,
		".":                                   `line 1: "." is neither`,
		"1.2.3":                               `line 1: "1.2.3" is neither`,
		"1e":                                  `line 1: "1e" is neither`,
		"NaN":                                 "line 1: NaN is not from 0 to 292 years",
		"inf":                                 "line 1: inf is not from 0 to 292 years",
		"-":                                   `line 1: "-" is neither`,
		"-1":                                  "trace: line 1: -1 is not from 0",
		"0\n-1ms":                             "trace: line 2: -1ms is not from 0",
		"# head\n1.5\n1.4 # back":             "trace: line 3: 1.4 is before 1.5s, the due time that precedes it",
		"9223372037":                          "line 1: 9223372037 is not from 0 to 292 years",
		"1e400":                               `line 1: "1e400" is neither`,
		"1\n2\n" + strings.Repeat("3", 1<<17): "trace: line 3: ",
	} {
		if s, err := schedule.Trace(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q is %v, %v, want an error with %q", text, s, err, want)
		}
	}
	broken := errors.New("broken")
	if s, err := schedule.Trace(iotest.ErrReader(broken)); !errors.Is(err, broken) {
		t.Errorf("a broken reader gives %v, %v", s, err)
	}
}

func FuzzTrace(f *testing.F) {
	for _, s := range []string{"0\n1.5\n2s # x\n", "1e-3\n.25\n1.\n", "-1", "5\n4", "9223372036.854775807", "#\n\n\r\n", "0.0000000005"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := schedule.Trace(strings.NewReader(text))
		if err != nil {
			return
		}
		dues := all(t, s)
		if dues[len(dues)-1] > 100*24*time.Hour {
			return // a float64 is not exact
		}
		if n, ok := schedule.Count(s); !ok || n != uint64(len(dues)) || n == 0 {
			t.Fatalf("%q: Count is %d (%v) of %d", text, n, ok, len(dues))
		}
		// Both forms that a due time has are exact.
		var seconds, durations strings.Builder
		for _, due := range dues {
			fmt.Fprintf(&seconds, "%d.%09d\n", due/time.Second, due%time.Second)
			fmt.Fprintln(&durations, due)
		}
		for _, again := range []string{seconds.String(), durations.String()} {
			if s, err := schedule.Trace(strings.NewReader(again)); err != nil || !slices.Equal(all(t, s), dues) {
				t.Fatalf("%q is due at %v, and written as %q it is not (%v)", text, dues, again, err)
			}
		}
	})
}
