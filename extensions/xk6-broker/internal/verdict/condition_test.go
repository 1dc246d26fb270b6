package verdict

import (
	"fmt"
	"testing"
	"time"

	"go.k6.io/k6/v2/metrics"
)

// k6 is asked what it makes of a source: whether it takes it, and whether it holds where every statistic of a metric is v.
func askK6(t *testing.T, source string, v float64) (taken, held bool) {
	t.Helper()
	asked := metrics.NewThresholds([]string{source})
	if asked.Parse() != nil {
		return false, false
	}
	c, err := ParseCondition(source)
	if err != nil {
		return true, false
	}
	kind := metrics.Trend
	switch c.Method {
	case "count", "rate":
		kind = metrics.Counter
	case "value":
		kind = metrics.Gauge
	}
	sink := metrics.NewSink(kind)
	sink.Add(metrics.Sample{Value: v})
	held, err = asked.Run(sink, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	return true, held
}

func TestConditionsAreThoseOfK6(t *testing.T) {
	left := []string{"avg", "min", "max", "med", "count", "rate", "value", "p(99)", "p(99.9)", " p(0) ", "p(100)", "p", "p(1e1)", "p()", "p(101)", "p(NaN)", "mean", ""}
	operators := []string{"<", "<=", ">", ">=", "==", "===", "!=", " < ", "=", "=<", "<>", ""}
	right := []string{"50", " 50 ", "49.5", "-1", "1e3", "0x32", "NaN", "50ms", "1,000", ""}
	for _, l := range left {
		for _, o := range operators {
			for _, r := range right {
				source := l + o + r
				for _, v := range []float64{0, 49.5, 50, 50.5, 1000} {
					taken, held := askK6(t, source, v)
					c, err := ParseCondition(source)
					if taken != (err == nil) {
						t.Fatalf("%q: k6 takes it: %v; here %v", source, taken, err)
					}
					if err == nil && c.Holds(v) != held {
						t.Errorf("%q of %v: k6 says %v, here %v", source, v, held, c.Holds(v))
					}
				}
			}
		}
	}
}

func TestAPercentileIsTheDecimalThatIsWritten(t *testing.T) {
	for source, want := range map[string]Condition{
		"p(99.9)<50":      {"p", 0.999, "<", 50},
		"p(99.999)<=1":    {"p", 0.99999, "<=", 1},
		"p(29)>2":         {"p", 0.29, ">", 2},
		"med != 3.5":      {"med", 0.5, "!=", 3.5},
		"p(100) === 3":    {"max", 1, "===", 3},
		"p(0)==1":         {"min", 0, "==", 1},
		"p(99.99995)>=10": {"p", 0.9999995, ">=", 10},
	} {
		if got, err := ParseCondition(source); err != nil || got != want {
			t.Errorf("%q: %+v, %v; want %+v", source, got, err, want)
		}
	}
}

func TestACountIsDecidedByItsNumberOrItsRate(t *testing.T) {
	for source, held := range map[string]bool{"count==30": true, "count>30": false, "rate==3": true, "rate<3": false} {
		c, err := ParseCondition(source)
		if d := c.DecideCount(30, 10); err != nil || !d.Judged || d.Held != held {
			t.Errorf("%s of 30 in 10 s: %+v, %v", source, d, err)
		}
	}
	c, _ := ParseCondition("rate<3")
	if d := c.DecideCount(30, 0); d.Judged || d.Held {
		t.Error(fmt.Sprint(d))
	}
}
