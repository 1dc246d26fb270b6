package verdict

import (
	"strings"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason/reasontest"
)

func TestJudge_DelayOnBusyMachine_NamesUsersOfItsCPUs(t *testing.T) {
	v := func(x float64) *float64 { return &x }
	for name, c := range map[string]struct {
		platform result.Platform
		want     string
		others   string // that no text has
	}{
		"idle":     {result.Platform{Process: v(0.07), Others: v(0.08)}, "why=late", "k6 used"},
		"unknown":  {result.Platform{}, "why=late", "CPU "},
		"crowded":  {result.Platform{Process: v(0.2), Others: v(0.7)}, "why=late k6=0.2 others=0.7", "other machines"},
		"stolen":   {result.Platform{Process: v(0.05), Steal: v(0.3)}, "why=late steal=0.3", "other processes"},
		"in a box": {result.Platform{Process: v(0.3), GroupPressure: v(0.5)}, "why=late k6=0.3 waited=0.5", "other processes"},
	} {
		t.Run(name, func(t *testing.T) {
			c.platform.Hiccups = spread(12_000, msec)
			r := &result.Result{Platform: &c.platform, Topics: []result.Topic{{
				Topic: "orders", OpenLoop: true,
				Counts: counted(map[recording.Counter]int64{
					recording.Due: 12_000, recording.Sent: 12_000, recording.Confirmed: 12_000, recording.Received: 12_000,
				}),
				Trends: map[string]*hist.Histogram{
					"publish_latency": spread(12_000, 51*msec), "generator_lag": spread(12_000, 50*msec),
				},
			}}}
			Judge(r, Circumstances{})
			invalid := r.Verdict.Invalid()
			if !reasontest.Has(invalid, "percentile-not-reliable "+c.want) || strings.Contains(reason.Text(invalid[0]), c.others) {
				t.Errorf("%q, %s", reasontest.Codes(r.Verdict.Reasons), reason.Text(invalid[0]))
			}
		})
	}
}
