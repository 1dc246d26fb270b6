package verdict

import (
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason/reasontest"
)

func TestAdviceNamesTheCause(t *testing.T) {
	v := func(x float64) *float64 { return &x }
	for _, c := range []struct {
		p    *result.Platform
		want string
		cpu  float64
	}{
		{nil, "machine", 0},
		// GOMAXPROCS is 1 of 2 CPUs: k6 may use half of what the machine has.
		{&result.Platform{Process: v(0.67), Host: v(0.76), Others: v(0.43)}, "others", 0.43},
		{&result.Platform{Process: v(0.9), Host: v(0.5), Others: v(0.05)}, "k6", 0.9},
		{&result.Platform{}, "machine", 0},
		{&result.Platform{Process: v(0.07)}, "machine", 0},
		{&result.Platform{Process: v(0.05), Host: v(0.9), Others: v(0.85)}, "others", 0.85},
		{&result.Platform{Process: v(0.85), Host: v(0.9), Others: v(0.05)}, "k6", 0.85},
		{&result.Platform{Process: v(0.05), Host: v(0.09), Others: v(0.04), Steal: v(0.3)}, "hypervisor", 0.3},
		{&result.Platform{Process: v(0.05), Host: v(0.2), Others: v(0.15), Steal: v(0.3)}, "hypervisor", 0.3},
		{&result.Platform{Process: v(0.11), Host: v(1), Others: v(0.89), Steal: v(0.055)}, "others", 0.89},
		{&result.Platform{Process: v(0.11), Host: v(1), Others: v(0.89), Steal: v(0.04)}, "others", 0.89},
		{&result.Platform{Process: v(0.85), Host: v(0.95), Others: v(0.1), Steal: v(0.01)}, "k6", 0.85},
		{&result.Platform{Steal: v(0.3)}, "hypervisor", 0.3},
		{&result.Platform{Process: v(0.3), Host: v(0.35), Others: v(0.05), GroupPressure: v(0.5)}, "cgroup", 0.5},
		{&result.Platform{Process: v(0.07), Host: v(0.15), Others: v(0.08)}, "machine", 0},
	} {
		if why, cpu := cause(c.p, time.Second, time.Second); why != c.want || cpu != c.cpu {
			t.Errorf("%+v: %s %v, want %s %v", c.p, why, cpu, c.want, c.cpu)
		}
	}
}

// A sleep before the first send makes messages late as a standstill does, but the machine's hiccups do not show it.
func TestAScriptThatWorksBeforeItSendsIsNamed(t *testing.T) {
	v := func(x float64) *float64 { return &x }
	idle := result.Platform{Process: v(0.07), Host: v(0.15), Others: v(0.08)}
	crowded := result.Platform{Process: v(0.2), Host: v(0.9), Others: v(0.7)}
	exhausted := result.Platform{Process: v(0.05), Host: v(0.99), Others: v(0.94)}
	busy := result.Platform{Process: v(0.8), Host: v(0.4), Others: v(0)}
	for name, c := range map[string]struct {
		platform result.Platform
		hiccup   int64 // ms
		want     string
	}{
		"idle":                      {idle, 1, "script"},
		"nobody watched":            {result.Platform{}, 0, "script"},
		"beside others":             {crowded, 1, "others"},
		"where nothing is left":     {exhausted, 1, "others"},
		"a standstill":              {idle, 40, "machine"},
		"a generator without CPUs":  {busy, 1, "k6"},
		"hiccups that are a part":   {idle, 5, "script"},
		"hiccups, and a queue":      {crowded, 5, "others"},
		"others, and hiccups of it": {crowded, 40, "others"},
	} {
		t.Run(name, func(t *testing.T) {
			c.platform.Hiccups = &hist.Histogram{}
			if c.hiccup > 0 {
				c.platform.Hiccups = spread(12_000, c.hiccup*msec)
			}
			r := &result.Result{Platform: &c.platform, Topics: []result.Topic{{
				Topic: "orders", OpenLoop: true, Counts: counted(map[recording.Counter]int64{recording.Due: 12_000, recording.Sent: 12_000, recording.Confirmed: 12_000, recording.Received: 12_000}),
				Trends: map[string]*hist.Histogram{"publish_latency": spread(12_000, 51*msec), "generator_lag": spread(12_000, 50*msec)},
			}}}
			Judge(r, Circumstances{})
			if r.Verdict.Valid || !reasontest.Has(r.Verdict.Invalid(), "percentile-not-reliable why="+c.want) {
				t.Errorf("%q", reasontest.Codes(r.Verdict.Reasons))
			}
		})
	}
}
